package grebe.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.OptionalLong;

import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.sql.types.StructType;

/**
 * Iceberg's own scan, of which only some tasks are carried out. The scan itself stays as it is: it is restricted just while it makes
 * its batch. Equal only to one with the same files left out, or Spark might take one's rows for the other's.
 */
@SuppressWarnings({"rawtypes", "unchecked"})
public final class IcebergPart implements Scan, SupportsReportStatistics, SupportsRuntimeV2Filtering {
  private final Scan scan;
  private final FileIds registered;
  private final BitSet without;
  private final String shown;
  final String pair;

  IcebergPart(Scan scan, FileIds registered, BitSet without, String shown, String pair) {
    this.scan = scan;
    this.registered = registered;
    this.without = without;
    this.shown = shown;
    this.pair = pair;
  }

  @Override
  public Batch toBatch() {
    synchronized (scan) {
      List<Object> all = new ArrayList<>(IcebergScan.tasks(scan));
      try {
        Reflected.call(scan, "resetTasks", kept(all));
        return new PartBatch(scan.toBatch(), identity());
      } finally {
        Reflected.call(scan, "resetTasks", all);
      }
    }
  }

  private List<Object> kept(List<Object> tasks) {
    List<Object> kept = new ArrayList<>();
    for (Object task : tasks) {
      int id = IcebergScan.id(registered, Reflected.call(task, "file"));
      if (id < 0 || !without.get(id)) {
        kept.add(task);
      }
    }
    return kept;
  }

  @Override
  public Statistics estimateStatistics() {
    long bytes = 0;
    for (Object task : kept(IcebergScan.tasks(scan))) {
      bytes += (Long) Reflected.call(Reflected.call(task, "file"), "fileSizeInBytes");
    }
    long size = bytes;
    return new Statistics() {
      @Override
      public OptionalLong sizeInBytes() {
        return OptionalLong.of(size);
      }

      @Override
      public OptionalLong numRows() {
        return OptionalLong.empty();
      }
    };
  }

  /** Spark has asked the scan itself before, and will ask this one in its place. */
  @Override
  public NamedReference[] filterAttributes() {
    return scan instanceof SupportsRuntimeV2Filtering ? ((SupportsRuntimeV2Filtering) scan).filterAttributes() : new NamedReference[0];
  }

  @Override
  public void filter(Predicate[] predicates) {
    if (scan instanceof SupportsRuntimeV2Filtering) {
      ((SupportsRuntimeV2Filtering) scan).filter(predicates);
    }
  }

  @Override
  public StructType readSchema() {
    return scan.readSchema();
  }

  @Override
  public String description() {
    return shown + ", " + scan.description();
  }

  @Override
  public ColumnarSupportMode columnarSupportMode() {
    return scan.columnarSupportMode();
  }

  @Override
  public CustomMetric[] supportedCustomMetrics() {
    return scan.supportedCustomMetrics();
  }

  @Override
  public CustomTaskMetric[] reportDriverMetrics() {
    return scan.reportDriverMetrics();
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof IcebergPart && identity().equals(((IcebergPart) other).identity());
  }

  @Override
  public int hashCode() {
    return identity().hashCode();
  }

  private List<Object> identity() {
    return Arrays.asList(scan, without, pair);
  }

  /** Spark compares batches when it looks for work that it can do once. */
  private static final class PartBatch implements Batch {
    private final Batch batch;
    private final List<Object> identity;

    PartBatch(Batch batch, List<Object> identity) {
      this.batch = batch;
      this.identity = identity;
    }

    @Override
    public InputPartition[] planInputPartitions() {
      return batch.planInputPartitions();
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
      return batch.createReaderFactory();
    }

    @Override
    public boolean equals(Object other) {
      return other instanceof PartBatch && ((PartBatch) other).batch.equals(batch) && ((PartBatch) other).identity.equals(identity);
    }

    @Override
    public int hashCode() {
      return identity.hashCode();
    }
  }
}
