package grebe.spark;

import java.util.BitSet;
import java.util.List;

import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;

/** A relation's own files without those that, as indexes say, hold no row of the query. */
@SuppressWarnings({"rawtypes", "unchecked"})
final class Narrowed extends Kept {
  private final String by;
  private List<PartitionDirectory> everything;

  /** `by`: the indexes, for people. */
  Narrowed(FileIndex all, Snapshot registered, BitSet without, String by) {
    super(all, registered, without, "");
    this.by = by;
  }

  /** Spark asks for the list several times while it plans a query, and a relation of ours lives no longer than that. */
  @Override
  synchronized List<PartitionDirectory> list(List partitionFilters, List dataFilters) {
    if (!partitionFilters.isEmpty()) {
      return super.list(partitionFilters, dataFilters);
    }
    if (everything == null) {
      everything = super.list(partitionFilters, dataFilters);
    }
    return everything;
  }

  @Override
  public synchronized void refresh() {
    everything = null;
    super.refresh();
  }

  @Override
  public String toString() {
    return "Grebe(" + by + ")";
  }
}
