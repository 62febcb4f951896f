package grebe.spark;

import org.apache.spark.sql.catalyst.plans.physical.ClusteredDistribution;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import org.apache.spark.sql.catalyst.plans.physical.HashShuffleSpec;
import org.apache.spark.sql.catalyst.plans.physical.ShuffleSpec;

/**
 * Hash partitioning by an index's bucket columns. A join on more columns than these may shuffle its other side into it: Spark allows
 * that for its own partitionings only by a flag of the whole session.
 */
@SuppressWarnings({"rawtypes", "unchecked"})
final class Buckets extends HashPartitioning {
  Buckets(scala.collection.immutable.Seq columns, int count) {
    super(columns, count);
  }

  static HashPartitioning of(HashPartitioning plain) {
    return new Buckets(Scala.seq(Scala.list(plain.expressions())), plain.numPartitions());
  }

  @Override
  public ShuffleSpec createShuffleSpec(ClusteredDistribution distribution) {
    return new Spec(this, distribution);
  }

  public HashPartitioning withNewChildrenInternal(scala.collection.IndexedSeq children) {
    return new Buckets(Scala.seq(Scala.list(children)), numPartitions());
  }

  public HashPartitioning withNewChildrenInternal(scala.collection.immutable.IndexedSeq children) {
    return new Buckets(Scala.seq(Scala.list(children)), numPartitions());
  }

  private static final class Spec extends HashShuffleSpec {
    Spec(HashPartitioning partitioning, ClusteredDistribution distribution) {
      super(partitioning, distribution);
    }

    @Override
    public boolean canCreatePartitioning() {
      return true;
    }
  }
}
