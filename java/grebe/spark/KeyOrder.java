package grebe.spark;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;

import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Join;

import scala.Option;

/** Spark merges by the keys of a join in the order in which the condition names them; that of the index spares a sort. */
@SuppressWarnings({"rawtypes", "unchecked"})
final class KeyOrder {
  private KeyOrder() {}

  /** The same join, its equalities of columns in the order of the indexes. All other parts of the condition stay where they are. */
  static Join of(Join join, Map<Long, Integer> ranks) {
    if (!join.condition().isDefined()) {
      return join;
    }
    List<Expression> parts = new ArrayList<>();
    split((Expression) join.condition().get(), parts);
    List<Integer> places = new ArrayList<>();
    List<Expression> keys = new ArrayList<>();
    for (int i = 0; i < parts.size(); i++) {
      if (rank(parts.get(i), ranks) < Integer.MAX_VALUE) {
        places.add(i);
        keys.add(parts.get(i));
      }
    }
    List<Expression> sorted = new ArrayList<>(keys);
    sorted.sort(Comparator.comparingInt(key -> rank(key, ranks)));
    if (sorted.equals(keys)) {
      return join;
    }
    for (int i = 0; i < places.size(); i++) {
      parts.set(places.get(i), sorted.get(i));
    }
    Expression condition = parts.get(0);
    for (Expression part : parts.subList(1, parts.size())) {
      condition = new And(condition, part);
    }
    return join.copy(join.left(), join.right(), join.joinType(), Option.apply(condition), join.hint());
  }

  private static void split(Expression expression, List<Expression> parts) {
    if (expression instanceof And) {
      split(((And) expression).left(), parts);
      split(((And) expression).right(), parts);
    } else {
      parts.add(expression);
    }
  }

  private static int rank(Expression expression, Map<Long, Integer> ranks) {
    if (!(expression instanceof EqualTo)) {
      return Integer.MAX_VALUE;
    }
    return Math.min(of(((EqualTo) expression).left(), ranks), of(((EqualTo) expression).right(), ranks));
  }

  private static int of(Expression side, Map<Long, Integer> ranks) {
    return side instanceof AttributeReference
        ? ranks.getOrDefault(((AttributeReference) side).exprId().id(), Integer.MAX_VALUE) : Integer.MAX_VALUE;
  }
}
