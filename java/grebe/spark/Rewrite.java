package grebe.spark;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.types.DataType;

/** Puts a decision into a plan. A scan is replaced together with the filters and projections right above it. */
@SuppressWarnings({"rawtypes", "unchecked"})
final class Rewrite {
  private static final ObjectMapper JSON = new ObjectMapper();

  /** The names of indexes, as a list in JSON. */
  final String used;
  private final Bridge bridge;
  private final List<Scanned> relations;
  private final Map<LogicalPlan, StandIn> standIns = new IdentityHashMap<>();
  private final Map<LogicalPlan, LogicalPlan> narrowed = new IdentityHashMap<>();
  private final Map<LogicalPlan, JsonNode> keys = new IdentityHashMap<>();
  private final Map<LogicalPlan, JsonNode> answers = new IdentityHashMap<>();
  private final Map<LogicalPlan, FromView> views = new IdentityHashMap<>();
  /** The place of an attribute in the order of the index that it comes from. */
  private final Map<Long, Integer> ranks = new HashMap<>();

  Rewrite(Bridge bridge, List<Scanned> relations, LogicalPlan plan, String decision) throws IOException {
    this.bridge = bridge;
    this.relations = relations;
    JsonNode all = JSON.readTree(decision);
    used = all.get("used").toString();
    List<Block> blocks = all.path("views").isEmpty() ? null : Block.in(plan);
    for (JsonNode each : all.path("views")) {
      Block block = blocks.get(each.get("block").asInt());
      StandIn view = new StandIn(bridge, relations.get(each.get("relation").asInt()), each);
      views.put(block.top, new FromView(block, each, view, relations));
    }
    for (JsonNode each : all.get("stand_ins")) {
      Scanned relation = relations.get(each.get("relation").asInt());
      standIns.put(relation.leaf, new StandIn(bridge, relation, each));
      standIns.get(relation.leaf).rank(ranks);
    }
    for (JsonNode each : all.get("narrowed")) {
      Scanned relation = relations.get(each.get("relation").asInt());
      narrowed.put(relation.leaf, relation.narrowed(bridge, each));
      if (!each.get("keys").isNull()) {
        keys.put(relation.leaf, each.get("keys"));
      }
    }
    for (JsonNode each : all.get("answers")) {
      answers.put(relations.get(each.get("relation").asInt()).leaf, each);
    }
  }

  LogicalPlan of(LogicalPlan plan) {
    if (views.containsKey(plan)) {
      return views.get(plan).made();
    }
    if (narrowed.containsKey(plan)) {
      return narrowed.get(plan);
    }
    LogicalPlan leaf = leaf(plan);
    if (leaf != null && standIns.containsKey(leaf)) {
      return standIns.get(leaf).of(withSubqueries(chain(plan)));
    }
    if (plan instanceof Aggregate && answers.containsKey(leaf(((Aggregate) plan).child()))) {
      return answered((Aggregate) plan, answers.get(leaf(((Aggregate) plan).child())));
    }
    LogicalPlan made = Scala.withChildren(plan, this::of);
    if (made instanceof Join) {
      made = byKeys((Join) plan, KeyOrder.of((Join) made, ranks));
    }
    return Subqueries.changed(made, this::of);
  }

  private LogicalPlan byKeys(Join before, Join after) {
    Join made = after;
    for (LogicalPlan side : new LogicalPlan[] {before.left(), before.right()}) {
      LogicalPlan relation = leaf(side);
      JsonNode decision = relation == null ? null : keys.get(relation);
      if (decision != null && decision.get("side").asText().equals(side == before.left() ? "left" : "right")) {
        made = ByKeys.of(made, narrowed.get(relation), decision);
      }
    }
    return made;
  }

  /** Projections and filters from the top down to the relation, which comes last. */
  private static List<LogicalPlan> chain(LogicalPlan plan) {
    List<LogicalPlan> chain = new ArrayList<>();
    LogicalPlan at = plan;
    while (at instanceof Project || at instanceof Filter) {
      chain.add(at);
      at = (LogicalPlan) at.children().head();
    }
    chain.add(at);
    return chain;
  }

  private List<LogicalPlan> withSubqueries(List<LogicalPlan> chain) {
    List<LogicalPlan> made = new ArrayList<>();
    for (LogicalPlan node : chain) {
      made.add(Subqueries.changed(node, this::of));
    }
    return made;
  }

  private static LogicalPlan leaf(LogicalPlan plan) {
    LogicalPlan at = plan;
    while (at instanceof Project || at instanceof Filter) {
      at = (LogicalPlan) at.children().head();
    }
    return at.children().isEmpty() ? at : null;
  }

  /** Numbers come as text: JSON's own would lose digits. */
  private LogicalPlan answered(Aggregate aggregate, JsonNode answer) {
    JsonNode values = answer.get("values");
    List<NamedExpression> constants = new ArrayList<>();
    List<NamedExpression> wanted = Scala.list(aggregate.aggregateExpressions());
    for (int i = 0; i < wanted.size(); i++) {
      NamedExpression each = wanted.get(i);
      String text = values.get(i).isNull() ? null : values.get(i).asText();
      Expression value = Literal.create(text == null ? null : number(text, ((Expression) each).dataType().typeName()), ((Expression) each).dataType());
      constants.add(Scala.alias(value, each.name(), each.exprId()));
    }
    OneRowRelation row = new OneRowRelation();
    row.setTagValue(Answered.SHOWN, answer.get("shown").asText());
    ServedFiles served = ServedFiles.of(bridge, relations.get(answer.get("relation").asInt()), answer);
    if (served != null) {
      row.setTagValue(Answered.SERVED, served);
    }
    return new Project(Scala.seq(constants), row);
  }

  /** Whether a value of this type can be put into a plan, as `number` reads it. */
  static boolean isAnswerable(DataType type) {
    switch (type.typeName()) {
      case "long": case "timestamp": case "timestamp_ntz": case "integer": case "date": case "short": case "byte":
        return true;
      default:
        return false;
    }
  }

  private static Object number(String text, String type) {
    switch (type) {
      case "long": case "timestamp": case "timestamp_ntz":
        return Long.valueOf(text);
      case "integer": case "date":
        return Integer.valueOf(text);
      case "short":
        return Short.valueOf(text);
      case "byte":
        return Byte.valueOf(text);
      default:
        throw new IllegalStateException("no answer of type " + type + " from metadata");
    }
  }
}
