package grebe.spark;

import java.util.ArrayList;
import java.util.Base64;
import java.util.List;

import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;

/** Expressions as JSON: what a predicate can be understood by, and of the rest only which columns it looks at. */
@SuppressWarnings({"rawtypes", "unchecked"})
final class Expressions {
  private Expressions() {}

  /** A column, or a field inside one. */
  static boolean isReference(Expression expression) {
    Expression at = expression;
    while (at instanceof GetStructField) {
      at = ((GetStructField) at).child();
    }
    return at instanceof AttributeReference;
  }

  /** ["@", id, field…], or null for anything else. */
  static void reference(Json json, Expression expression) {
    if (!isReference(expression)) {
      json.nothing();
      return;
    }
    List<String> path = new ArrayList<>();
    Expression at = expression;
    while (at instanceof GetStructField) {
      path.add(0, ((GetStructField) at).extractFieldName());
      at = ((GetStructField) at).child();
    }
    json.list().text("@").number(((AttributeReference) at).exprId().id());
    path.forEach(json::text);
    json.endList();
  }

  static void conjuncts(Json json, Expression expression) {
    if (expression instanceof And) {
      conjuncts(json, ((And) expression).left());
      conjuncts(json, ((And) expression).right());
    } else {
      write(json, expression);
    }
  }

  /** count(1), min(#12) and the like as text; anything else as its class, which no metadata answers. */
  static void function(Json json, Expression named) {
    Expression plain = named instanceof Alias ? ((Alias) named).child() : named;
    if (plain instanceof AggregateExpression) {
      AggregateExpression aggregate = (AggregateExpression) plain;
      Expression function = (Expression) aggregate.aggregateFunction();
      List<Expression> arguments = Scala.list(function.children());
      boolean simple = !aggregate.isDistinct() && !aggregate.filter().isDefined() && arguments.size() == 1;
      if (simple && function instanceof Count && arguments.get(0) instanceof Literal && ((Literal) arguments.get(0)).value() != null) {
        json.text("count(1)");
        return;
      }
      if (simple && (function instanceof Min || function instanceof Max || function instanceof Count)
          && arguments.get(0) instanceof AttributeReference) {
        long id = ((AttributeReference) arguments.get(0)).exprId().id();
        json.text((function instanceof Min ? "min(#" : function instanceof Max ? "max(#" : "count(#") + id + ")");
        return;
      }
    }
    json.text(aggregated(plain));
  }

  /** sum(#12) and the like; what looks at more than one column, or at none, as its class. */
  private static String aggregated(Expression plain) {
    if (!(plain instanceof AggregateExpression)) {
      return plain.getClass().getSimpleName();
    }
    AggregateExpression aggregate = (AggregateExpression) plain;
    Expression function = (Expression) aggregate.aggregateFunction();
    List<Expression> arguments = Scala.list(function.children());
    boolean simple = !aggregate.filter().isDefined() && !arguments.isEmpty() && arguments.get(0) instanceof AttributeReference;
    String of = simple ? "#" + ((AttributeReference) arguments.get(0)).exprId().id() : "?";
    return function.prettyName() + (aggregate.isDistinct() ? "_distinct(" : "(") + of + ")";
  }

  static void write(Json json, Expression expression) {
    if (isReference(expression)) {
      reference(json, expression);
    } else if (expression instanceof Literal) {
      Literal literal = (Literal) expression;
      literal(json, literal.value(), literal.dataType().json());
    } else if (expression instanceof Cast) {
      Cast cast = (Cast) expression;
      json.list().text("cast");
      write(json, cast.child());
      json.text(cast.dataType().json()).text(cast.evalMode().toString());
      json.text(cast.timeZoneId().isDefined() ? cast.timeZoneId().get() : null).endList();
    } else if (expression instanceof InSet) {
      InSet in = (InSet) expression;
      json.list().text("In");
      write(json, in.child());
      for (Object value : Scala.list(in.hset())) {
        literal(json, value, in.child().dataType().json());
      }
      json.endList();
    } else if (name(expression) != null) {
      json.list().text(name(expression));
      for (Object child : Scala.list(expression.children())) {
        write(json, (Expression) child);
      }
      if (expression instanceof Like) {
        json.text(String.valueOf(((Like) expression).escapeChar()));
      }
      json.endList();
    } else if (isFunction(expression)) {
      call(json, expression);
    } else if (!Geometries.write(json, expression)) {
      json.list().text("?").text(expression.getClass().getSimpleName());
      for (Object each : Scala.list(expression.references())) {
        json.list().text("@").number(((Attribute) each).exprId().id()).endList();
      }
      json.endList();
    }
  }

  private static String name(Expression expression) {
    if (expression instanceof In && !plainValues((In) expression)) {
      return null;
    }
    String name = expression.getClass().getSimpleName();
    switch (name) {
      case "And": case "Or": case "Not": case "EqualTo": case "EqualNullSafe": case "LessThan": case "LessThanOrEqual":
      case "GreaterThan": case "GreaterThanOrEqual": case "In": case "IsNull": case "IsNotNull": case "StartsWith": case "EndsWith":
      case "Contains": case "Like":
        return name;
      default:
        return null;
    }
  }

  /** ["f", class, type, mode, zone, argument…]: those of which Python knows how they order their values. */
  private static void call(Json json, Expression expression) {
    json.list().text("f").text(expression.getClass().getSimpleName()).text(expression.dataType().json()).text(mode(expression));
    boolean zoned = expression instanceof TimeZoneAwareExpression && ((TimeZoneAwareExpression) expression).timeZoneId().isDefined();
    json.text(zoned ? ((TimeZoneAwareExpression) expression).timeZoneId().get() : null);
    for (Object child : Scala.list(expression.children())) {
      write(json, (Expression) child);
    }
    json.endList();
  }

  private static boolean isFunction(Expression expression) {
    switch (expression.getClass().getSimpleName()) {
      case "Year": case "TruncTimestamp": case "TruncDate": case "Substring": case "DateAdd": case "DateSub": case "UnixSeconds":
      case "UnixMillis": case "UnixMicros": case "Add": case "Subtract": case "Multiply": case "UnaryMinus":
        return true;
      default:
        return false;
    }
  }

  /** What becomes of a number that does not fit its type. */
  private static String mode(Expression expression) {
    if (expression instanceof BinaryArithmetic) {
      return ((BinaryArithmetic) expression).evalMode().toString();
    }
    return expression instanceof UnaryMinus ? ((UnaryMinus) expression).failOnError() ? "ANSI" : "LEGACY" : null;
  }

  private static boolean plainValues(In in) {
    return Scala.<Expression>list(in.list()).stream().allMatch(each -> each instanceof Literal);
  }

  private static void literal(Json json, Object value, String type) {
    json.list().text("$").text(type);
    value(json, value);
    json.endList();
  }

  /** Numbers as text: JSON's own would lose digits. */
  static void value(Json json, Object value) {
    if (value == null) {
      json.nothing();
    } else if (value instanceof Boolean) {
      json.truth((Boolean) value);
    } else if (value instanceof byte[]) {
      json.text(Base64.getEncoder().encodeToString((byte[]) value));
    } else {
      json.text(value.toString());
    }
  }
}
