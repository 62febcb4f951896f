package grebe.spark;

import java.util.ArrayList;
import java.util.List;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** A query with the text of a hint of ours, from the parser to the rule, which takes it away again. */
@SuppressWarnings({"rawtypes", "unchecked"})
public final class Hinted extends LogicalPlan {
  final String hint;
  final LogicalPlan query;

  // Public, as Spark copies nodes through their constructors.
  public Hinted(String hint, LogicalPlan query) {
    this.hint = hint;
    this.query = query;
  }

  /** The texts of all hints in a plan, its subqueries included. */
  static List<String> in(LogicalPlan plan) {
    List<String> found = new ArrayList<>();
    if (plan instanceof Hinted) {
      found.add(((Hinted) plan).hint);
    }
    Scala.<LogicalPlan>list(plan.children()).forEach(child -> found.addAll(in(child)));
    Scala.<LogicalPlan>list(plan.subqueries()).forEach(subquery -> found.addAll(in(subquery)));
    return found;
  }

  static LogicalPlan removed(LogicalPlan plan) {
    if (plan instanceof Hinted) {
      return removed(((Hinted) plan).query);
    }
    LogicalPlan made = Scala.withChildren(plan, Hinted::removed);
    return Subqueries.changed(made, subquery -> in(subquery).isEmpty() ? subquery : Rewriting.tidy(removed(subquery)));
  }

  @Override
  public scala.collection.immutable.Seq output() {
    return Scala.seq(Scala.list(query.output()));
  }

  @Override
  public scala.collection.immutable.Seq children() {
    return Scala.seq(query);
  }

  public LogicalPlan withNewChildrenInternal(scala.collection.IndexedSeq children) {
    return new Hinted(hint, (LogicalPlan) children.head());
  }

  public LogicalPlan withNewChildrenInternal(scala.collection.immutable.IndexedSeq children) {
    return new Hinted(hint, (LogicalPlan) children.head());
  }

  @Override
  public int productArity() {
    return 2;
  }

  @Override
  public Object productElement(int n) {
    return n == 0 ? hint : query;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof Hinted;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Hinted && ((Hinted) other).hint.equals(hint) && ((Hinted) other).query.equals(query);
  }

  @Override
  public int hashCode() {
    return 31 * hint.hashCode() + query.hashCode();
  }
}
