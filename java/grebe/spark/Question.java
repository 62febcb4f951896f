package grebe.spark;

import java.util.List;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** A plan that Python is asked about, and the relations that it reads. */
final class Question {
  final LogicalPlan plan;
  final List<Scanned> relations;

  Question(LogicalPlan plan, List<Scanned> relations) {
    this.plan = plan;
    this.relations = relations;
  }
}
