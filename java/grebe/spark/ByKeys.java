package grebe.spark;

import java.lang.reflect.Constructor;
import java.util.List;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.internal.SQLConf;

import scala.Option;
import scala.Product;

/**
 * A join whose one side is looked up in an index of the other. A filter says so, of the kind by which Spark itself prunes partitions
 * while a query runs; the strategy takes it away and hands it to the scan. If it stays, it is a filter that changes no answer.
 */
@SuppressWarnings({"rawtypes", "unchecked"})
final class ByKeys {
  private ByKeys() {}

  /** The same join over a scan that waits for the other side's keys; the join itself if it is not as was decided. */
  static Join of(Join join, LogicalPlan relation, JsonNode decision) {
    boolean left = decision.get("side").asText().equals("left");
    Option found = ExtractEquiJoinKeys$.MODULE$.unapply(join);
    if (!found.isDefined() || !SQLConf.get().dynamicPartitionPruningEnabled()) {
      return join;
    }
    List<Expression> own = keys(found, left ? 1 : 2);
    int place = place(own, decision.get("key").asLong());
    AttributeReference column = null;
    for (AttributeReference each : Scala.<AttributeReference>list(relation.output())) {
      column = each.exprId().id() == decision.get("column").asLong() ? each : column;
    }
    if (place < 0 || column == null) {
      return join;
    }
    LogicalPlan other = left ? join.right() : join.left();
    Expression filter = filter(column, other, keys(found, left ? 2 : 1), place, decision.get("broadcast").asBoolean());
    LogicalPlan side = over(left ? join.left() : join.right(), relation, filter);
    return join.copy(left ? side : join.left(), left ? join.right() : side, join.joinType(), join.condition(), join.hint());
  }

  private static List<Expression> keys(Option found, int side) {
    return Scala.list((scala.collection.Seq) ((Product) found.get()).productElement(side));
  }

  private static int place(List<Expression> keys, long id) {
    for (int i = 0; i < keys.size(); i++) {
      if (keys.get(i) instanceof AttributeReference && ((AttributeReference) keys.get(i)).exprId().id() == id) {
        return i;
      }
    }
    return -1;
  }

  /** Spark 3.5 names the key by its place, later versions by a list of places, and have one field more. */
  private static Expression filter(Expression column, LogicalPlan other, List<Expression> keys, int place, boolean broadcast) {
    Constructor<?> constructor = DynamicPruningSubquery.class.getConstructors()[0];
    Object[] fields = new Object[constructor.getParameterCount()];
    boolean one = constructor.getParameterTypes()[3] == int.class;
    Object[] known = {column, other, Scala.seq(keys), one ? (Object) place : Scala.seq(place), broadcast,
        NamedExpression.newExprId(), Option.empty()};
    System.arraycopy(known, 0, fields, 0, known.length);
    for (int i = known.length; i < fields.length; i++) {
      fields[i] = Option.empty();
    }
    try {
      return (Expression) constructor.newInstance(fields);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("DynamicPruningSubquery", e);
    }
  }

  private static LogicalPlan over(LogicalPlan chain, LogicalPlan relation, Expression filter) {
    return chain == relation ? new Filter(filter, relation) : Scala.withChildren(chain, child -> over(child, relation, filter));
  }

  /** The filters of this kind above a relation; those of Spark's own look at partitions only. */
  static void collect(LogicalPlan plan, List<Expression> found) {
    if (plan instanceof Filter) {
      conjuncts(((Filter) plan).condition(), found);
    }
    if (plan instanceof Filter || plan instanceof Project) {
      collect((LogicalPlan) plan.children().head(), found);
    }
  }

  private static void conjuncts(Expression condition, List<Expression> found) {
    if (condition instanceof And) {
      conjuncts(((And) condition).left(), found);
      conjuncts(((And) condition).right(), found);
    } else if (condition instanceof DynamicPruningSubquery) {
      found.add(condition);
    }
  }

  /** The same chain without these filters. */
  static LogicalPlan without(LogicalPlan plan, List<Expression> filters) {
    if (plan instanceof Filter) {
      LogicalPlan child = without((LogicalPlan) plan.children().head(), filters);
      Expression left = left(((Filter) plan).condition(), filters);
      return left == null ? child : new Filter(left, child);
    }
    return plan instanceof Project ? Scala.withChildren(plan, child -> without(child, filters)) : plan;
  }

  private static Expression left(Expression condition, List<Expression> filters) {
    if (condition instanceof And) {
      Expression one = left(((And) condition).left(), filters);
      Expression other = left(((And) condition).right(), filters);
      return one == null ? other : other == null ? one : new And(one, other);
    }
    return filters.contains(condition) ? null : condition;
  }
}
