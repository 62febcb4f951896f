package grebe.spark;

import java.lang.reflect.Constructor;
import java.net.URI;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.function.Predicate;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * A relation of Delta Lake, as Delta has prepared it for a query: its add actions, less those that Delta itself skips. Deleted rows
 * are Delta's business, and Delta minds them only over a file index of its own, which is made anew over the files that are kept.
 */
@SuppressWarnings({"rawtypes", "unchecked"})
final class DeltaScan extends RelationScan {
  static final String PACKAGE = "org.apache.spark.sql.delta.";
  /** Every other one belongs to a command of Delta's, which must see its own files. */
  static final String FILES = PACKAGE + "stats.PreparedDeltaFileIndex";
  private static final String KEPT = PACKAGE + "files.TahoeBatchFileIndex";

  private final FileIndex files;
  private final Object scan;

  DeltaScan(LogicalRelation plan) {
    super(plan);
    this.files = relation.location();
    this.scan = Reflected.call(files, "preparedScan");
  }

  @Override
  List<Path> roots() {
    return Arrays.asList(root());
  }

  private Path root() {
    return (Path) Reflected.call(files, "path");
  }

  @Override
  void describe(Json json) {
    Object metadata = Reflected.call(Reflected.call(scan, "scannedSnapshot"), "metadata");
    json.key("roots").list().text(Snapshot.canonical(root())).endList();
    end(json, "delta", relation.fileFormat().getClass().getName(), files.getClass().getName());
    json.key("options").open().close();
    // With what the format calls its columns in the files; the relation's own schema has it no more.
    json.key("data_schema").text((String) Reflected.call(metadata, "schemaString"));
    json.key("partition_schema").text(relation.partitionSchema().json());
    json.key("version").number((Long) Reflected.call(scan, "version"));
    json.key("bytes").number(bytes());
    name(json);
  }

  @Override
  boolean isListedCheaply() {
    return true;
  }

  @Override
  void match(Match match) {
    for (Object file : added()) {
      match.file(id(match.registered, file), (Long) Reflected.call(file, "size"), Reflected.call(file, "deletionVector") != null);
    }
  }

  private List<Object> added() {
    return Scala.list((scala.collection.Iterable) Reflected.call(scan, "files"));
  }

  private int id(FileIds registered, Object file) {
    Path path = new Path(URI.create((String) Reflected.call(file, "path")));
    return registered.idOf(path.isAbsolute() ? path : new Path(root(), path),
        (Long) Reflected.call(file, "size"), (Long) Reflected.call(file, "modificationTime"));
  }

  @Override
  LogicalPlan narrowed(Bridge bridge, JsonNode decision) {
    FileIds registered = listed(bridge, decision);
    BitSet without = Snapshot.parse(decision.get("without").asText());
    return Scala.withRelation(plan, over(registered, without, "narrowed", "", decision.get("shown").asText()), plan.output());
  }

  @Override
  LogicalPlan rest(FileIds registered, BitSet covered, boolean others, String pair, String shown) {
    LogicalRelation fresh = plan.newInstance();
    return Scala.withRelation(fresh, over(registered, covered, "stand-in", pair, shown), fresh.output());
  }

  private HadoopFsRelation over(FileIds registered, BitSet without, String mark, String pair, String shown) {
    FileIndex kept = kept(file -> {
      int id = id(registered, file);
      return id < 0 || !without.get(id);
    });
    return new HadoopFsRelation(kept, relation.partitionSchema(), relation.dataSchema(), relation.bucketSpec(), relation.fileFormat(),
        marked(relation.options(), mark, pair, shown), relation.sparkSession());
  }

  private FileIndex kept(Predicate<Object> keep) {
    List<Object> left = new ArrayList<>(added());
    left.removeIf(keep.negate());
    Object[] fields = {relation.sparkSession(), "grebe", Scala.seq(left), Reflected.call(files, "deltaLog"), root(),
        Reflected.call(scan, "scannedSnapshot"), Boolean.FALSE};
    try {
      Constructor<?> constructor = files.getClass().getClassLoader().loadClass(KEPT).getConstructors()[0];
      return (FileIndex) constructor.newInstance(Arrays.copyOf(fields, constructor.getParameterCount()));
    } catch (ReflectiveOperationException problem) {
      throw new IllegalStateException("a Delta Lake whose files are listed otherwise", problem);
    }
  }
}
