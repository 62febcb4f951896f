package grebe.spark;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;

/** The rule of the optimizer. */
@SuppressWarnings({"rawtypes", "unchecked"})
public final class Rewriting extends Rule {
  static final String MARK = "grebe";
  private final Bridge bridge;

  public Rewriting(Bridge bridge) {
    this.bridge = bridge;
  }

  @Override
  public String ruleName() {
    return "grebe.spark.Rewriting";
  }

  @Override
  public TreeNode apply(TreeNode plan) {
    return plan;
  }
}
