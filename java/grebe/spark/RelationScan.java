package grebe.spark;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/** A leaf that Spark itself calls a relation of files, whoever lists them. */
@SuppressWarnings({"rawtypes", "unchecked"})
abstract class RelationScan extends Scanned {
  final LogicalRelation plan;
  final HadoopFsRelation relation;

  RelationScan(LogicalRelation plan) {
    super(plan);
    this.plan = plan;
    this.relation = (HadoopFsRelation) plan.relation();
  }

  @Override
  String[] inputFiles() {
    return relation.location().inputFiles();
  }

  @Override
  SparkSession session() {
    return relation.sparkSession();
  }

  @Override
  long bytes() {
    return relation.location().sizeInBytes();
  }

  @Override
  LogicalRelation replaced(HadoopFsRelation other, scala.collection.Seq output) {
    return Scala.withRelation(plan, other, output);
  }

  /** As the catalog knows it, if it does. */
  void name(Json json) {
    if (plan.catalogTable().isDefined()) {
      json.key("table").text(plan.catalogTable().get().identifier().unquotedString());
    }
  }
}
