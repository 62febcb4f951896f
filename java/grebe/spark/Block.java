package grebe.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;

import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.plans.Inner$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;

/**
 * Relations that are joined, filtered and projected, and maybe grouped on top, told without the order in which a plan does it: all
 * expressions are over the columns of the relations.
 */
@SuppressWarnings({"rawtypes", "unchecked"})
final class Block {
  final LogicalPlan top;
  final List<LogicalPlan> leaves = new ArrayList<>();
  final List<Expression> conjuncts = new ArrayList<>();
  /** Null if nothing is grouped. */
  List<Expression> groups;
  /** Under the names and ids that the block gives them. */
  final List<NamedExpression> outputs = new ArrayList<>();
  private boolean plain = true;

  private Block(LogicalPlan top) {
    this.top = top;
  }

  /** The blocks of a plan and of its subqueries, from the top down. */
  static List<Block> in(LogicalPlan plan) {
    List<Block> found = new ArrayList<>();
    collect(plan, found);
    return found;
  }

  private static void collect(LogicalPlan plan, List<Block> found) {
    Block block = of(plan);
    if (block != null) {
      found.add(block);
      return;
    }
    Scala.<LogicalPlan>list(plan.children()).forEach(child -> collect(child, found));
    Scala.<LogicalPlan>list(plan.subqueries()).forEach(subquery -> collect(subquery, found));
  }

  /** The plan as one block; null if it is none. */
  static Block of(LogicalPlan plan) {
    Block block = new Block(plan);
    boolean grouped = plan instanceof Aggregate;
    Map<Long, Expression> meant = block.below(grouped ? ((Aggregate) plan).child() : plan);
    if (meant == null) {
      return null;
    }
    if (grouped) {
      block.groups = new ArrayList<>();
      for (Object each : Scala.list(((Aggregate) plan).groupingExpressions())) {
        block.groups.add(block.inlined((Expression) each, meant));
      }
    }
    for (Object each : Scala.list(grouped ? ((Aggregate) plan).aggregateExpressions() : plan.output())) {
      NamedExpression named = (NamedExpression) each;
      Expression of = named instanceof Alias ? ((Alias) named).child() : (Expression) named;
      block.outputs.add(Scala.alias(block.inlined(of, meant), named.name(), named.exprId()));
    }
    return block.plain && block.different() ? block : null;
  }

  /** What each attribute means, in terms of the relations' columns; null if something else is done there. */
  private Map<Long, Expression> below(LogicalPlan plan) {
    if (plan instanceof Project) {
      return projected((Project) plan);
    }
    if (plan instanceof Filter) {
      Map<Long, Expression> meant = below(((Filter) plan).child());
      if (meant != null) {
        split(((Filter) plan).condition(), meant);
      }
      return meant;
    }
    if (plan instanceof Join) {
      return joined((Join) plan);
    }
    if (Scanned.of(plan) == null) {
      return null;
    }
    leaves.add(plan);
    Map<Long, Expression> meant = new HashMap<>();
    Scala.<Attribute>list(plan.output()).forEach(each -> meant.put(each.exprId().id(), (Expression) each));
    return meant;
  }

  private Map<Long, Expression> projected(Project project) {
    Map<Long, Expression> meant = below(project.child());
    if (meant == null) {
      return null;
    }
    Map<Long, Expression> after = new HashMap<>();
    for (NamedExpression each : Scala.<NamedExpression>list(project.projectList())) {
      after.put(each.exprId().id(), inlined(each instanceof Alias ? ((Alias) each).child() : (Expression) each, meant));
    }
    return after;
  }

  private Map<Long, Expression> joined(Join join) {
    Map<Long, Expression> meant = join.joinType() == Inner$.MODULE$ ? below(join.left()) : null;
    Map<Long, Expression> right = meant == null ? null : below(join.right());
    if (right == null) {
      return null;
    }
    meant.putAll(right);
    if (join.condition().isDefined()) {
      split((Expression) join.condition().get(), meant);
    }
    return meant;
  }

  private void split(Expression condition, Map<Long, Expression> meant) {
    if (condition instanceof And) {
      split(((And) condition).left(), meant);
      split(((And) condition).right(), meant);
    } else {
      conjuncts.add(inlined(condition, meant));
    }
  }

  private Expression inlined(Expression expression, Map<Long, Expression> meant) {
    if (expression instanceof PlanExpression || !expression.deterministic()) {
      plain = false;
    }
    UnaryOperator<Expression> again = child -> inlined(child, meant);
    if (!(expression instanceof AttributeReference)) {
      return Scala.withChildren(expression, again);
    }
    Expression found = meant.get(((AttributeReference) expression).exprId().id());
    plain &= found != null;
    return found == null ? expression : found;
  }

  /** Columns tell relations apart, so that none may come twice. */
  private boolean different() {
    for (int i = 0; i < leaves.size(); i++) {
      for (int j = 0; j < i; j++) {
        if (leaves.get(i) == leaves.get(j) || !leaves.get(i).outputSet().intersect(leaves.get(j).outputSet()).isEmpty()) {
          return false;
        }
      }
    }
    return true;
  }

  /** Relations by their places in the list, and all expressions as trees. */
  void describe(Json json, List<Scanned> relations) {
    Tree tree = new Tree(json, relations);
    json.open().key("relations").list();
    for (LogicalPlan leaf : leaves) {
      json.number(position(leaf, relations));
    }
    json.endList().key("conjuncts").list();
    conjuncts.forEach(tree::write);
    json.endList().key("predicates").list();
    conjuncts.forEach(each -> Expressions.write(json, each));
    json.endList().key("groups");
    if (groups == null) {
      json.nothing();
    } else {
      json.list();
      groups.forEach(tree::write);
      json.endList();
    }
    json.key("outputs").list();
    for (NamedExpression each : outputs) {
      json.list().text(each.name());
      tree.write(((Alias) each).child());
      json.endList();
    }
    json.endList().close();
  }

  private static int position(LogicalPlan leaf, List<Scanned> relations) {
    for (int i = 0; i < relations.size(); i++) {
      if (relations.get(i).leaf == leaf) {
        return i;
      }
    }
    throw new IllegalStateException("a relation that was not described");
  }
}
