package grebe.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructType;

/** Files of an index in place of a table's (null: of none), and how the strategy is to read them. */
@SuppressWarnings({"rawtypes", "unchecked"})
final class Content extends Files {
  /** Index and version, for people; equal keys mean the same files. */
  final String key;
  /** Each inner list is sorted within each bucket, from its first file to its last. */
  final List<List<FileStatus>> runs;
  /** Partitions to read the buckets as; 0: no buckets. */
  final int buckets;
  /** Columns that the rows of a partition are sorted by; empty if nobody asks for an order. */
  final List<String> order;
  /** Names the files that are read beside this; empty if there are none. */
  final String pair;
  private final Scanned table;
  /** Data files whose rows these hold; null if files of the table never change. */
  final ServedFiles served;
  /** The size that Spark is told; less than 0: that of the files. */
  private final long announced;

  Content(String key, List<List<FileStatus>> runs, int buckets, List<String> order, String pair, Scanned table,
      ServedFiles served, long announced) {
    super(null);
    this.table = table;
    this.served = served;
    this.key = key;
    this.runs = runs;
    this.buckets = buckets;
    this.order = order;
    this.pair = pair;
    this.announced = announced;
  }

  /** Files that are read for their own sake, in no order. */
  static Content of(List<FileStatus> files) {
    return new Content("", Arrays.asList(files), 0, new ArrayList<>(), "", null, null, -1);
  }

  Content only(List<FileStatus> run) {
    return new Content(key, Arrays.asList(run), buckets, order, pair, table, served, announced);
  }

  @Override
  List<PartitionDirectory> list(List partitionFilters, List dataFilters) {
    return Arrays.asList(directory(files().toArray(new FileStatus[0])));
  }

  /** Of all runs. */
  List<FileStatus> files() {
    List<FileStatus> files = new ArrayList<>();
    runs.forEach(files::addAll);
    return files;
  }

  @Override
  public long sizeInBytes() {
    return announced < 0 ? super.sizeInBytes() : announced;
  }

  @Override
  Object identity() {
    List<Path> paths = new ArrayList<>();
    files().forEach(file -> paths.add(file.getPath()));
    return Arrays.asList(key, paths, buckets, order, pair);
  }

  @Override
  public scala.collection.immutable.Seq rootPaths() {
    List<Path> roots = new ArrayList<>();
    for (List<FileStatus> run : runs) {
      for (FileStatus file : run) {
        if (!roots.contains(file.getPath().getParent())) {
          roots.add(file.getPath().getParent());
        }
      }
    }
    return Scala.seq(roots);
  }

  @Override
  public String[] inputFiles() {
    return table == null ? files().stream().map(file -> file.getPath().toString()).toArray(String[]::new) : table.inputFiles();
  }

  @Override
  List<Path> tableRoots() {
    return table == null ? Scala.list(rootPaths()) : table.roots();
  }

  @Override
  public StructType partitionSchema() {
    return NO_PARTITIONS;
  }
}
