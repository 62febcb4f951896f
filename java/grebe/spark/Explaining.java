package grebe.spark;

import java.util.List;

import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.CommandExecutionMode$;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.columnar.InMemoryRelation;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.metric.SQLMetric;

/** A query planned with and without indexes, and what a query that ran has read. */
@SuppressWarnings({"rawtypes", "unchecked"})
final class Explaining {
  private Explaining() {}

  /** Set for a thread whose plans are to be left alone. */
  static final ThreadLocal<Boolean> OFF = ThreadLocal.withInitial(() -> Boolean.FALSE);

  /** The physical plans as text, before and after, and the roots of cached tables that the query reads from memory. */
  static String plans(Dataset frame) {
    LogicalPlan analyzed = frame.queryExecution().analyzed();
    OFF.set(Boolean.TRUE);
    QueryExecution before;
    String plain;
    try {
      before = planned(frame.sparkSession(), analyzed);
      plain = before.executedPlan().toString();
    } finally {
      OFF.set(Boolean.FALSE);
    }
    String rewritten = planned(frame.sparkSession(), analyzed).executedPlan().toString();
    Json json = new Json().open().key("before").text(plain).key("after").text(rewritten).key("cached").list();
    cached(json, before.optimizedPlan());
    return json.endList().close().toString();
  }

  private static QueryExecution planned(SparkSession session, LogicalPlan analyzed) {
    return session.sessionState().executePlan(analyzed, CommandExecutionMode$.MODULE$.SKIP());
  }

  private static void cached(Json json, LogicalPlan plan) {
    if (plan instanceof InMemoryRelation) {
      roots(json, ((InMemoryRelation) plan).cacheBuilder().cachedPlan());
    }
    for (Object child : Scala.list(plan.children())) {
      cached(json, (LogicalPlan) child);
    }
    for (Object subquery : Scala.list(plan.subqueries())) {
      cached(json, (LogicalPlan) subquery);
    }
  }

  private static void roots(Json json, SparkPlan plan) {
    if (plan instanceof FileSourceScanExec) {
      FileIndex files = ((FileSourceScanExec) plan).relation().location();
      // What was cached may have been read from an index itself.
      List<Path> roots = files instanceof Files ? ((Files) files).tableRoots() : Scala.list(files.rootPaths());
      json.list();
      roots.forEach(root -> json.text(Snapshot.canonical(root)));
      json.endList();
    }
    below(plan, each -> roots(json, each));
  }

  interface Visit {
    void of(SparkPlan plan);
  }

  /** The children, also of what Spark hides while it adapts a plan. */
  static void below(SparkPlan plan, Visit visit) {
    if (plan instanceof AdaptiveSparkPlanExec) {
      visit.of(((AdaptiveSparkPlanExec) plan).executedPlan());
    } else if (plan instanceof QueryStageExec) {
      visit.of(((QueryStageExec) plan).plan());
    }
    for (Object child : Scala.list(plan.children())) {
      visit.of((SparkPlan) child);
    }
    for (Object subquery : Scala.list(plan.subqueries())) {
      visit.of((SparkPlan) subquery);
    }
  }

  /** Files and bytes that were read, and milliseconds (-1: it did not run). */
  static String actual(Dataset frame, Watch watch) {
    QueryExecution query = frame.queryExecution();
    long[] sums = new long[2];
    sum(query.executedPlan(), sums);
    Json json = new Json().open().key("files").number(sums[0]).key("bytes").number(sums[1]);
    return json.key("milliseconds").number(watch.milliseconds(query)).close().toString();
  }

  private static void sum(SparkPlan plan, long[] sums) {
    if (plan instanceof FileSourceScanExec) {
      sums[0] += metric(plan, "numFiles");
      sums[1] += metric(plan, "filesSize");
    }
    below(plan, each -> sum(each, sums));
  }

  static long metric(SparkPlan plan, String name) {
    scala.Option found = plan.metrics().get(name);
    return found.isDefined() ? Math.max(0, ((SQLMetric) found.get()).value()) : 0;
  }
}
