package grebe.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry$;
import org.apache.spark.sql.catalyst.analysis.MultiInstanceRelation;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.DeclarativeAggregate;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/**
 * A block answered by a view: what the view holds, and beside it the rows of files that it does not cover, each as if it were a
 * group of its own. Python says which parts of which expressions are columns of the view.
 */
@SuppressWarnings({"rawtypes", "unchecked"})
final class FromView {
  private final Block block;
  private final JsonNode decision;
  private final StandIn view;
  private final List<LogicalPlan> others = new ArrayList<>();
  /** The view's columns that are used, and what each is in terms of the relations' columns. */
  private final Map<String, Expression> direct = new LinkedHashMap<>();
  private final Map<String, AttributeReference> columns = new HashMap<>();

  FromView(Block block, JsonNode decision, StandIn view, List<Scanned> relations) {
    this.block = block;
    this.decision = decision;
    this.view = view;
    view.columns().forEach(each -> columns.put(each.name(), each));
    decision.get("beside").forEach(each -> others.add(relations.get(each.asInt()).leaf));
    for (Scanned each : relations) {
      if (view.servedFiles != null && each.leaf != view.leaf() && block.leaves.contains(each.leaf) && !others.contains(each.leaf)) {
        view.servedFiles.add(each);
      }
    }
  }

  LogicalPlan made() {
    List<Expression> outputs = new ArrayList<>();
    for (int i = 0; i < block.outputs.size(); i++) {
      outputs.add(replaced(((Alias) block.outputs.get(i)).child(), decision.get("outputs").get(i)));
    }
    List<Expression> groups = new ArrayList<>();
    for (int i = 0; block.groups != null && i < block.groups.size(); i++) {
      groups.add(replaced(block.groups.get(i), decision.get("groups").get(i)));
    }
    List<Expression> filters = new ArrayList<>();
    for (JsonNode each : decision.get("filters")) {
      filters.add(replaced(block.conjuncts.get(each.get(0).asInt()), each.get(1)));
    }
    return topped(rows(outputs, groups, filters), groups, outputs);
  }

  /** From the view and, where it does not cover all files, beside it. */
  private LogicalPlan rows(List<Expression> outputs, List<Expression> groups, List<Expression> filters) {
    List<Expression> needed = new ArrayList<>(outputs);
    needed.addAll(groups);
    List<LogicalPlan> parts = new ArrayList<>(others);
    parts.add(0, view.rows());
    LogicalPlan held = Joined.of(parts, filters, needed);
    if (!decision.get("direct").asBoolean()) {
      return held;
    }
    List<NamedExpression> wanted = new ArrayList<>();
    for (Attribute each : Scala.<Attribute>list(held.output())) {
      if (needed.stream().anyMatch(expression -> expression.references().contains(each))) {
        wanted.add(each);
      }
    }
    return new Union(Scala.seq(new Project(Scala.seq((List) wanted), held), beside(wanted)), false, false);
  }

  /** The block over the files that the view does not cover, a row each. */
  private LogicalPlan beside(List<NamedExpression> wanted) {
    Map<Long, Expression> names = new HashMap<>();
    List<LogicalPlan> parts = new ArrayList<>();
    for (LogicalPlan leaf : block.leaves) {
      LogicalPlan part = leaf == view.leaf() ? view.rest() : others.contains(leaf) ? anew(leaf) : leaf;
      for (int i = 0; part != leaf && i < leaf.output().size(); i++) {
        names.put(((Attribute) leaf.output().apply(i)).exprId().id(), (Expression) part.output().apply(i));
      }
      parts.add(part);
    }
    List<Expression> conditions = new ArrayList<>();
    block.conjuncts.forEach(each -> conditions.add(renamed(each, names)));
    List<Expression> values = new ArrayList<>();
    List<NamedExpression> named = new ArrayList<>();
    for (NamedExpression each : wanted) {
      Expression of = direct.containsKey(each.name()) && columns.get(each.name()).exprId().equals(each.exprId())
          ? cast(direct.get(each.name()), columns.get(each.name()).dataType()) : (Expression) each;
      values.add(renamed(of, names));
      named.add(Scala.alias(values.get(values.size() - 1), each.name(), NamedExpression.newExprId()));
    }
    return new Project(Scala.seq(named), Joined.of(parts, conditions, values));
  }

  private static LogicalPlan anew(LogicalPlan leaf) {
    if (!(leaf instanceof MultiInstanceRelation)) {
      throw new IllegalStateException("a " + leaf.nodeName() + " cannot be read twice");
    }
    return ((MultiInstanceRelation) leaf).newInstance();
  }

  private static Expression renamed(Expression expression, Map<Long, Expression> names) {
    if (expression instanceof AttributeReference) {
      return names.getOrDefault(((AttributeReference) expression).exprId().id(), expression);
    }
    return Scala.withChildren(expression, child -> renamed(child, names));
  }

  private LogicalPlan topped(LogicalPlan rows, List<Expression> groups, List<Expression> outputs) {
    List<NamedExpression> named = new ArrayList<>();
    if (block.groups == null) {
      for (int i = 0; i < outputs.size(); i++) {
        named.add(Scala.alias(outputs.get(i), block.outputs.get(i).name(), block.outputs.get(i).exprId()));
      }
      return new Project(Scala.seq(named), rows);
    }
    // Groups have names of their own below, as Spark's optimizer wants it.
    List<NamedExpression> below = new ArrayList<>(Scala.<NamedExpression>list(rows.output()));
    List<Expression> keys = new ArrayList<>();
    for (Expression group : groups) {
      if (group instanceof Attribute) {
        keys.add(group);
      } else {
        Alias alias = Scala.alias(group, "_grebe_group", NamedExpression.newExprId());
        below.add(alias);
        keys.add((Expression) alias.toAttribute());
      }
    }
    for (int i = 0; i < outputs.size(); i++) {
      Expression output = grouped(outputs.get(i), groups, keys);
      named.add(Scala.alias(output, block.outputs.get(i).name(), block.outputs.get(i).exprId()));
    }
    LogicalPlan child = below.size() == rows.output().size() ? rows : new Project(Scala.seq(below), rows);
    return Scala.aggregate((Aggregate) block.top, keys, named, child);
  }

