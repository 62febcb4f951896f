package grebe.spark;

import java.util.ArrayList;
import java.util.List;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry$;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Cast$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.UnscaledValue;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.unsafe.types.UTF8String;

/** What a query that is to be stored means: its block, with every expression also as SQL over tables t0, t1, … */
@SuppressWarnings({"rawtypes", "unchecked"})
final class Stored {
  private final Json json = new Json();
  private final List<Scanned> relations = new ArrayList<>();

  private final String table;

  private Stored(String table) {
    this.table = table;
  }

  /** {"node": the first thing in it that no block has} or its relations, that of the table first, and its expressions. */
  static String describe(Dataset frame, String table) {
    Explaining.OFF.set(Boolean.TRUE);
    try {
      return new Stored(table).of(frame.queryExecution().analyzed(), frame.sparkSession().sessionState()
          .executePlan(frame.queryExecution().analyzed(), org.apache.spark.sql.execution.CommandExecutionMode$.MODULE$.SKIP())
          .optimizedPlan());
    } finally {
      Explaining.OFF.set(Boolean.FALSE);
    }
  }

  /** Its tables as frames of their own, in the order in which it is described. */
  static List<Object> tables(Dataset frame, String table) throws Exception {
    LogicalPlan analyzed = frame.queryExecution().analyzed();
    Stored stored = new Stored(table);
    Explaining.OFF.set(Boolean.TRUE);
    try {
      stored.of(analyzed, frame.sparkSession().sessionState()
          .executePlan(analyzed, org.apache.spark.sql.execution.CommandExecutionMode$.MODULE$.SKIP()).optimizedPlan());
    } finally {
      Explaining.OFF.set(Boolean.FALSE);
    }
    List<Object> found = new ArrayList<>();
    for (Scanned relation : stored.relations) {
      for (LogicalPlan leaf : Scala.<LogicalPlan>list(analyzed.collectLeaves())) {
        if (leaf.outputSet().intersect(relation.leaf.outputSet()).nonEmpty()) {
          found.add(Queries.ofRows(frame.sparkSession(), leaf));
        }
      }
    }
    return found;
  }

  private String of(LogicalPlan analyzed, LogicalPlan optimized) {
    // An order without a limit means nothing to who reads the rows later.
    LogicalPlan plan = optimized instanceof Sort ? ((Sort) optimized).child() : optimized;
    Block block = Block.of(plan);
    json.open().key("opaque").list();
    opaque(analyzed);
    json.endList().key("lossy").list();
    lossy(plan);
    json.endList();
    if (block == null) {
      return json.key("node").text(foreign(plan)).close().toString();
    }
    for (LogicalPlan leaf : block.leaves) {
      Scanned relation = Scanned.of(leaf);
      boolean first = Snapshot.canonical(relation.roots().get(0)).equals(table);
      relations.add(first ? 0 : relations.size(), relation);
    }
    json.key("relations").list();
    for (Scanned relation : relations) {
      json.open().key("output").list();
      for (AttributeReference each : Scala.<AttributeReference>list(relation.leaf.output())) {
        json.list().number(each.exprId().id()).text(each.name()).text(each.dataType().json()).endList();
      }
      json.endList();
      relation.describe(json);
      json.close();
    }
    json.endList().key("block");
    block.describe(json, relations);
    json.key("where").list();
    block.conjuncts.forEach(this::sql);
    json.endList().key("keys").list();
    if (block.groups != null) {
      block.groups.forEach(this::column);
    } else {
      block.outputs.forEach(each -> column(((Alias) each).child()));
    }
    json.endList().key("measures").list();
    block.outputs.forEach(each -> measures(((Alias) each).child()));
    return json.endList().close().toString();
  }

  private void column(Expression expression) {
    json.open().key("tree");
    new Tree(json, relations).write(expression);
    json.key("type").text(expression.dataType().json()).key("sql");
    sql(expression);
    json.close();
  }

  private void measures(Expression expression) {
    if (!(expression instanceof AggregateExpression)) {
      Scala.<Expression>list(expression.children()).forEach(this::measures);
      return;
    }
    AggregateExpression aggregate = (AggregateExpression) expression;
    Expression function = (Expression) aggregate.aggregateFunction();
    json.open().key("function").text(function.getClass().getSimpleName()).key("type").text(function.dataType().json());
    json.key("distinct").truth(aggregate.isDistinct()).key("filtered").truth(aggregate.filter().isDefined());
    json.key("tree");
    new Tree(json, relations).write(function);
    json.key("arguments").list();
    Scala.<Expression>list(function.children()).forEach(this::column);
    json.endList().close();
  }

  private void sql(Expression expression) {
    json.text(qualified(expression).sql());
  }

