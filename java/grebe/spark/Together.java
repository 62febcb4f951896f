package grebe.spark;

import java.util.ArrayList;
import java.util.List;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.expressions.codegen.LazilyGeneratedOrdering;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.execution.SparkPlan;

/**
 * Rows from several places in the buckets of one index: its runs, and files that it does not cover yet. Only children that are not in
 * these buckets already are shuffled, only those that are not sorted are sorted; the rest is a merge.
 */
@SuppressWarnings({"rawtypes", "unchecked"})
public final class Together extends SparkPlan {
  private final List<SparkPlan> parts;
  /** Places in the output: of the columns that the buckets are by, and of those that each partition is sorted by. */
  private final List<Integer> keys;
  private final List<Integer> order;
  private final int buckets;

  // Public, as Spark copies nodes through their constructors.
  public Together(scala.collection.Seq parts, List<Integer> keys, List<Integer> order, int buckets) {
    this.parts = Scala.list(parts);
    this.keys = keys;
    this.order = order;
    this.buckets = buckets;
  }

  private static List<Attribute> columns(List<Integer> places, SparkPlan part) {
    List<Attribute> own = Scala.list(part.output());
    List<Attribute> found = new ArrayList<>();
    places.forEach(place -> found.add(own.get(place)));
    return found;
  }

  private scala.collection.immutable.Seq ordering(SparkPlan part) {
    List<SortOrder> sorted = new ArrayList<>();
    columns(order, part).forEach(column -> sorted.add(OrderedScan.ascending(column)));
    return Scala.seq(sorted);
  }

  @Override
  public scala.collection.immutable.Seq requiredChildDistribution() {
    List<Object> required = new ArrayList<>();
    for (SparkPlan part : parts) {
      required.add(Scala.clustered(columns(keys, part), buckets));
    }
    return Scala.seq(required);
  }

  @Override
  public scala.collection.immutable.Seq requiredChildOrdering() {
    List<Object> required = new ArrayList<>();
    parts.forEach(part -> required.add(ordering(part)));
    return Scala.seq(required);
  }

  @Override
  public Partitioning outputPartitioning() {
    return new Buckets(Scala.seq((List) columns(keys, parts.get(0))), buckets);
  }

  @Override
  public scala.collection.immutable.Seq outputOrdering() {
    return ordering(parts.get(0));
  }

  @Override
  public scala.collection.immutable.Seq output() {
    List<Attribute> merged = new ArrayList<>();
    List<Attribute> first = Scala.list(parts.get(0).output());
    for (int i = 0; i < first.size(); i++) {
      boolean nullable = false;
      for (SparkPlan part : parts) {
        nullable |= ((Attribute) Scala.list(part.output()).get(i)).nullable();
      }
      merged.add(first.get(i).withNullability(nullable));
    }
    return Scala.seq(merged);
  }

  @Override
  public RDD doExecute() {
    List<RDD> rows = new ArrayList<>();
    parts.forEach(part -> rows.add(part.execute()));
    List<SortOrder> sort = Scala.list(ordering(parts.get(0)));
    LazilyGeneratedOrdering comparison =
        sort.isEmpty() ? null : new LazilyGeneratedOrdering(Scala.seq(sort), Scala.seq(Scala.list(parts.get(0).output())));
    return new MergedRows(((RDD<InternalRow>) rows.get(0)).sparkContext(), rows, comparison);
  }

  @Override
  public scala.collection.immutable.Seq children() {
    return Scala.seq(parts);
  }

  public SparkPlan withNewChildrenInternal(scala.collection.IndexedSeq children) {
    return new Together(Scala.seq(Scala.list(children)), keys, order, buckets);
  }

  public SparkPlan withNewChildrenInternal(scala.collection.immutable.IndexedSeq children) {
    return new Together(Scala.seq(Scala.list(children)), keys, order, buckets);
  }

  @Override
  public String nodeName() {
    return "GrebeTogether";
  }

  @Override
  public int productArity() {
    return 4;
  }

  @Override
  public Object productElement(int n) {
    return n == 0 ? children() : n == 1 ? keys : n == 2 ? order : (Object) buckets;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof Together;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Together && ((Together) other).parts.equals(parts) && ((Together) other).keys.equals(keys)
        && ((Together) other).order.equals(order) && ((Together) other).buckets == buckets;
  }

  @Override
  public int hashCode() {
    return parts.hashCode();
  }
}