  private static Expression grouped(Expression expression, List<Expression> groups, List<Expression> keys) {
    for (int i = 0; i < groups.size(); i++) {
      if (expression.semanticEquals(groups.get(i))) {
        return keys.get(i);
      }
    }
    return expression instanceof AggregateExpression ? expression
        : Scala.withChildren(expression, child -> grouped(child, groups, keys));
  }

  /** `found`: [path, what, column…] of each part that is taken from the view. */
  private Expression replaced(Expression expression, JsonNode found) {
    return replaced(expression, found, "");
  }

  private Expression replaced(Expression expression, JsonNode found, String path) {
    for (JsonNode each : found) {
      if (each.get(0).asText().equals(path)) {
        return taken(expression, found, path, each);
      }
    }
    List<Expression> children = new ArrayList<>();
    int place = 0;
    boolean different = false;
    for (Expression child : Scala.<Expression>list(expression.children())) {
      Expression now = replaced(child, found, path + "/" + place++);
      different |= now != child;
      children.add(now);
    }
    return different ? (Expression) expression.withNewChildren(Scala.seq(children)) : expression;
  }

  private Expression taken(Expression expression, JsonNode found, String path, JsonNode how) {
    String what = how.get(1).asText();
    AttributeReference column = columns.get(how.get(2).asText());
    if (what.equals("column")) {
      direct.putIfAbsent(column.name(), expression);
      return column;
    }
    AggregateExpression whole = (AggregateExpression) expression;
    AggregateFunction function = (AggregateFunction) whole.aggregateFunction();
    List<Expression> arguments = Scala.list(((Expression) function).children());
    // The filter is the second child, after the function.
    scala.Option filter = whole.filter().isDefined()
        ? scala.Option.apply(replaced((Expression) whole.filter().get(), found, path + "/1")) : scala.Option.empty();
    switch (what) {
      case "count":
        direct.putIfAbsent(column.name(), counted(arguments));
        return counted(column, filter);
      case "average":
        AttributeReference rows = columns.get(how.get(3).asText());
        direct.putIfAbsent(column.name(), cast(arguments.get(0), column.dataType()));
        direct.putIfAbsent(rows.name(), counted(arguments));
        return average((DeclarativeAggregate) function, summed(column, filter), counted(rows, filter));
      case "sum":
        direct.putIfAbsent(column.name(), cast(arguments.get(0), column.dataType()));
        return cast(summed(column, filter), whole.dataType());
      default:
        direct.putIfAbsent(column.name(), arguments.get(0));
        Expression same = (Expression) ((Expression) function).withNewChildren(Scala.seq((Object) column));
        return aggregate(same, filter);
    }
  }

  private static Expression summed(Expression column, scala.Option filter) {
    Expression sum = (Expression) FunctionRegistry$.MODULE$.builtin()
        .lookupFunction(new FunctionIdentifier("sum"), Scala.seq((Object) column));
    return aggregate(sum, filter);
  }

  private static Expression counted(Expression column, scala.Option filter) {
    return new Coalesce(Scala.seq(summed(column, filter), Literal.create(0L, DataTypes.LongType)));
  }

  private static Expression aggregate(Expression function, scala.Option filter) {
    return ((AggregateFunction) function).toAggregateExpression(false, filter);
  }

  /** Of one row. */
  private static Expression counted(List<Expression> arguments) {
    Expression all = null;
    for (Expression each : arguments) {
      if (each.nullable()) {
        Expression there = new IsNotNull(each);
        all = all == null ? there : new And(all, there);
      }
    }
    Literal one = Literal.create(1L, DataTypes.LongType);
    return all == null ? one : new If(all, one, Literal.create(0L, DataTypes.LongType));
  }

  /** Spark's own way from a sum and a count to an average. */
  private static Expression average(DeclarativeAggregate average, Expression sum, Expression count) {
    List<AttributeReference> buffer = Scala.list(average.aggBufferAttributes());
    Expression zero = Literal.create(0, DataTypes.IntegerType);
    // Where there are values, a sum that is NULL did not fit.
    Expression none = new EqualTo(count, Literal.create(0L, DataTypes.LongType));
    Expression some = new If(none, cast(zero, buffer.get(0).dataType()), cast(sum, buffer.get(0).dataType()));
    return exchanged(average.evaluateExpression(), buffer, some, count);
  }

  private static Expression exchanged(Expression expression, List<AttributeReference> buffer, Expression sum, Expression count) {
    if (expression instanceof AttributeReference) {
      return ((AttributeReference) expression).exprId().equals(buffer.get(0).exprId()) ? sum : count;
    }
    return Scala.withChildren(expression, child -> exchanged(child, buffer, sum, count));
  }

  private static Expression cast(Expression expression, DataType type) {
    return expression.dataType().equals(type) ? expression
        : Cast$.MODULE$.apply(expression, type, SQLConf.get().ansiEnabled());
  }
}
