package grebe.spark;

import java.io.IOException;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.sql.catalyst.catalog.BucketSpec;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.GreaterThanOrEqual;
import org.apache.spark.sql.catalyst.expressions.LessThan;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.execution.datasources.FileSourceStrategy$;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

import scala.Option;

/** One relation read from an index, and beside it the files that the index does not cover. */
@SuppressWarnings({"rawtypes", "unchecked"})
final class StandIn {
  private final Bridge bridge;
  private final Scanned original;
  private final JsonNode decision;
  private final LogicalRelation copy;
  /** Data files whose rows come from the index; null if files of the table never change. */
  final ServedFiles servedFiles;
  /** "id.field.field" of an extraction -> the flattened column. */
  private final Map<String, AttributeReference> flattened = new HashMap<>();
  private final List<AttributeReference> served = new ArrayList<>();

  StandIn(Bridge bridge, Scanned original, JsonNode decision) throws IOException {
    this.bridge = bridge;
    this.original = original;
    this.decision = decision;
    this.servedFiles = ServedFiles.of(bridge, original, decision);
    this.copy = copy();
  }

  /** `chain`: projections and filters from the top down, then the relation. */
  LogicalPlan of(List<LogicalPlan> chain) {
    LogicalPlan left = projected(chain, onto(chain, rows(), this::flat));
    // What Spark's strategy cannot plan must show here, where the original plan is still at hand.
    FileSourceStrategy$.MODULE$.apply(left);
    if (!decision.get("direct").asBoolean()) {
      return left;
    }
    LogicalPlan rest = rest();
    LogicalPlan right = Renamed.chain(chain, original.leaf, rest);
    return new Union(Scala.seq(left, projectedLike(left, chain, right, rest)), false, false);
  }

  LogicalPlan leaf() {
    return original.leaf;
  }

  /** Of the content. */
  List<AttributeReference> columns() {
    return Scala.list(copy.output());
  }

  /** The files that the index does not cover, with new attributes. */
  LogicalPlan rest() {
    return original.rest(Scanned.listed(bridge, decision), Snapshot.parse(text("covered")), decision.get("others").asBoolean(), pair(),
        text("shown_rest"));
  }

  void rank(Map<Long, Integer> ranks) {
    List<String> order = texts("order");
    for (AttributeReference attribute : Scala.<AttributeReference>list(copy.output())) {
      if (order.contains(attribute.name())) {
        ranks.put(attribute.exprId().id(), order.indexOf(attribute.name()));
      }
    }
  }

  private String text(String field) {
    return decision.get(field).asText();
  }

  private String pair() {
    return decision.get("direct").asBoolean() ? text("content") + "#" + System.identityHashCode(this) : "";
  }

  private HadoopFsRelation over(Content content, StructType schema, Option buckets) {
    List<String> bounded = texts("bounded");
    bounded.add(text("lineage"));
    scala.collection.immutable.Map options = IndexReading.options(content.files(), bounded, bridge.verified);
    IndexReading reading = new IndexReading(bridge.contents.checksums(text("content")));
    return new HadoopFsRelation(content, content.partitionSchema(), schema, buckets, reading,
        Scanned.marked(options, "stand-in", "", text("shown")), original.session());
  }

  private LogicalRelation copy() throws IOException {
    StructType schema = (StructType) DataType.fromJson(text("schema"));
    List<FileStatus> all = bridge.contents.files(text("content"), original.session().sparkContext().hadoopConfiguration());
    List<List<FileStatus>> runs = new ArrayList<>();
    for (JsonNode run : decision.get("runs")) {
      List<FileStatus> files = new ArrayList<>();
      run.forEach(place -> files.add(all.get(place.asInt())));
      runs.add(files);
    }
    Option buckets = Option.empty();
    if (decision.get("buckets").asInt() > 0) {
      buckets = Option.apply(new BucketSpec(decision.get("written").asInt(), Scala.seq(texts("bucket_by")), Scala.nothing()));
    }
    Content content = new Content(text("content"), runs, decision.get("buckets").asInt(), texts("order"), pair(),
        original, servedFiles, announced(schema));
    return original.replaced(over(content, schema, buckets), Scala.seq(attributes(schema)));
  }

  /**
   * Buckets are read for the sake of a join or an aggregation without a shuffle. Spark must plan that as it would plan it for the
   * table, so it is told the table's size, less what the columns make out; else it might take a broadcast instead.
   */
  private long announced(StructType schema) {
    if (decision.get("buckets").asInt() == 0) {
      return -1;
    }
    double columns = (double) width(schema) / width(original.leaf.schema());
    return (long) (original.bytes() * columns * decision.get("covered_share").asDouble());
  }

