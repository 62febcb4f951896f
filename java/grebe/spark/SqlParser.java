package grebe.spark;

import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ParsedStatement;

/**
 * The session's own parser, which also understands {@code SELECT /*+ GREBE(only a, b) *}{@code / …} and the statements on indexes. A
 * hint counts for the whole query; the text without it goes to the parser below, so that every other extension still sees what it knows.
 */
final class SqlParser implements InvocationHandler {
  private static final Pattern OURS = Pattern.compile("(?i)\\s*,?\\s*\\bGREBE\\s*\\(([^()]*)\\)");
  private final SparkSession session;
  private final ParserInterface below;

  private SqlParser(SparkSession session, ParserInterface below) {
    this.session = session;
    this.below = below;
  }

  static ParserInterface over(SparkSession session, ParserInterface parser) {
    return (ParserInterface) Proxy.newProxyInstance(
        SqlParser.class.getClassLoader(), new Class<?>[] {ParserInterface.class}, new SqlParser(session, parser));
  }

  /** Puts it over the session's parser, once. */
  static void install(SparkSession session) throws ReflectiveOperationException {
    ParserInterface parser = session.sessionState().sqlParser();
    if (!isOurs(parser)) {
      set(session, over(session, parser));
    }
  }

  static void remove(SparkSession session) throws ReflectiveOperationException {
    ParserInterface parser = session.sessionState().sqlParser();
    if (isOurs(parser)) {
      set(session, ((SqlParser) Proxy.getInvocationHandler(parser)).below);
    }
  }

  private static boolean isOurs(ParserInterface parser) {
    return Proxy.isProxyClass(parser.getClass()) && Proxy.getInvocationHandler(parser) instanceof SqlParser;
  }

  private static void set(SparkSession session, ParserInterface parser) throws ReflectiveOperationException {
    Field field = org.apache.spark.sql.internal.SessionState.class.getDeclaredField("sqlParser");
    field.setAccessible(true);
    field.set(session.sessionState(), parser);
  }

  @Override
  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    boolean plan = method.getName().startsWith("parsePlan") && arguments[0] instanceof String;
    Bridge bridge = Bridge.active;
    return plan && bridge != null ? parsed(bridge, method, arguments) : byBelow(method, arguments);
  }

  private Object parsed(Bridge bridge, Method method, Object[] arguments) throws Throwable {
    String text = (String) arguments[0];
    Statement statement = Statement.in(text, session, bridge);
    if (statement != null) {
      return statement;
    }
    List<String> hints = new ArrayList<>();
    Object[] passed = arguments;
    if (text.contains("/*+") && text.toUpperCase(java.util.Locale.ROOT).contains("GREBE")) {
      passed = arguments.clone();
      passed[0] = without(text, hints);
    }
    Object result = byBelow(method, passed);
    boolean query = result instanceof LogicalPlan && !(result instanceof Command) && !(result instanceof ParsedStatement);
    return hints.isEmpty() || !query ? result : new Hinted(String.join(";", hints), (LogicalPlan) result);
  }

  private Object byBelow(Method method, Object[] arguments) throws Throwable {
    try {
      return method.invoke(below, arguments);
    } catch (InvocationTargetException problem) {
      throw problem.getCause();
    }
  }

  /** Blanks take the place of the hints, so that positions in messages stay right. Text in quotes and other comments is left alone. */
  static String without(String sql, List<String> hints) {
    StringBuilder out = new StringBuilder(sql);
    int at = 0;
    while (at < sql.length()) {
      char c = sql.charAt(at);
      if (c == '\'' || c == '"' || c == '`') {
        at = quoted(sql, at);
      } else if (sql.startsWith("--", at)) {
        int end = sql.indexOf('\n', at);
        at = end < 0 ? sql.length() : end;
      } else if (sql.startsWith("/*", at)) {
        int end = sql.indexOf("*/", at + 2);
        end = end < 0 ? sql.length() : end + 2;
        if (sql.startsWith("/*+", at)) {
          hint(sql, at, end, out, hints);
        }
        at = end;
      } else {
        at++;
      }
    }
    return out.toString();
  }

  private static int quoted(String sql, int start) {
    char quote = sql.charAt(start);
    int at = start + 1;
    while (at < sql.length() && sql.charAt(at) != quote) {
      at += sql.charAt(at) == '\\' && quote != '`' ? 2 : 1;
    }
    return Math.min(at + 1, sql.length());
  }

  private static void hint(String sql, int start, int end, StringBuilder out, List<String> hints) {
    String body = sql.substring(start + 3, Math.max(start + 3, end - 2));
    Matcher found = OURS.matcher(body);
    StringBuilder rest = new StringBuilder(body);
    while (found.find()) {
      hints.add(found.group(1).trim());
      blank(rest, found.start(), found.end());
    }
    String left = rest.toString().trim();
    if (left.isEmpty()) {
      blank(out, start, end);
    } else {
      // What followed a hint of ours may begin with a comma.
      int comma = left.startsWith(",") ? rest.indexOf(",") : -1;
      if (comma >= 0) {
        rest.setCharAt(comma, ' ');
      }
      out.replace(start + 3, start + 3 + rest.length(), rest.toString());
    }
  }

  private static void blank(StringBuilder text, int start, int end) {
    for (int i = start; i < end; i++) {
      if (text.charAt(i) != '\n') {
        text.setCharAt(i, ' ');
      }
    }
  }
}
