package grebe.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;

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
  /** Most texts are told apart by their first word, after comments. Python looks closer. */
  private static final Pattern MAY_BE_OURS = Pattern.compile(
      "(?is)(?:\\s|--[^\\n]*\\n|/\\*.*?\\*/)*(?:CREATE|SHOW|DESC|DESCRIBE|REFRESH|OPTIMIZE|DROP|RESTORE|VACUUM|CANCEL|VERIFY|REPAIR|EXPLAIN)"
          + "\\b.{0,200}?\\bINDEX(?:ES)?\\b.*");
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
    if (!MAY_BE_OURS.matcher(text).matches()) {
      return null;
    }
    JsonNode read = JSON.readTree(bridge.aboutStatement("parse", text, session));
    if (read.has("error")) {
      return new Statement(text, bridge, new StructType(), Scala.nothing());
    }
    if (!read.has("schema") || isOfDatabase(read.path("catalog").asText(), session)) {
      return null;
    }
    StructType schema = StructType.fromDDL(read.get("schema").asText());
    return new Statement(text, bridge, schema, Scala.seq(Scala.list(DataTypeUtils.toAttributes(schema))));
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
