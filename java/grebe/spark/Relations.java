package grebe.spark;

import java.util.List;

import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** The one relation of files that a frame reads: what it is, its files, and the same with lineage. */
@SuppressWarnings({"rawtypes", "unchecked"})
final class Relations {
  private Relations() {}

  /** {"node": what it is if it is none of ours} or the relation's roots, format, options, schemas, table name. */
  static String describe(Dataset frame) {
    LogicalPlan plan = bare(frame.queryExecution().analyzed());
    Json json = new Json().open();
    if (!(plan instanceof LogicalRelation) || !(((LogicalRelation) plan).relation() instanceof HadoopFsRelation)) {
      return json.key("node").text(plan.nodeName()).close().toString();
    }
    relation(json, (LogicalRelation) plan);
    return json.close().toString();
  }

  static void relation(Json json, LogicalRelation plan) {
    HadoopFsRelation relation = (HadoopFsRelation) plan.relation();
    json.key("roots").list();
    for (Object root : Scala.list(relation.location().rootPaths())) {
      json.text(Snapshot.canonical((Path) root));
    }
    json.endList();
    json.key("format").text(relation.fileFormat().toString());
    json.key("format_class").text(relation.fileFormat().getClass().getName());
    json.key("files_class").text(relation.location().getClass().getName());
    json.key("options").open();
    for (Object each : Scala.list(relation.options())) {
      scala.Tuple2 option = (scala.Tuple2) each;
      json.key((String) option._1()).text((String) option._2());
    }
    json.close();
    json.key("data_schema").text(relation.dataSchema().json());
    json.key("partition_schema").text(relation.partitionSchema().json());
    json.key("bytes").number(relation.location().sizeInBytes());
    if (plan.catalogTable().isDefined()) {
      json.key("table").text(plan.catalogTable().get().identifier().unquotedString());
    }
  }

  /** Uri, size and time of every file, three lines each: a path may hold anything but a line break, which is refused. */
  static String files(Dataset frame) {
    StringBuilder text = new StringBuilder();
    FileIndex index = ((HadoopFsRelation) leaf(frame).relation()).location();
    index.refresh();
    for (Object each : Scala.list(index.listFiles(Scala.nothing(), Scala.nothing()))) {
      for (FileStatusWithMetadata file : Files.files((PartitionDirectory) each)) {
        String uri = Snapshot.canonical(file.getPath());
        if (uri.indexOf('\n') >= 0) {
          throw new IllegalArgumentException("a file name with a line break");
        }
        text.append(uri).append('\n').append(file.getLen()).append('\n').append(file.getModificationTime()).append('\n');
      }
    }
    return text.toString();
  }

  static Dataset numbered(Dataset frame, Snapshot registered, String column) {
    LogicalRelation plan = leaf(frame);
    HadoopFsRelation relation = (HadoopFsRelation) plan.relation();
    Numbered files = new Numbered(relation.location(), registered, column);
    scala.collection.immutable.Map options = (scala.collection.immutable.Map) relation.options().updated(Rewriting.MARK, "build");
    HadoopFsRelation numbered = new HadoopFsRelation(files, files.partitionSchema(), unpadded(relation.dataSchema()),
        scala.Option.empty(), relation.fileFormat(), options, relation.sparkSession());
    SparkSession session = frame.sparkSession();
    return session.baseRelationToDataFrame(numbered);
  }

  static LogicalRelation leaf(Dataset frame) {
    return (LogicalRelation) bare(frame.queryExecution().analyzed());
  }

  private static LogicalPlan bare(LogicalPlan plan) {
    LogicalPlan at = plan;
    while (at instanceof SubqueryAlias || pads(at)) {
      at = (LogicalPlan) at.children().head();
    }
    return at;
  }

  /** Whether it only fills columns of type CHAR up with blanks, which Spark puts over every scan of such a table. */
  private static boolean pads(LogicalPlan plan) {
    if (!(plan instanceof Project)) {
      return false;
    }
    List<NamedExpression> list = Scala.list(((Project) plan).projectList());
    List<Attribute> below = Scala.list(plan.children().head().output());
    boolean pads = list.size() == below.size();
    for (int i = 0; pads && i < list.size(); i++) {
      NamedExpression each = list.get(i);
      boolean same = each instanceof Attribute && each.exprId().equals(below.get(i).exprId());
      boolean padded = each instanceof Alias && each.name().equals(below.get(i).name())
          && ((Alias) each).child().toString().contains("readSidePadding");
      pads = same || padded;
    }
    return pads;
  }

  /** The index keeps texts as the files have them; the padding comes over it as over the files. */
  private static StructType unpadded(StructType schema) {
    StructType made = new StructType();
    for (StructField field : schema.fields()) {
      Metadata plain = new MetadataBuilder().withMetadata(field.metadata()).remove("__CHAR_VARCHAR_TYPE_STRING").build();
      made = made.add(new StructField(field.name(), field.dataType(), field.nullable(), plain));
    }
    return made;
  }
}
