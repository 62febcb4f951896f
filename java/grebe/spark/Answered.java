package grebe.spark;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.execution.SparkPlan;

/** The one empty row under an answer that an index has given, called so that people see where the answer comes from. */
@SuppressWarnings({"rawtypes", "unchecked"})
public final class Answered extends SparkPlan {
  /** What a row is called; unlike a field of ours, Spark keeps it when it copies the plan. */
  static final TreeNodeTag<String> SHOWN = new TreeNodeTag<>("grebe.shown");

  private final SparkPlan row;
  private final String shown;

  // Public, as Spark copies nodes through their constructors.
  public Answered(SparkPlan row, String shown) {
    this.row = row;
    this.shown = shown;
  }

  @Override
  public RDD doExecute() {
    return row.execute();
  }

  @Override
  public Partitioning outputPartitioning() {
    return row.outputPartitioning();
  }

  @Override
  public scala.collection.immutable.Seq output() {
    return Scala.seq(Scala.list(row.output()));
  }

  @Override
  public scala.collection.immutable.Seq children() {
    return Scala.seq(row);
  }

  public SparkPlan withNewChildrenInternal(scala.collection.IndexedSeq children) {
    return new Answered((SparkPlan) children.head(), shown);
  }

  public SparkPlan withNewChildrenInternal(scala.collection.immutable.IndexedSeq children) {
    return new Answered((SparkPlan) children.head(), shown);
  }

  @Override
  public String nodeName() {
    return shown;
  }

  @Override
  public String argString(int maxFields) {
    return "";
  }

  @Override
  public int productArity() {
    return 2;
  }

  @Override
  public Object productElement(int n) {
    return n == 0 ? row : shown;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof Answered;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Answered && ((Answered) other).row.equals(row) && ((Answered) other).shown.equals(shown);
  }

  @Override
  public int hashCode() {
    return 31 * row.hashCode() + shown.hashCode();
  }
}
