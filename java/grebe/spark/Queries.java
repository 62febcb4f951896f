package grebe.spark;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.function.Function;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.CommandExecutionMode$;

import scala.Option;

/**
 * SQL texts made into frames, if they are queries. Spark carries a command out as soon as a frame is made of it, so a command is told
 * apart before: in the parsed plan, as some commands run while they are analyzed, and in the analyzed plan, as others are commands only then.
 * So are calls of Java methods by their names: over constants Spark's optimizer carries them out.
 */
@SuppressWarnings({"rawtypes", "unchecked"})
final class Queries {
  /** A parsed query is made of these packages' nodes and of our hint. Other nodes are statements of some extension's parser. */
  private static final Set<String> PACKAGES = new HashSet<>(Arrays.asList(
      "org.apache.spark.sql.catalyst.plans.logical", "org.apache.spark.sql.catalyst.analysis",
      "org.apache.spark.sql.catalyst.expressions", "grebe.spark"));
  /** What makes a node a command, by the names of its class, of a class above it, or of an interface: no version of Spark has all. */
  private static final Set<String> COMMANDS = new HashSet<>(Arrays.asList(
      "Command", "ParsedStatement", "ExecutableDuringAnalysis", "CompoundPlanStatement", "CompoundBody", "InsertIntoDir",
      "ExecuteImmediateQuery", "UnresolvedExecuteImmediate", "SupervisingCommand"));
  private static final String RESULT = "CommandResult";
  private static final Set<String> METHODS = new HashSet<>(Arrays.asList("java_method", "reflect", "try_reflect"));
  private static final String TIME_TRAVEL = "a subquery in TIMESTAMP AS OF, which Spark runs to analyze the query";

  private Queries() {}

  /**
   * The frame of a query, or else the name of the command that the text is, or of the function by which it calls Java methods, with
   * "()" behind it; nothing of the text was carried out then.
   */
  static Object frame(SparkSession session, String text) {
    Option<SparkSession> before = SparkSession.getActiveSession();
    SparkSession.setActiveSession(session);
    try {
      LogicalPlan parsed = session.sessionState().sqlParser().parsePlan(text);
      String refused = refused(parsed, true);
      if (refused != null) {
        return refused;
      }
      LogicalPlan analyzed = session.sessionState().executePlan(parsed, CommandExecutionMode$.MODULE$.SKIP()).analyzed();
      refused = refused(analyzed, false);
      return refused != null ? refused : ofRows(session, analyzed);
    } catch (Exception problem) {
      throw Queries.<RuntimeException>asIs(problem);
    } finally {
      if (before.isDefined()) {
        SparkSession.setActiveSession(before.get());
      } else {
        SparkSession.clearActiveSession();
      }
    }
  }

  /** The name of the command that a frame is, or is the result of; empty for a query. */
  static String command(Dataset frame) {
    LogicalPlan analyzed = frame.queryExecution().analyzed();
    String command = named(analyzed.getClass(), RESULT) ? analyzed.nodeName() : command(analyzed, false);
    return command == null ? "" : command;
  }

  private static String refused(LogicalPlan plan, boolean parsed) {
    String command = command(plan, parsed);
    return command != null ? command : method(plan);
  }

  /** The first command in a plan, its subqueries and definitions included; null if there is none. */
  private static String command(LogicalPlan plan, boolean parsed) {
    if (isCommand(plan.getClass()) || parsed && !PACKAGES.contains(packageOf(plan.getClass()))) {
      return plan.nodeName();
    }
    if (named(plan.getClass(), RESULT)) {
      return null; // its rows are there, and the command below has run when they were made
    }
    if (named(plan.getClass(), "RelationTimeTravel") && plan.subqueries().nonEmpty()) {
      return TIME_TRAVEL;
    }
    return below(plan, each -> command(each, parsed));
  }

  /** The function by which a plan, its subqueries and definitions included, calls a Java method; null if there is none. */
  private static String method(LogicalPlan plan) {
    for (Expression each : Scala.<Expression>list(plan.expressions())) {
      String found = method(each);
      if (found != null) {
        return found;
      }
    }
    return below(plan, Queries::method);
  }

  private static String below(LogicalPlan plan, Function<LogicalPlan, String> find) {
    for (scala.collection.Iterable more : new scala.collection.Iterable[] {plan.children(), plan.subqueries(), plan.innerChildren()}) {
      for (TreeNode each : Scala.<TreeNode>list(more)) {
        String found = each instanceof LogicalPlan ? find.apply((LogicalPlan) each) : null;
        if (found != null) {
          return found;
        }
      }
    }
    return null;
  }

  /** By the name in the parsed plan, since Spark runs parts of some queries to analyze them, and by the class where a name was made up. */
  private static String method(Expression expression) {
    if (named(expression.getClass(), "CallMethodViaReflection") || named(expression.getClass(), "TryReflect")) {
      return expression.prettyName() + "()";
    }
    if (expression instanceof UnresolvedFunction) {
      List<String> name = Scala.list(((UnresolvedFunction) expression).nameParts());
      String last = name.get(name.size() - 1).toLowerCase(Locale.ROOT);
      if (METHODS.contains(last)) {
        return last + "()";
      }
    }
    for (Expression each : Scala.<Expression>list(expression.children())) {
      String found = method(each);
      if (found != null) {
        return found;
      }
    }
    return null;
  }

  private static String packageOf(Class<?> node) {
    String name = node.getName();
    return name.substring(0, Math.max(0, name.lastIndexOf('.')));
  }

  private static boolean isCommand(Class<?> node) {
    return COMMANDS.stream().anyMatch(name -> named(node, name));
  }

  private static boolean named(Class<?> node, String name) {
    if (node == null) {
      return false;
    }
    return node.getName().endsWith("." + name) || named(node.getSuperclass(), name)
        || Arrays.stream(node.getInterfaces()).anyMatch(each -> named(each, name));
  }

  /** Spark 4 has frames in a package of their own. */
  static Object ofRows(SparkSession session, LogicalPlan plan) throws Exception {
    for (String name : new String[] {"org.apache.spark.sql.classic.Dataset", "org.apache.spark.sql.Dataset"}) {
      Class<?> frames;
      try {
        frames = Class.forName(name, true, LogicalPlan.class.getClassLoader());
      } catch (ClassNotFoundException other) {
        continue;
      }
      for (Method method : frames.getMethods()) {
        if (method.getName().equals("ofRows") && method.getParameterCount() == 2) {
          try {
            return method.invoke(null, session, plan);
          } catch (InvocationTargetException problem) {
            throw problem.getCause() instanceof Exception ? (Exception) problem.getCause() : problem;
          }
        }
      }
    }
    throw new IllegalStateException("no Dataset.ofRows");
  }

  private static <T extends Throwable> T asIs(Throwable problem) throws T {
    throw (T) problem;
  }
}
