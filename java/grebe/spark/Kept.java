package grebe.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;

import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.StructType;

/** A relation's own file index without some of its files. Partition values, and where the blocks lie, stay as they were listed. */
@SuppressWarnings({"rawtypes", "unchecked"})
class Kept extends Files {
  final FileIds listed;
  private final PlainScan scanned;
  private final BitSet without;
  /** Whether files are read that are not among the listed ones. */
  private final boolean others;

  Kept(PlainScan scanned, FileIds listed, BitSet without, boolean others) {
    super(scanned.relation.location());
    this.scanned = scanned;
    this.listed = listed;
    this.without = without;
    this.others = others;
  }

  /** Files of a lake table never change, plain ones may. */
  boolean isPlain() {
    return scanned.getClass() == PlainScan.class;
  }

  @Override
  List<PartitionDirectory> list(List partitionFilters, List dataFilters) {
    List<PartitionDirectory> kept = new ArrayList<>();
    for (Object each : Scala.list(all.listFiles(Scala.seq(partitionFilters), Scala.seq(dataFilters)))) {
      PartitionDirectory directory = (PartitionDirectory) each;
      List<FileStatusWithMetadata> files = new ArrayList<>();
      for (FileStatusWithMetadata file : files(directory)) {
        int id = scanned.id(listed, directory, file);
        if (id >= 0 ? !without.get(id) : isRead(listed.idOf(file.getPath()))) {
          files.add(file);
        }
      }
      if (!files.isEmpty()) {
        kept.add(directory(directory.values(), files));
      }
    }
    return kept;
  }

  /** Tell whether a file that was not listed for the decision is read; `id`: of the listed file that it has replaced since, or -1. */
  private boolean isRead(int id) {
    return id < 0 ? others : !isServed(id);
  }

  /** Tell whether the rows of a listed file come from an index, so that what has replaced it would give rows a second time. */
  boolean isServed(int id) {
    return without.get(id);
  }

  @Override
  Object identity() {
    return Arrays.asList(all, without, others);
  }

  @Override
  public scala.collection.immutable.Seq rootPaths() {
    return Scala.seq(Scala.list(all.rootPaths()));
  }

  @Override
  public void refresh() {
    all.refresh();
  }

  @Override
  public StructType partitionSchema() {
    return all.partitionSchema();
  }
}
