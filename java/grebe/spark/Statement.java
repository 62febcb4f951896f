package grebe.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.spark.QueryContext;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.command.RunnableCommand;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampType;

/** A statement on indexes: Python reads it when it is parsed, and carries it out when it runs. */
@SuppressWarnings({"rawtypes", "unchecked"})
public final class Statement extends LogicalPlan implements RunnableCommand {
  private static final Set<String> VERBS = new HashSet<>(Arrays.asList("CREATE", "SHOW", "DESC", "DESCRIBE", "REFRESH", "OPTIMIZE", "DROP",
      "RESTORE", "VACUUM", "CANCEL", "VERIFY", "REPAIR", "EXPLAIN"));
  private static final List<String> CREATE_OR_REPLACE = Arrays.asList("CREATE", "OR", "REPLACE");
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final String OF_DATABASES = ".jdbc.";

  private final String text;
  private final Bridge bridge;
  private final StructType schema;
  private final scala.collection.immutable.Seq output;
  private scala.collection.immutable.Seq patterns = Scala.nothing();

  // Public, as Spark copies nodes through their constructors.
  public Statement(String text, Bridge bridge, StructType schema, scala.collection.immutable.Seq output) {
    this.text = text;
    this.bridge = bridge;
    this.schema = schema;
    this.output = output;
  }

  /**
   * The statement that a text is; null: Spark's parser is to read it. What is wrong with it is said when it runs, which Spark does at
   * once with commands: a parser must not throw what its interface does not name.
   */
  static Statement in(String text, SparkSession session, Bridge bridge) throws Exception {
    if (!mayBeOurs(text)) {
      return null;
    }
    JsonNode read = JSON.readTree(bridge.aboutStatement("parse", text, session));
    if (isOfDatabase(read.path("catalog").asText(), session)) {
      return null;
    }
    if (read.has("error")) {
      return new Statement(text, bridge, new StructType(), Scala.nothing());
    }
    if (!read.has("schema")) {
      return null;
    }
    StructType schema = StructType.fromDDL(read.get("schema").asText());
    return new Statement(text, bridge, schema, Scala.seq(Scala.list(DataTypeUtils.toAttributes(schema))));
  }

  /** Tells most texts apart by their first words, so that Python, which looks closer, is asked about no other. */
  static boolean mayBeOurs(String text) {
    List<String> words = firstWords(text, 4);
    int at = words.size() == 4 && words.subList(0, 3).equals(CREATE_OR_REPLACE) ? 3 : 1;
    return words.size() > at && VERBS.contains(words.get(0)) && (words.get(at).equals("INDEX") || words.get(at).equals("INDEXES"));
  }

  /** The words that a text begins with, in upper case. A sign or a quoted name ends them. */
  private static List<String> firstWords(String text, int count) {
    List<String> words = new ArrayList<>();
    int at = 0;
    while (words.size() < count) {
      int start = afterBlanks(text, at);
      at = start;
      while (at < text.length() && (Character.isLetterOrDigit(text.charAt(at)) || text.charAt(at) == '_')) {
        at++;
      }
      if (at == start) {
        break;
      }
      words.add(text.substring(start, at).toUpperCase(Locale.ROOT));
    }
    return words;
  }

  /** Passes over blanks and comments as Spark's lexer does. A loop: a regular expression recurses, and overflows the stack. */
  private static int afterBlanks(String text, int start) {
    int at = start;
    while (at < text.length()) {
      char c = text.charAt(at);
      if (Character.isWhitespace(c) || Character.isSpaceChar(c)) {
        at++;
      } else if (text.startsWith("--", at)) {
        at = afterLine(text, at);
      } else if (text.startsWith("/*", at) && !text.startsWith("/*+", at)) {
        at = afterComment(text, at);
      } else {
        break;
      }
    }
    return at;
  }

  /** A backslash before the line break carries the comment on. */
  private static int afterLine(String text, int start) {
    int at = start;
    while (at < text.length() && text.charAt(at) != '\n' && text.charAt(at) != '\r') {
      at += text.startsWith("\\\n", at) ? 2 : 1;
    }
    return at;
  }

