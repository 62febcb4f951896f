package grebe.spark;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation$;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.types.StructType;

/** A scan of Apache Iceberg, after Iceberg's own planning: tasks, each a data file with the files that delete rows of it. */
@SuppressWarnings({"rawtypes", "unchecked"})
final class IcebergScan extends Scanned {
  /** Others count, or copy whole files on behalf of a command. */
  private static final String SCAN = "org.apache.iceberg.spark.source.SparkBatchQueryScan";
  private static final String METADATA = "org.apache.iceberg.BaseMetadataTable";
  private static final int SCAN_FIELD = 1;
  private static final int OUTPUT_FIELD = 2;

  private final DataSourceV2ScanRelation plan;
  private final Object table;

  IcebergScan(LogicalPlan plan) {
    super(plan);
    this.plan = (DataSourceV2ScanRelation) plan;
    this.table = Reflected.call(this.plan.scan(), "table");
  }

  static boolean is(LogicalPlan plan) {
    if (!(plan instanceof DataSourceV2ScanRelation)) {
      return false;
    }
    Scan scan = ((DataSourceV2ScanRelation) plan).scan();
    return scan.getClass().getName().equals(SCAN) && !isMetadata(Reflected.call(scan, "table"));
  }

  /** Of snapshots, files and the like: below the root of the table, but none of its rows. */
  private static boolean isMetadata(Object table) {
    for (Class<?> one = table.getClass(); one != null; one = one.getSuperclass()) {
      if (one.getName().equals(METADATA)) {
        return true;
      }
    }
    return false;
  }

  static boolean isPart(LogicalPlan plan) {
    return plan instanceof DataSourceV2ScanRelation && ((DataSourceV2ScanRelation) plan).scan() instanceof IcebergPart;
  }

  static String pairOf(LogicalPlan plan) {
    return isPart(plan) ? ((IcebergPart) ((DataSourceV2ScanRelation) plan).scan()).pair : "";
  }

  @Override
  List<Path> roots() {
    return Arrays.asList(new Path((String) Reflected.call(table, "location")));
  }

  @Override
  String[] inputFiles() {
    List<String> files = new ArrayList<>();
    tasks(plan.scan()).forEach(task -> files.add(Reflected.call(Reflected.call(task, "file"), "location").toString()));
    return files.toArray(new String[0]);
  }

  @Override
  SparkSession session() {
    return SparkSession.active();
  }

  @Override
  long bytes() {
    scala.math.BigInt size = plan.stats().sizeInBytes();
    return size.isValidLong() ? size.toLong() : Long.MAX_VALUE;
  }

  @Override
  void describe(Json json) {
    json.key("roots").list().text(Snapshot.canonical(roots().get(0))).endList();
    end(json, "iceberg", SCAN, "");
    json.key("options").open().close();
    json.key("data_schema").text(json(Reflected.call(plan.scan(), "schema")));
    json.key("partition_schema").text(new StructType().json());
    json.key("bytes").number(bytes());
    json.key("table").text((String) Reflected.call(table, "name"));
  }

  private static String json(Object schema) {
    try {
      Class<?> parser = schema.getClass().getClassLoader().loadClass("org.apache.iceberg.SchemaParser");
      Method method = parser.getMethod("toJson", schema.getClass());
      return (String) method.invoke(null, schema);
    } catch (ReflectiveOperationException problem) {
      throw new IllegalStateException("an Iceberg whose schemas are written otherwise", problem);
    }
  }

  @Override
  boolean isListedCheaply() {
    return true;
  }

  @Override
  void match(Match match) {
    for (Object task : tasks(plan.scan())) {
      Object file = Reflected.call(task, "file");
      boolean deletes = !((List) Reflected.call(task, "deletes")).isEmpty();
      match.file(id(match.registered, file), (Long) Reflected.call(file, "fileSizeInBytes"), deletes);
    }
  }

  static List<Object> tasks(Scan scan) {
    return (List<Object>) Reflected.call(scan, "tasks");
  }

  static int id(FileIds registered, Object file) {
    return registered.idOf(new Path(Reflected.call(file, "location").toString()), (Long) Reflected.call(file, "fileSizeInBytes"), 0);
  }

  @Override
  LogicalPlan narrowed(Bridge bridge, JsonNode decision) {
    FileIds registered = listed(bridge, decision);
    BitSet without = Snapshot.parse(decision.get("without").asText());
    return with(new IcebergPart(plan.scan(), registered, without, decision.get("shown").asText(), ""), plan.output());
  }

  @Override
  LogicalPlan rest(FileIds registered, BitSet covered, boolean others, String pair, String shown) {
    List<AttributeReference> fresh = new ArrayList<>();
    for (AttributeReference attribute : Scala.<AttributeReference>list(plan.output())) {
      fresh.add((AttributeReference) attribute.newInstance());
    }
    return with(new IcebergPart(plan.scan(), registered, covered, shown, pair), Scala.seq(fresh));
  }

  @Override
  LogicalRelation replaced(HadoopFsRelation relation, scala.collection.Seq output) {
    return Scala.withRelation(LogicalRelation$.MODULE$.apply(relation, false), relation, output);
  }

  /** Spark's versions differ in the fields that come after these. */
  private LogicalPlan with(Scan scan, scala.collection.Seq output) {
    Object[] fields = new Object[plan.productArity()];
    for (int i = 0; i < fields.length; i++) {
      fields[i] = i == SCAN_FIELD ? scan : i == OUTPUT_FIELD ? output : plan.productElement(i);
    }
    try {
      return (LogicalPlan) DataSourceV2ScanRelation.class.getConstructors()[0].newInstance(fields);
    } catch (ReflectiveOperationException problem) {
      throw new IllegalStateException("DataSourceV2ScanRelation", problem);
    }
  }
}
