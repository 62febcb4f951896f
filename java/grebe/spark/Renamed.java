package grebe.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;

import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;

/** Projections and filters over another leaf: the same expressions, with attributes exchanged. */
@SuppressWarnings({"rawtypes", "unchecked"})
final class Renamed {
  private final Map<Long, Attribute> names = new HashMap<>();

  private Renamed() {}

  /** The chain over a relation whose attributes are new, as are all that the chain itself makes. */
  static LogicalPlan chain(List<LogicalPlan> chain, LogicalPlan from, LogicalPlan to) {
    Renamed renamed = new Renamed();
    List<Attribute> old = Scala.list(from.output());
    List<Attribute> fresh = Scala.list(to.output());
    for (int i = 0; i < old.size(); i++) {
      renamed.names.put(old.get(i).exprId().id(), fresh.get(i));
    }
    LogicalPlan made = to;
    for (int i = chain.size() - 2; i >= 0; i--) {
      made = renamed.over(chain.get(i), made);
    }
    return made;
  }

  private LogicalPlan over(LogicalPlan node, LogicalPlan child) {
    if (node instanceof Filter) {
      return node(node, child, this::exchanged);
    }
    List<NamedExpression> list = new ArrayList<>();
    Map<Long, Attribute> after = new HashMap<>();
    for (NamedExpression each : Scala.<NamedExpression>list(((Project) node).projectList())) {
      NamedExpression made = (NamedExpression) changed((Expression) each, this::exchanged);
      if (each instanceof Alias) {
        made = Scala.alias(((Alias) made).child(), each.name(), NamedExpression.newExprId());
      }
      list.add(made);
      after.put(each.exprId().id(), made.toAttribute());
    }
    names.putAll(after);
    return new Project(Scala.seq(list), child);
  }

  private Expression exchanged(Expression expression) {
    Attribute other = expression instanceof AttributeReference ? names.get(((AttributeReference) expression).exprId().id()) : null;
    return other == null ? expression : (Expression) other;
  }

  static LogicalPlan node(LogicalPlan node, LogicalPlan child, UnaryOperator<Expression> change) {
    if (node instanceof Filter) {
      return new Filter(changed(((Filter) node).condition(), change), child);
    }
    List<NamedExpression> list = new ArrayList<>();
    for (NamedExpression each : Scala.<NamedExpression>list(((Project) node).projectList())) {
      list.add((NamedExpression) changed((Expression) each, change));
    }
    return new Project(Scala.seq(list), child);
  }

  /** From the top down; what was changed is not looked into again. */
  private static Expression changed(Expression expression, UnaryOperator<Expression> change) {
    Expression made = change.apply(expression);
    if (made != expression) {
      return made;
    }
    List<Expression> children = new ArrayList<>();
    boolean different = false;
    for (Expression child : Scala.<Expression>list(expression.children())) {
      Expression now = changed(child, change);
      different |= now != child;
      children.add(now);
    }
    return different ? (Expression) expression.withNewChildren(Scala.seq(children)) : expression;
  }
}
