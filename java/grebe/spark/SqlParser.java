package grebe.spark;

import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;

import org.antlr.v4.runtime.CharStreams;
import org.antlr.v4.runtime.Token;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.parser.SqlBaseLexer;
import org.apache.spark.sql.catalyst.parser.UpperCaseCharStream;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ParsedStatement;

/**
 * The session's own parser, which also understands {@code SELECT /*+ GREBE(only a, b) *}{@code / …} and the statements on indexes. A
 * hint counts for the whole query; the text without it goes to the parser below, so that every other extension still sees what it knows.
 */
final class SqlParser implements InvocationHandler {
  private static final String HINT_START = "/*+";
  private static final String HINT_END = "*/";
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
    List<String> hints = new ArrayList<>();
    Object[] passed = arguments;
    try {
      Statement statement = Statement.in(text, session, bridge);
      if (statement != null) {
        return statement;
      }
      if (text.contains(HINT_START) && text.toUpperCase(Locale.ROOT).contains("GREBE")) {
        passed = arguments.clone();
        passed[0] = without(text, hints);
      }
    } catch (Throwable problem) {
      // A text that we cannot look into is not ours.
      unlessFatal(problem);
      bridge.failed(problem);
      passed = arguments;
      hints.clear();
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

  private static void unlessFatal(Throwable problem) {
    if (problem instanceof ThreadDeath || problem instanceof VirtualMachineError && !(problem instanceof StackOverflowError)) {
      throw (Error) problem;
    }
    if (problem instanceof InterruptedException) {
      Thread.currentThread().interrupt();
    }
  }

  /**
   * Blanks take the place of the hints, so that positions in messages stay right. Hints are found by Spark's own lexer: what is a
   * literal, a comment or a hint is its to say, in every version. It counts code points.
   */
  static String without(String sql, List<String> hints) {
    int[] text = sql.codePoints().toArray();
    List<Token> hint = null;
    for (Token token : tokens(sql)) {
      if (isText(token, HINT_START)) {
        hint = new ArrayList<>(Collections.singletonList(token));
      } else if (hint != null) {
        hint.add(token);
        if (isText(token, HINT_END)) {
          takeOurs(text, hint, hints);
          hint = null;
        }
      }
    }
    return hints.isEmpty() ? sql : new String(text, 0, text.length);
  }

  /** Without comments and blanks. Tokens are told by their text, since their numbers differ from one version of Spark to the next. */
  private static List<Token> tokens(String sql) {
    SqlBaseLexer lexer = new SqlBaseLexer(new UpperCaseCharStream(CharStreams.fromString(sql)));
    lexer.removeErrorListeners();
    List<Token> found = new ArrayList<>();
    for (Token token = lexer.nextToken(); token.getType() != Token.EOF; token = lexer.nextToken()) {
      if (token.getChannel() == Token.DEFAULT_CHANNEL) {
        found.add(token);
      }
    }
    return found;
  }

  private static boolean isText(Token token, String text) {
    return token.getText().equalsIgnoreCase(text);
  }

  /** Takes every {@code GREBE(…)} out of a hint, with a comma beside it, and the whole hint where nothing else is left. */
  private static void takeOurs(int[] text, List<Token> hint, List<String> hints) {
    List<Token> left = new ArrayList<>();
    int found = hints.size();
    int depth = 0;
    int at = 0;
    while (at < hint.size()) {
      int end = depth == 0 ? endOfOurs(hint, at) : -1;
      if (end < 0) {
        Token other = hint.get(at++);
        depth += isText(other, "(") ? 1 : isText(other, ")") ? -1 : 0;
        left.add(other);
        continue;
      }
      hints.add(joined(hint.subList(at + 2, end)));
      blank(text, hint.get(at), hint.get(end));
      at = end + 1;
      Token before = left.get(left.size() - 1);
      if (isText(before, ",")) {
        left.remove(left.size() - 1);
        blank(text, before, before);
      } else if (isText(before, HINT_START) && isText(hint.get(at), ",")) {
        // What followed it begins the hint now.
        blank(text, hint.get(at), hint.get(at));
        at++;
      }
    }
    if (hints.size() > found && left.size() == 2) {
      blank(text, left.get(0), left.get(1));
    }
  }

  /** Where {@code GREBE(…)} that begins at a token ends; -1 if none begins there. Brackets within it make it none of ours. */
  private static int endOfOurs(List<Token> hint, int start) {
    if (!isText(hint.get(start), "GREBE") || !isText(hint.get(start + 1), "(")) {
      return -1;
    }
    for (int at = start + 2; at < hint.size(); at++) {
      if (isText(hint.get(at), ")")) {
        return at;
      }
      if (isText(hint.get(at), "(")) {
        return -1;
      }
    }
    return -1;
  }

  /** One blank stands for all that is between two tokens. */
  private static String joined(List<Token> tokens) {
    StringBuilder text = new StringBuilder();
    int end = -1;
    for (Token token : tokens) {
      if (end >= 0 && token.getStartIndex() > end) {
        text.append(' ');
      }
      text.append(token.getText());
      end = token.getStopIndex() + 1;
    }
    return text.toString();
  }

  private static void blank(int[] text, Token first, Token last) {
    for (int i = first.getStartIndex(); i <= last.getStopIndex(); i++) {
      if (text[i] != '\n') {
        text[i] = ' ';
      }
    }
  }
}