  private Expression qualified(Expression expression) {
    if (expression instanceof UnscaledValue) {
      // What the optimizer makes of decimals that fit a whole number; it has no name in SQL.
      Expression decimal = ((UnscaledValue) expression).child();
      java.math.BigDecimal power = java.math.BigDecimal.TEN.pow(((DecimalType) decimal.dataType()).scale());
      Expression shifted = call("*", qualified(decimal), Literal$.MODULE$.apply(power));
      return Cast$.MODULE$.apply(shifted, DataTypes.LongType, false);
    }
    if (expression instanceof StaticInvoke && ((StaticInvoke) expression).functionName().equals("readSidePadding")) {
      return padded(Scala.<Expression>list(expression.children()));
    }
    if (expression instanceof Literal && expression.dataType() instanceof DecimalType && ((Literal) expression).value() != null) {
      return decimal((Literal) expression);
    }
    if (expression instanceof Literal && isMoment(expression) && ((Literal) expression).value() != null) {
      return moment(((Literal) expression).value());
    }
    if (expression instanceof InSet && isMoment(((InSet) expression).child())) {
      return among(((InSet) expression).child(), Scala.list(((InSet) expression).hset()));
    }
    if (!(expression instanceof AttributeReference)) {
      return Scala.withChildren(expression, this::qualified);
    }
    AttributeReference attribute = (AttributeReference) expression;
    for (int i = 0; i < relations.size(); i++) {
      if (relations.get(i).leaf.outputSet().contains(attribute)) {
        return attribute.withQualifier(Scala.seq("t" + i));
      }
    }
    throw new IllegalStateException("no relation has " + attribute);
  }

  /** What Spark puts over every scan of a column of type CHAR, in words of SQL: the files may have fewer blanks, never other signs. */
  private Expression padded(List<Expression> arguments) {
    Expression text = qualified(arguments.get(0));
    Expression shorter = call("<", call("length", text), arguments.get(1));
    return new If(shorter, call("rpad", text, arguments.get(1), Literal$.MODULE$.apply(" ")), text);
  }

  /** A timestamp in words that mean the same in every time zone: SQL has a local time, and does not say of which zone. */
  private static Expression moment(Object micros) {
    return call("timestamp_micros", Literal$.MODULE$.apply(micros));
  }

  /** SQL takes the type of a decimal from its digits, so that another one has to be named. */
  private static Expression decimal(Literal literal) {
    java.math.BigDecimal value = ((org.apache.spark.sql.types.Decimal) literal.value()).toJavaBigDecimal();
    DecimalType type = (DecimalType) literal.dataType();
    boolean isSaid = value.scale() == type.scale() && Math.max(value.precision(), value.scale()) == type.precision();
    return isSaid ? literal : Cast$.MODULE$.apply(literal, type, false);
  }

  private static boolean isMoment(Expression expression) {
    return expression.dataType().equals(DataTypes.TimestampType);
  }

  private Expression among(Expression asked, List<Object> moments) {
    List<Expression> each = new ArrayList<>();
    for (Object micros : moments) {
      each.add(micros == null ? Literal$.MODULE$.create(null, DataTypes.TimestampType) : moment(micros));
    }
    return new In(qualified(asked), Scala.seq(each));
  }

  private static Expression call(String name, Object... arguments) {
    return (Expression) FunctionRegistry$.MODULE$.builtin().lookupFunction(new FunctionIdentifier(name), Scala.seq(arguments));
  }

  /** What means something else tomorrow, or what nobody but its author knows. */
  private void opaque(LogicalPlan plan) {
    if (plan instanceof View && ((View) plan).isTempView()) {
      json.text("the temporary view " + ((View) plan).desc().identifier().table());
    }
    Scala.<Expression>list(plan.expressions()).forEach(this::opaque);
    Scala.<LogicalPlan>list(plan.children()).forEach(this::opaque);
  }

  private void opaque(Expression expression) {
    String name = expression.getClass().getSimpleName();
    boolean changes = name.startsWith("Current") || name.startsWith("LocalTimestamp") || name.equals("Now")
        || name.startsWith("Unix") && expression.children().isEmpty();
    boolean random = !expression.deterministic() && Scala.<Expression>list(expression.children()).stream().allMatch(Expression::deterministic);
    if (changes || random || name.contains("UDF") || name.contains("UserDefined")) {
      json.text(name.contains("UDF") ? expression.toString().split("\\(")[0] : expression.prettyName());
    }
    Scala.<Expression>list(expression.children()).forEach(this::opaque);
  }

  /** Constants that SQL does not tell whole. */
  private void lossy(LogicalPlan plan) {
    Scala.<Expression>list(plan.expressions()).forEach(this::lossy);
    Scala.<LogicalPlan>list(plan.children()).forEach(this::lossy);
  }

  private void lossy(Expression expression) {
    if (expression instanceof Literal) {
      lossy(((Literal) expression).value(), expression.dataType());
    } else if (expression instanceof InSet) {
      Scala.list(((InSet) expression).hset()).forEach(each -> lossy(each, ((InSet) expression).child().dataType()));
    }
    Scala.<Expression>list(expression.children()).forEach(this::lossy);
  }

  private void lossy(Object value, DataType type) {
    if (!type.equals(DataTypes.TimestampType) && Constants.isLossy(value, type)) {
      json.text(value instanceof UTF8String ? "a text that is no UTF-8" : "a timestamp, or a text that is no UTF-8, within " + type.simpleString());
    }
  }

  private static String foreign(LogicalPlan plan) {
    for (LogicalPlan child : Scala.<LogicalPlan>list(plan.children())) {
      if (Block.of(child) == null) {
        return foreign(child);
      }
    }
    return plan.nodeName();
  }
}
