package grebe.spark;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.Inner$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.JoinHint;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;

import scala.Option;

/** Plans joined by conditions over them: each condition as soon as its columns are there, each plan with the columns that are needed. */
@SuppressWarnings({"rawtypes", "unchecked"})
final class Joined {
  private final List<Expression> pending;
  private final List<Expression> needed;

  private Joined(List<Expression> conjuncts, List<Expression> needed) {
    this.pending = new ArrayList<>(conjuncts);
    this.needed = new ArrayList<>(needed);
    this.needed.addAll(conjuncts);
  }

  static LogicalPlan of(List<LogicalPlan> parts, List<Expression> conjuncts, List<Expression> needed) {
    return new Joined(conjuncts, needed).of(parts);
  }

  private LogicalPlan of(List<LogicalPlan> parts) {
    List<LogicalPlan> left = new ArrayList<>(parts);
    LogicalPlan made = filtered(pruned(left.remove(0)));
    while (!left.isEmpty()) {
      LogicalPlan next = next(made, left);
      left.remove(next);
      LogicalPlan part = filtered(pruned(next));
      Expression condition = taken(made.outputSet().$plus$plus(part.outputSet()));
      made = new Join(made, part, Inner$.MODULE$, Option.apply(condition), JoinHint.NONE());
    }
    return filtered(made);
  }

  /** The first that a condition ties to what is there, if there is such. */
  private LogicalPlan next(LogicalPlan made, List<LogicalPlan> left) {
    for (LogicalPlan each : left) {
      AttributeSet both = made.outputSet().$plus$plus(each.outputSet());
      for (Expression condition : pending) {
        boolean ties = condition.references().subsetOf(both) && !condition.references().subsetOf(made.outputSet());
        if (ties) {
          return each;
        }
      }
    }
    return left.get(0);
  }

  private LogicalPlan filtered(LogicalPlan plan) {
    Expression condition = taken(plan.outputSet());
    return condition == null ? plan : new Filter(condition, plan);
  }

  private Expression taken(AttributeSet there) {
    Expression all = null;
    for (Expression condition : new ArrayList<>(pending)) {
      if (condition.references().subsetOf(there)) {
        pending.remove(condition);
        all = all == null ? condition : new And(all, condition);
      }
    }
    return all;
  }

  private LogicalPlan pruned(LogicalPlan plan) {
    List<NamedExpression> kept = new ArrayList<>();
    for (Attribute each : Scala.<Attribute>list(plan.output())) {
      if (needed.stream().anyMatch(expression -> expression.references().contains(each))) {
        kept.add(each);
      }
    }
    return kept.size() == plan.output().size() ? plan : new Project(Scala.seq((List) kept), plan);
  }
}
