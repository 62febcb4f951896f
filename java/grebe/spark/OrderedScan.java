package grebe.spark;

import java.util.ArrayList;
import java.util.List;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.expressions.Ascending$;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.SparkPlan;

/** Spark's own scan of an index's files, with what Spark cannot know of them: that each bucket is sorted. Passes batches through. */
@SuppressWarnings({"rawtypes", "unchecked"})
public final class OrderedScan extends SparkPlan {
  private final SparkPlan scan;
  private final List<String> order;

  // Public, as Spark copies nodes through their constructors.
  public OrderedScan(SparkPlan scan, List<String> order) {
    this.scan = scan;
    this.order = order;
  }

  /** False once Spark has found that nobody needs the buckets: then the files are split and mixed as any others. */
  private boolean bucketed() {
    return scan instanceof FileSourceScanExec && ((FileSourceScanExec) scan).bucketedScan();
  }

  @Override
  public Partitioning outputPartitioning() {
    Partitioning own = scan.outputPartitioning();
    return own instanceof HashPartitioning ? Buckets.of((HashPartitioning) own) : own;
  }

  @Override
  public scala.collection.immutable.Seq outputOrdering() {
    return bucketed() ? ascending(order, scan.output()) : Scala.nothing();
  }

  /** As long a prefix of the order as the output still has. */
  private static scala.collection.immutable.Seq ascending(List<String> order, scala.collection.Seq output) {
    List<SortOrder> keys = new ArrayList<>();
    for (String name : order) {
      Attribute found = null;
      for (Object each : Scala.list(output)) {
        if (((Attribute) each).name().equals(name)) {
          found = (Attribute) each;
        }
      }
      if (found == null) {
        break;
      }
      keys.add(ascending(found));
    }
    return Scala.seq(keys);
  }

  static SortOrder ascending(Attribute column) {
    return new SortOrder(column, Ascending$.MODULE$, Ascending$.MODULE$.defaultNullOrdering(), Scala.nothing());
  }

  @Override
  public scala.collection.immutable.Seq output() {
    return Scala.seq(Scala.list(scan.output()));
  }

  @Override
  public boolean supportsColumnar() {
    return scan.supportsColumnar();
  }

  @Override
  public RDD doExecute() {
    ServedFiles.verify(scan);
    return scan.execute();
  }

  @Override
  public RDD doExecuteColumnar() {
    ServedFiles.verify(scan);
    return scan.executeColumnar();
  }

  // Spark calls this ahead of every action, also where it has executed the plan before.
  @Override
  public void resetMetrics() {
    ServedFiles.verify(scan);
    super.resetMetrics();
  }

  @Override
  public scala.collection.immutable.Seq children() {
    return Scala.seq(scan);
  }

  public SparkPlan withNewChildrenInternal(scala.collection.IndexedSeq children) {
    return new OrderedScan((SparkPlan) children.head(), order);
  }

  public SparkPlan withNewChildrenInternal(scala.collection.immutable.IndexedSeq children) {
    return new OrderedScan((SparkPlan) children.head(), order);
  }

  @Override
  public String nodeName() {
    return "GrebeScan";
  }

  @Override
  public int productArity() {
    return 2;
  }

  @Override
  public Object productElement(int n) {
    return n == 0 ? scan : order;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof OrderedScan;
  }

  // Exchange reuse compares canonicalised plans: same scan, same order.
  @Override
  public boolean equals(Object other) {
    return other instanceof OrderedScan && ((OrderedScan) other).scan.equals(scan) && ((OrderedScan) other).order.equals(order);
  }

  @Override
  public int hashCode() {
    return 31 * scan.hashCode() + order.hashCode();
  }
}
