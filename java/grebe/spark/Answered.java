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

  /** The data files that the answer is of. */
  static final TreeNodeTag<ServedFiles> SERVED = new TreeNodeTag<>("grebe.served");

  private final SparkPlan row;
  private final String shown;
  private final ServedFiles served;

  // Public, as Spark copies nodes through their constructors.
  public Answered(SparkPlan row, String shown, ServedFiles served) {
    this.row = row;
    this.shown = shown;
    this.served = served;
  }

  private void verify() {
    if (served != null) {
      served.verify();
    }
  }

  // Spark calls this ahead of every action, also where it has executed the plan before.
  @Override
  public void resetMetrics() {
    verify();
    super.resetMetrics();
  }

  @Override
  public RDD doExecute() {
    verify();
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
    return new Answered((SparkPlan) children.head(), shown, served);
  }

  public SparkPlan withNewChildrenInternal(scala.collection.immutable.IndexedSeq children) {
    return new Answered((SparkPlan) children.head(), shown, served);
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
    return 3;
  }

  @Override
  public Object productElement(int n) {
    return n == 0 ? row : n == 1 ? shown : served;
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
