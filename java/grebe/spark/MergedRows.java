package grebe.spark;

import java.util.ArrayList;
import java.util.List;

import org.apache.spark.Partition;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.rdd.ZippedPartitionsBaseRDD;
import org.apache.spark.rdd.ZippedPartitionsPartition;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.codegen.LazilyGeneratedOrdering;

import scala.collection.Iterator;
import scala.reflect.ClassTag$;

/** Partition by partition the rows of several sources: merged by an order that each of them has, or one source after the other. */
@SuppressWarnings({"rawtypes", "unchecked"})
final class MergedRows extends ZippedPartitionsBaseRDD<InternalRow> {
  private final LazilyGeneratedOrdering order;

  MergedRows(SparkContext context, List<RDD> sources, LazilyGeneratedOrdering order) {
    super(context, Scala.seq((List) sources), false, ClassTag$.MODULE$.apply(InternalRow.class));
    this.order = order;
  }

  @Override
  public Iterator<InternalRow> compute(Partition split, TaskContext task) {
    List<Partition> parts = Scala.list(((ZippedPartitionsPartition) split).partitions());
    List<RDD> sources = Scala.list(rdds());
    List<Iterator<InternalRow>> rows = new ArrayList<>();
    for (int i = 0; i < parts.size(); i++) {
      rows.add(sources.get(i).iterator(parts.get(i), task));
    }
    return order == null ? new InTurn(rows) : new Merge(rows, order);
  }

  private static final class InTurn extends scala.collection.AbstractIterator<InternalRow> {
    private final List<Iterator<InternalRow>> sources;
    private int at;

    InTurn(List<Iterator<InternalRow>> sources) {
      this.sources = sources;
    }

    @Override
    public boolean hasNext() {
      while (at < sources.size() && !sources.get(at).hasNext()) {
        at++;
      }
      return at < sources.size();
    }

    @Override
    public InternalRow next() {
      if (!hasNext()) {
        throw new java.util.NoSuchElementException();
      }
      return sources.get(at).next();
    }
  }

  /**
   * A binary heap of the sources by their next rows. Sources reuse the memory of their rows, so that one is moved on only when the
   * row after its last is asked for.
   */
  private static final class Merge extends scala.collection.AbstractIterator<InternalRow> {
    private final LazilyGeneratedOrdering order;
    private final Iterator<InternalRow>[] sources;
    private final InternalRow[] heads;
    private int size;
    private boolean topIsUsed;

    Merge(List<Iterator<InternalRow>> all, LazilyGeneratedOrdering order) {
      this.order = order;
      this.sources = new Iterator[all.size()];
      this.heads = new InternalRow[all.size()];
      for (Iterator<InternalRow> source : all) {
        if (source.hasNext()) {
          sources[size] = source;
          heads[size] = source.next();
          size++;
        }
      }
      for (int i = size / 2 - 1; i >= 0; i--) {
        sink(i);
      }
    }

    @Override
    public boolean hasNext() {
      return size > 1 || size == 1 && (!topIsUsed || sources[0].hasNext());
    }

    @Override
    public InternalRow next() {
      if (topIsUsed) {
        if (sources[0].hasNext()) {
          heads[0] = sources[0].next();
        } else {
          size--;
          sources[0] = sources[size];
          heads[0] = heads[size];
        }
        sink(0);
      }
      if (size == 0) {
        throw new java.util.NoSuchElementException();
      }
      topIsUsed = true;
      return heads[0];
    }

    private void sink(int at) {
      while (true) {
        int least = at;
        for (int below = 2 * at + 1; below <= 2 * at + 2 && below < size; below++) {
          if (order.compare(heads[below], heads[least]) < 0) {
            least = below;
          }
        }
        if (least == at) {
          return;
        }
        Iterator<InternalRow> source = sources[at];
        InternalRow head = heads[at];
        sources[at] = sources[least];
        heads[at] = heads[least];
        sources[least] = source;
        heads[least] = head;
        at = least;
      }
    }
  }
}
