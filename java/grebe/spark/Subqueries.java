package grebe.spark;

import java.util.function.UnaryOperator;

import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

import scala.runtime.AbstractFunction1;

/** The plans that stand in the expressions of a node, each exchanged for another. */
@SuppressWarnings({"rawtypes", "unchecked"})
final class Subqueries extends AbstractFunction1<Expression, Expression> {
  private final UnaryOperator<LogicalPlan> change;

  private Subqueries(UnaryOperator<LogicalPlan> change) {
    this.change = change;
  }

  static LogicalPlan changed(LogicalPlan node, UnaryOperator<LogicalPlan> change) {
    return node.subqueries().isEmpty() ? node : (LogicalPlan) node.mapExpressions(new Subqueries(change));
  }

  @Override
  public Expression apply(Expression expression) {
    Expression made = Scala.withChildren(expression, this::apply);
    if (made instanceof SubqueryExpression) {
      LogicalPlan before = (LogicalPlan) ((SubqueryExpression) made).plan();
      LogicalPlan after = change.apply(before);
      return after == before ? made : (Expression) ((SubqueryExpression) made).withNewPlan(after);
    }
    return made;
  }
}
