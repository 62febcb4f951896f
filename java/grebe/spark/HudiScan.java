package grebe.spark;

import java.lang.reflect.Method;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;

/**
 * A relation of Apache Hudi. The name of a base file holds its file group and its commit, so that name and size tell it from others.
 * A group with log files is more than its base file; it comes along in the partition's values, and is never one of ours.
 */
final class HudiScan extends PlainScan {
  static final String FILES = "org.apache.hudi.HoodieFileIndex";
  private static final String SLICES = "HoodiePartitionFileSliceMapping";

  HudiScan(LogicalRelation plan) {
    super(plan);
  }

  @Override
  boolean isListedCheaply() {
    return true;
  }

  /** Hudi says by itself which values its partitions have. */
  @Override
  boolean isDisplaced(PartitionDirectory directory, FileStatusWithMetadata file) {
    return false;
  }

  @Override
  int id(FileIds registered, PartitionDirectory directory, FileStatusWithMetadata file) {
    return hasSlice(directory.values(), file.getPath().getName()) ? -1 : registered.idOf(file.getPath(), file.getLen(), 0);
  }

  private static boolean hasSlice(InternalRow values, String name) {
    if (!values.getClass().getSimpleName().equals(SLICES)) {
      return false;
    }
    int end = name.indexOf('_');
    try {
      Method slice = values.getClass().getMethod("getSlice", String.class);
      return end < 0 || ((scala.Option<?>) slice.invoke(values, name.substring(0, end))).isDefined();
    } catch (ReflectiveOperationException problem) {
      throw new IllegalStateException("a Hudi whose slices are told otherwise", problem);
    }
  }
}