  /** Of a row, as Spark reckons it. */
  private static long width(StructType schema) {
    return 8 + schema.defaultSize();
  }

  private List<String> texts(String field) {
    List<String> made = new ArrayList<>();
    decision.get(field).forEach(each -> made.add(each.asText()));
    return made;
  }

  /** The plan's own attribute for a whole column, a new one for a flattened field and for lineage. */
  private List<AttributeReference> attributes(StructType schema) {
    Map<String, JsonNode> origin = new HashMap<>();
    decision.get("columns").forEach(each -> origin.put(each.get(1).asText(), each.get(0)));
    List<AttributeReference> made = new ArrayList<>();
    for (StructField field : schema.fields()) {
      JsonNode of = origin.get(field.name());
      AttributeReference attribute = of != null && of.size() == 1 ? own(of.get(0).asLong()) : null;
      if (attribute != null) {
        served.add(attribute);
      } else {
        attribute = new AttributeReference(field.name(), field.dataType(), true, Metadata.empty(),
            NamedExpression.newExprId(), Scala.nothing());
        if (of != null) {
          flattened.put(path(of), attribute);
        }
      }
      made.add(attribute);
    }
    return made;
  }

  private AttributeReference own(long id) {
    for (AttributeReference attribute : Scala.<AttributeReference>list(original.leaf.output())) {
      if (attribute.exprId().id() == id) {
        return attribute;
      }
    }
    return null;
  }

  private static String path(JsonNode of) {
    List<String> parts = new ArrayList<>();
    of.forEach(part -> parts.add(part.asText()));
    return String.join("\u0000", parts);
  }

  /** Without the rows of files that the query does not read. */
  LogicalPlan rows() {
    BitSet drop = Snapshot.parse(text("drop"));
    if (drop.isEmpty()) {
      return copy;
    }
    AttributeReference file = null;
    for (AttributeReference attribute : Scala.<AttributeReference>list(copy.output())) {
      file = attribute.name().equals(text("lineage")) ? attribute : file;
    }
    // Outside of every range: a balanced tree would be no shorter, and ranges are few.
    Expression keep = null;
    for (int start = drop.nextSetBit(0); start >= 0; start = drop.nextSetBit(drop.nextClearBit(start))) {
      Expression outside = new Or(new LessThan(file, number(start)), new GreaterThanOrEqual(file, number(drop.nextClearBit(start))));
      keep = keep == null ? outside : new org.apache.spark.sql.catalyst.expressions.And(keep, outside);
    }
    return new Filter(keep, copy);
  }

  private static Literal number(int value) {
    return Literal.create(value, DataTypes.IntegerType);
  }

  private Expression flat(Expression expression) {
    if (expression instanceof GetStructField && Expressions.isReference(expression)) {
      List<String> parts = new ArrayList<>();
      Expression at = expression;
      while (at instanceof GetStructField) {
        parts.add(0, ((GetStructField) at).extractFieldName());
        at = ((GetStructField) at).child();
      }
      parts.add(0, Long.toString(((AttributeReference) at).exprId().id()));
      AttributeReference column = flattened.get(String.join("\u0000", parts));
      if (column != null) {
        return column;
      }
    }
    return expression;
  }

  /** The chain's projections and filters again, on another leaf. */
  private static LogicalPlan onto(List<LogicalPlan> chain, LogicalPlan leaf, java.util.function.UnaryOperator<Expression> change) {
    LogicalPlan made = leaf;
    for (int i = chain.size() - 2; i >= 0; i--) {
      made = Renamed.node(chain.get(i), made, change);
    }
    return made;
  }

  /** Exactly the columns that the chain gives: without a projection on top these would be all of the index's. */
  private LogicalPlan projected(List<LogicalPlan> chain, LogicalPlan made) {
    return chain.stream().anyMatch(node -> node instanceof Project) ? made : new Project(Scala.seq((List) wanted()), made);
  }

  private LogicalPlan projectedLike(LogicalPlan left, List<LogicalPlan> chain, LogicalPlan right, LogicalPlan rest) {
    if (chain.stream().anyMatch(node -> node instanceof Project)) {
      return right;
    }
    List<AttributeReference> from = Scala.list(original.leaf.output());
    List<AttributeReference> to = Scala.list(rest.output());
    List<AttributeReference> columns = new ArrayList<>();
    wanted().forEach(attribute -> columns.add(to.get(from.indexOf(attribute))));
    return new Project(Scala.seq((List) columns), right);
  }

  private List<AttributeReference> wanted() {
    List<AttributeReference> wanted = new ArrayList<>(Scala.<AttributeReference>list(original.leaf.output()));
    wanted.retainAll(served);
    return wanted;
  }
}
