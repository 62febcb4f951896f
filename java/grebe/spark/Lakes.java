package grebe.spark;

import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;

/** Tables of lake formats in a plan that is analysed and not yet optimised: which format, where it lies, and its name. */
final class Lakes {
  private static final String ICEBERG = "org.apache.iceberg.spark.source.SparkTable";

  private Lakes() {}

  /** Null if the plan is none. */
  static String[] of(LogicalPlan plan) {
    if (plan instanceof DataSourceV2Relation) {
      Object table = ((DataSourceV2Relation) plan).table();
      return table.getClass().getName().equals(ICEBERG) ? iceberg(Reflected.call(table, "table")) : null;
    }
    if (!(plan instanceof LogicalRelation) || !(((LogicalRelation) plan).relation() instanceof HadoopFsRelation)) {
      return null;
    }
    LogicalRelation relation = (LogicalRelation) plan;
    Object files = ((HadoopFsRelation) relation.relation()).location();
    boolean delta = files.getClass().getName().startsWith(DeltaScan.PACKAGE);
    if (!delta && !files.getClass().getName().equals(HudiScan.FILES)) {
      return null;
    }
    Path root = (Path) Scala.list(((HadoopFsRelation) relation.relation()).location().rootPaths()).get(0);
    String name = relation.catalogTable().isDefined() ? relation.catalogTable().get().identifier().unquotedString() : "";
    return new String[] {delta ? "delta" : "hudi", Snapshot.canonical(root), name};
  }

  /** A catalog knows which metadata counts. */
  private static String[] iceberg(Object table) {
    Object metadata = Reflected.call(Reflected.call(table, "operations"), "refresh");
    return new String[] {"iceberg", (String) Reflected.call(metadata, "metadataFileLocation"), (String) Reflected.call(table, "name")};
  }
}
