package grebe.spark;

import java.util.ArrayList;
import java.util.List;

import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructType;

import scala.Option;

/** What our file indexes share. Methods with a Seq are declared for both of Scala's: 2.12 asks for the one, 2.13 for the other. */
@SuppressWarnings({"rawtypes", "unchecked"})
abstract class Files implements FileIndex {
  /** The relation's own file index, which this one takes the place of; null if there is none. */
  final FileIndex all;
  private long bytes = -1;

  Files(FileIndex all) {
    this.all = all;
  }

  abstract List<PartitionDirectory> list(List partitionFilters, List dataFilters);

  /** What tells this choice of files from another one of the same relation. */
  abstract Object identity();

  public scala.collection.immutable.Seq listFiles(scala.collection.Seq partitionFilters, scala.collection.Seq dataFilters) {
    return Scala.seq(list(Scala.list(partitionFilters), Scala.list(dataFilters)));
  }

  public scala.collection.immutable.Seq listFiles(
      scala.collection.immutable.Seq partitionFilters, scala.collection.immutable.Seq dataFilters) {
    return Scala.seq(list(Scala.list(partitionFilters), Scala.list(dataFilters)));
  }

  /** Whoever asks which files a query reads (`inputFiles` of a frame) means those of the table. */
  @Override
  public String[] inputFiles() {
    return all.inputFiles();
  }

  /** Those of the table, whatever is read in its place. */
  List<Path> tableRoots() {
    return Scala.list(all.rootPaths());
  }

  @Override
  public synchronized long sizeInBytes() {
    if (bytes < 0) {
      bytes = 0;
      for (PartitionDirectory directory : list(new ArrayList(), new ArrayList())) {
        for (FileStatusWithMetadata file : files(directory)) {
          bytes += file.getLen();
        }
      }
    }
    return bytes;
  }

  @Override
  public void refresh() {}

  @Override
  public Option metadataOpsTimeNs() {
    return Option.empty();
  }

  // A case class above compares file indexes; two choices of files must never be taken for each other.
  @Override
  public boolean equals(Object other) {
    return other != null && other.getClass() == getClass() && ((Files) other).identity().equals(identity());
  }

  @Override
  public int hashCode() {
    return identity().hashCode();
  }

  static List<FileStatusWithMetadata> files(PartitionDirectory directory) {
    return Scala.list(directory.files());
  }

  static PartitionDirectory directory(InternalRow values, List<FileStatusWithMetadata> files) {
    return new PartitionDirectory(values, Scala.seq(files));
  }

  static PartitionDirectory directory(FileStatus[] files) {
    return PartitionDirectory.apply(InternalRow.empty(), files);
  }

  static final StructType NO_PARTITIONS = new StructType();
}
