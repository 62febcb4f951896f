package grebe.spark;

import java.util.List;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** A rewritten plan must give the same attributes, and nothing in it may ask for one that is not there. */
@SuppressWarnings({"rawtypes", "unchecked"})
final class Verify {
  private Verify() {}

  static void sameQuery(LogicalPlan before, LogicalPlan after) {
    List<Attribute> wanted = Scala.list(before.output());
    List<Attribute> given = Scala.list(after.output());
    boolean same = wanted.size() == given.size();
    for (int i = 0; same && i < wanted.size(); i++) {
      same = wanted.get(i).exprId().equals(given.get(i).exprId()) && wanted.get(i).dataType().equals(given.get(i).dataType())
          && wanted.get(i).name().equals(given.get(i).name());
    }
    if (!same) {
      throw new IllegalStateException("the rewritten plan gives other columns: " + given + " instead of " + wanted);
    }
    complete(after);
  }

  private static void complete(LogicalPlan plan) {
    if (!plan.missingInput().isEmpty()) {
      throw new IllegalStateException("the rewritten plan misses " + plan.missingInput() + " in " + plan.nodeName());
    }
    for (Object child : Scala.list(plan.children())) {
      complete((LogicalPlan) child);
    }
    for (Object subquery : Scala.list(plan.subqueries())) {
      complete((LogicalPlan) subquery);
    }
  }
}
