package grebe.spark;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.List;

import org.apache.hadoop.fs.FileStatus;
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
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.types.DataType;
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
    String[] lake = Lakes.of(plan);
    if (lake != null) {
      return json.key("lake").text(lake[0]).key("at").text(lake[1]).key("table").text(lake[2]).close().toString();
    }
    if (!(plan instanceof LogicalRelation) || !(((LogicalRelation) plan).relation() instanceof HadoopFsRelation)) {
      return json.key("node").text(plan.nodeName()).close().toString();
    }
    new PlainScan((LogicalRelation) plan).describe(json);
    return json.close().toString();
  }

  /** Files of a lake table, each with its id and the values of its partition, read as plain Parquet; deleted rows come along. */
  static Dataset listed(SparkSession session, String schema, String partitions, String values, byte[][] files) {
    Listed listed = new Listed((StructType) DataType.fromJson(partitions), values, files);
    scala.collection.immutable.Map none = (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.empty();
    HadoopFsRelation relation = new HadoopFsRelation(listed, listed.partitionSchema(), (StructType) DataType.fromJson(schema),
        scala.Option.empty(), new ParquetFileFormat(), (scala.collection.immutable.Map) none.updated(Rewriting.MARK, "build"), session);
    return session.baseRelationToDataFrame(relation);
  }

  /** Rows of these files of an index. */
  static Dataset content(SparkSession session, String schema, List<FileChecksum> files) throws java.io.IOException {
    List<FileStatus> found = Contents.found(files, session.sparkContext().hadoopConfiguration());
    scala.collection.immutable.Map options = IndexReading.options(found, new ArrayList<>(), true);
    HadoopFsRelation relation = new HadoopFsRelation(Content.of(found), Files.NO_PARTITIONS, (StructType) DataType.fromJson(schema),
        scala.Option.empty(), new IndexReading(files), (scala.collection.immutable.Map) options.updated(Rewriting.MARK, "build"), session);
    return session.baseRelationToDataFrame(relation);
  }

  /**
   * Uri, size, time and facts of every file, four lines each: a path may hold anything but a line break, which is refused. Files with other
   * partition values than their paths spell are left out: an index would hold the latter.
   */
  static String files(Dataset frame) {
    StringBuilder text = new StringBuilder();
    List<FileStatus> listed = new ArrayList<>();
    HadoopFsRelation relation = (HadoopFsRelation) leaf(frame).relation();
    FileIndex index = relation.location();
    index.refresh();
    PartitionPaths paths = paths(relation);
    for (Object each : Scala.list(index.listFiles(Scala.nothing(), Scala.nothing()))) {
      PartitionDirectory directory = (PartitionDirectory) each;
      for (FileStatusWithMetadata file : Files.files(directory)) {
        if (paths.agree(directory, file.getPath()) && paths.agreeOnTimestamps(directory, file.getPath())) {
          listed.add(file.fileStatus());
        }
      }
    }
    String[] facts = FileFacts.of(listed);
    for (int i = 0; i < facts.length; i++) {
      FileStatus file = listed.get(i);
      String uri = Snapshot.canonical(file.getPath());
      if (uri.indexOf('\n') >= 0) {
        throw new IllegalArgumentException("a file name with a line break");
      }
      text.append(uri).append('\n').append(file.getLen()).append('\n').append(file.getModificationTime()).append('\n');
      text.append(facts[i] == null ? "" : facts[i]).append('\n');
    }
    return text.toString();
  }

  /**
   * Name exactly these files as they are: a digest of their paths, sizes and times, and, if all of them have facts that tell replaced files
   * apart, a dot and a digest of those facts. A file of a partition with other values than its path spells counts as another one.
   * `grebe.indexes.view.definition.same_files` compares two of them.
   */
  static String digest(HadoopFsRelation relation) {
    List<FileStatus> files = new ArrayList<>();
    List<String> displacements = new ArrayList<>();
    PartitionPaths paths = paths(relation);
    for (Object each : Scala.list(relation.location().listFiles(Scala.nothing(), Scala.nothing()))) {
      PartitionDirectory directory = (PartitionDirectory) each;
      for (FileStatusWithMetadata file : Files.files(directory)) {
        files.add(file.fileStatus());
        displacements.add(paths.displacement(directory, file.getPath()));
      }
    }
    String[] facts = FileFacts.of(files);
    List<String> times = new ArrayList<>();
    List<String> identities = new ArrayList<>();
    for (int i = 0; i < facts.length; i++) {
      FileStatus file = files.get(i);
      String path = Snapshot.canonical(file.getPath()) + displacements.get(i);
      times.add(path + "\n" + file.getLen() + "\n" + file.getModificationTime());
      if (facts[i] != null) {
        identities.add(path + "\n" + facts[i]);
      }
    }
    return identities.size() == times.size() ? digest(times) + "." + digest(identities) : digest(times);
  }

  private static String digest(List<String> lines) {
    Collections.sort(lines);
    try {
      byte[] digest = MessageDigest.getInstance("SHA-256").digest(String.join("\n", lines).getBytes(StandardCharsets.UTF_8));
      return Base64.getEncoder().encodeToString(digest);
    } catch (NoSuchAlgorithmException impossible) {
      throw new IllegalStateException(impossible);
    }
  }

  /** Of a frame's relation, listed now. */
  static String digest(Dataset frame) {
    HadoopFsRelation relation = (HadoopFsRelation) leaf(frame).relation();
    relation.location().refresh();
    return digest(relation);
  }

  static Dataset numbered(Dataset frame, Snapshot registered, String column) {
    LogicalRelation plan = leaf(frame);
    HadoopFsRelation relation = (HadoopFsRelation) plan.relation();
    Numbered files = new Numbered(relation.location(), registered, column, paths(relation));
    scala.collection.immutable.Map options = (scala.collection.immutable.Map) relation.options().updated(Rewriting.MARK, "build");
    HadoopFsRelation numbered = new HadoopFsRelation(files, files.partitionSchema(), unpadded(relation.dataSchema()),
        scala.Option.empty(), relation.fileFormat(), options, relation.sparkSession());
    SparkSession session = frame.sparkSession();
    return session.baseRelationToDataFrame(numbered);
  }

  private static PartitionPaths paths(HadoopFsRelation relation) {
    return PartitionPaths.of(relation, relation.sparkSession().sessionState().conf().sessionLocalTimeZone());
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