  /** Comments nest. A hint does not, and is none. */
  private static int afterComment(String text, int start) {
    int depth = 0;
    int at = start;
    while (at < text.length()) {
      boolean opens = text.startsWith("/*", at) && !text.startsWith("/*+", at);
      boolean closes = text.startsWith("*/", at);
      depth += opens ? 1 : closes ? -1 : 0;
      at += opens || closes ? 2 : 1;
      if (depth == 0) {
        break;
      }
    }
    return at;
  }

  /** Databases have indexes of their own, which Spark's statements make. */
  private static boolean isOfDatabase(String catalog, SparkSession session) {
    return session.conf().get("spark.sql.catalog." + catalog, "").contains(OF_DATABASES);
  }

  @Override
  public scala.collection.immutable.Seq run(SparkSession session) {
    try {
      JsonNode answer = JSON.readTree(bridge.aboutStatement("run", text, session));
      if (answer.has("error")) {
        throw failed(text, answer);
      }
      List<Row> rows = new ArrayList<>();
      for (JsonNode row : answer.get("rows")) {
        Object[] values = new Object[schema.size()];
        for (int i = 0; i < values.length; i++) {
          values[i] = value(row.get(i), schema.fields()[i].dataType());
        }
        rows.add(RowFactory.create(values));
      }
      return Scala.seq(rows);
    } catch (Exception problem) {
      throw Statement.<RuntimeException>asIs(problem);
    }
  }

  private static Object value(JsonNode node, DataType type) {
    if (node == null || node.isNull()) {
      return null;
    }
    if (type instanceof LongType) {
      return node.asLong();
    }
    if (type instanceof BooleanType) {
      return node.asBoolean();
    }
    if (type instanceof TimestampType) {
      return java.sql.Timestamp.from(java.time.OffsetDateTime.parse(node.asText()).toInstant());
    }
    if (type instanceof ArrayType) {
      List<Object> items = new ArrayList<>();
      node.forEach(item -> items.add(value(item, ((ArrayType) type).elementType())));
      return items.toArray();
    }
    return node.asText();
  }

  private static AnalysisException failed(String text, JsonNode said) {
    scala.Option line = scala.Option.empty();
    scala.Option column = scala.Option.empty();
    if (said.has("position")) {
      String before = text.substring(0, Math.min(said.get("position").asInt(), text.length()));
      line = scala.Option.apply((Object) (int) (1 + before.chars().filter(c -> c == '\n').count()));
      column = scala.Option.apply((Object) (before.length() - before.lastIndexOf('\n') - 1));
    }
    return new AnalysisException(said.get("error").asText(), line, column, scala.Option.empty(),
        scala.Option.apply(said.get("code").asText()), scala.collection.immutable.Map$.MODULE$.empty(), new QueryContext[0]);
  }

  private static <T extends Throwable> T asIs(Throwable problem) throws T {
    throw (T) problem;
  }

  @Override
  public scala.collection.immutable.Seq output() {
    return output;
  }

  @Override
  public scala.collection.immutable.Seq children() {
    return Scala.nothing();
  }

  public LogicalPlan withNewChildrenInternal(scala.collection.IndexedSeq children) {
    return this;
  }

  public LogicalPlan withNewChildrenInternal(scala.collection.immutable.IndexedSeq children) {
    return this;
  }

  @Override
  public scala.collection.immutable.Seq otherCopyArgs() {
    return Scala.seq(bridge, schema, output);
  }

  @Override
  public scala.collection.immutable.Seq nodePatterns() {
    return patterns;
  }

  public void org$apache$spark$sql$catalyst$plans$logical$Command$_setter_$nodePatterns_$eq(scala.collection.immutable.Seq set) {
    patterns = set;
  }

  public void org$apache$spark$sql$catalyst$plans$logical$Command$_setter_$nodePatterns_$eq(scala.collection.Seq set) {
    patterns = Scala.seq(Scala.list(set));
  }

  @Override
  public String nodeName() {
    return "Grebe";
  }

  @Override
  public int productArity() {
    return 1;
  }

  @Override
  public Object productElement(int n) {
    return text;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof Statement;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Statement && ((Statement) other).text.equals(text);
  }

  @Override
  public int hashCode() {
    return text.hashCode();
  }
}
