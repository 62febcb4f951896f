package grebe.spark;

import java.util.ArrayList;
import java.util.List;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.Complete$;
import org.apache.spark.sql.catalyst.optimizer.NormalizeFloatingNumbers$;
import org.apache.spark.sql.catalyst.planning.PhysicalAggregation$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.aggregate.AggUtils$;
import org.apache.spark.sql.execution.aggregate.HashAggregateExec;

import scala.Option;
import scala.Tuple4;

/**
 * Rows of one group lie in one partition already: then they are aggregated once. Spark would aggregate in each partition, find that no
 * shuffle is needed, and aggregate the few results again, through a second table of hashes.
 */
@SuppressWarnings({"rawtypes", "unchecked"})
final class OnePhase {
  interface Later {
    SparkPlan plan(LogicalPlan below);
  }

  private OnePhase() {}

  /** Null: to be planned as Spark does. */
  static SparkPlan of(Aggregate aggregate, Later later) {
    Option<?> taken = PhysicalAggregation$.MODULE$.unapply(aggregate);
    if (taken.isEmpty() || aggregate.isStreaming()) {
      return null;
    }
    Tuple4 parts = (Tuple4) taken.get();
    List<Object> functions = Scala.list((scala.collection.Iterable) parts._2());
    List<Object> grouping = Scala.list((scala.collection.Iterable) parts._1());
    boolean plain = grouping.stream().allMatch(OnePhase::isPlain)
        && functions.stream().noneMatch(each -> !(each instanceof AggregateExpression) || ((AggregateExpression) each).isDistinct());
    if (!plain) {
      return null;
    }
    SparkPlan twice = (SparkPlan) AggUtils$.MODULE$.planAggregateWithoutDistinct(Scala.seq(grouping), Scala.seq(functions),
        Scala.seq(Scala.list((scala.collection.Iterable) parts._3())), later.plan((LogicalPlan) parts._4())).head();
    SparkPlan below = twice instanceof HashAggregateExec ? ((HashAggregateExec) twice).child() : null;
    return below instanceof HashAggregateExec ? once((HashAggregateExec) twice, (HashAggregateExec) below) : null;
  }

  /** Zeros and NaNs of several forms are one group: where a column may hold them, Spark's own strategy sees to that. */
  private static boolean isPlain(Object grouped) {
    return grouped instanceof Attribute && NormalizeFloatingNumbers$.MODULE$.normalize((Expression) grouped) == grouped;
  }

  private static SparkPlan once(HashAggregateExec last, HashAggregateExec first) {
    List<AggregateExpression> whole = new ArrayList<>();
    for (AggregateExpression each : Scala.<AggregateExpression>list(first.aggregateExpressions())) {
      whole.add(each.copy(each.aggregateFunction(), Complete$.MODULE$, each.isDistinct(), each.filter(), each.resultId()));
    }
    return new HashAggregateExec(last.requiredChildDistributionExpressions(), last.isStreaming(), last.numShufflePartitions(),
        first.groupingExpressions(), Scala.seq(whole), last.aggregateAttributes(), 0, last.resultExpressions(), first.child());
  }
}
