package grebe.spark;

import java.util.ArrayList;
import java.util.Base64;
import java.util.List;

import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.Complete$;
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

  /** count(1), sum(#12) and the like, for people and costs; what looks at several columns, or at none, as sum(?); else its class. */
  static void function(Json json, Expression named) {
    AggregateExpression aggregate = aggregate(named);
    if (aggregate == null) {
      json.text((named instanceof Alias ? ((Alias) named).child() : named).getClass().getSimpleName());
      return;
    }
    Expression function = (Expression) aggregate.aggregateFunction();
    List<Expression> arguments = Scala.list(function.children());
    boolean alone = !aggregate.filter().isDefined() && arguments.size() == 1;
    boolean rows = alone && !aggregate.isDistinct() && function.getClass() == Count.class && isValue(arguments.get(0));
    boolean column = alone && arguments.get(0) instanceof AttributeReference;
    String of = rows ? "1" : column ? "#" + ((AttributeReference) arguments.get(0)).exprId().id() : "?";
    json.text(function.prettyName() + (aggregate.isDistinct() ? "_distinct(" : "(") + of + ")");
  }

  /**
   * What metadata may answer: exactly count(a value that is not NULL), count(column), min(column) and max(column), not DISTINCT, without
   * FILTER, and of the least and the greatest only for types of which an answer can be made. As ["count"] or ["min", id]; all else is null.
   */
  static void answerable(Json json, Expression named) {
    AggregateExpression aggregate = aggregate(named);
    Expression function = aggregate == null ? null : (Expression) aggregate.aggregateFunction();
    List<Expression> arguments = function == null ? new ArrayList<>() : Scala.list(function.children());
    if (arguments.size() != 1 || aggregate.isDistinct() || aggregate.filter().isDefined() || aggregate.mode() != Complete$.MODULE$) {
      json.nothing();
      return;
    }
    Class<?> kind = function.getClass();
    Expression argument = arguments.get(0);
    boolean extreme = (kind == Min.class || kind == Max.class) && Rewrite.isAnswerable(argument.dataType());
    if (kind == Count.class && isValue(argument)) {
      json.list().text("count").endList();
    } else if ((kind == Count.class || extreme) && argument.getClass() == AttributeReference.class) {
      String name = kind == Count.class ? "count" : kind == Min.class ? "min" : "max";
      json.list().text(name).number(((AttributeReference) argument).exprId().id()).endList();
    } else {
      json.nothing();
    }
  }

  /** The aggregate that an output is, by itself; null for anything else, also for what is made of aggregates. */
  private static AggregateExpression aggregate(Expression named) {
    Expression plain = named.getClass() == Alias.class ? ((Alias) named).child() : named;
    return plain.getClass() == AggregateExpression.class ? (AggregateExpression) plain : null;
  }

  private static boolean isValue(Expression expression) {
    return expression.getClass() == Literal.class && ((Literal) expression).value() != null;
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
