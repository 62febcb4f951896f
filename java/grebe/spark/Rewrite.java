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
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/** Puts a decision into a plan. A scan is replaced together with the filters and projections right above it. */
@SuppressWarnings({"rawtypes", "unchecked"})
final class Rewrite {
  private static final ObjectMapper JSON = new ObjectMapper();

  private final Map<LogicalRelation, StandIn> standIns = new IdentityHashMap<>();
  private final Map<LogicalRelation, LogicalRelation> narrowed = new IdentityHashMap<>();
  private final Map<LogicalRelation, JsonNode> keys = new IdentityHashMap<>();
  private final Map<LogicalRelation, JsonNode> answers = new IdentityHashMap<>();
  /** The place of an attribute in the order of the index that it comes from. */
  private final Map<Long, Integer> ranks = new HashMap<>();

  Rewrite(Bridge bridge, List<LogicalRelation> relations, String decision) throws IOException {
    JsonNode all = JSON.readTree(decision);
    for (JsonNode each : all.get("stand_ins")) {
      LogicalRelation relation = relations.get(each.get("relation").asInt());
      standIns.put(relation, new StandIn(bridge, relation, each));
      standIns.get(relation).rank(ranks);
    }
    for (JsonNode each : all.get("narrowed")) {
      LogicalRelation relation = relations.get(each.get("relation").asInt());
      narrowed.put(relation, narrowed(bridge, relation, each));
      if (!each.get("keys").isNull()) {
        keys.put(relation, each.get("keys"));
      }
    }
    for (JsonNode each : all.get("answers")) {
      answers.put(relations.get(each.get("relation").asInt()), each.get("values"));
    }
  }

  /** The same relation, of which some files are not read. What is known of the table's size does not hold for it. */
  private static LogicalRelation narrowed(Bridge bridge, LogicalRelation original, JsonNode decision) {
    HadoopFsRelation whole = (HadoopFsRelation) original.relation();
    Narrowed files = new Narrowed(whole.location(), bridge.snapshots.get(decision.get("snapshot").asText()), decision);
    scala.collection.immutable.Map options = (scala.collection.immutable.Map) whole.options().updated(Rewriting.MARK, "narrowed");
    return Scala.withRelation(original, new HadoopFsRelation(files, whole.partitionSchema(), whole.dataSchema(), whole.bucketSpec(),
        whole.fileFormat(), options, whole.sparkSession()), original.output());
  }

  LogicalPlan of(LogicalPlan plan) {
    if (narrowed.containsKey(plan)) {
      return narrowed.get(plan);
    }
    LogicalRelation leaf = leaf(plan);
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
      LogicalRelation relation = leaf(side);
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

  static LogicalRelation leaf(LogicalPlan plan) {
    LogicalPlan at = plan;
    while (at instanceof Project || at instanceof Filter) {
      at = (LogicalPlan) at.children().head();
    }
    return at instanceof LogicalRelation ? (LogicalRelation) at : null;
  }

  /** Numbers come as text: JSON's own would lose digits. */
  private static LogicalPlan answered(Aggregate aggregate, JsonNode values) {
    List<NamedExpression> constants = new ArrayList<>();
    List<NamedExpression> wanted = Scala.list(aggregate.aggregateExpressions());
    for (int i = 0; i < wanted.size(); i++) {
      NamedExpression each = wanted.get(i);
      String text = values.get(i).isNull() ? null : values.get(i).asText();
      Expression value = Literal.create(text == null ? null : number(text, ((Expression) each).dataType().typeName()), ((Expression) each).dataType());
      constants.add(Scala.alias(value, each.name(), each.exprId()));
    }
    return new Project(Scala.seq(constants), new OneRowRelation());
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
