package grebe.spark;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;

import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.QueryPlanningTracker;
import org.apache.spark.sql.catalyst.QueryPlanningTracker$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.ColumnarToRowExec;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.InputAdapter;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.WholeStageCodegenExec;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.PartitioningAwareFileIndex;

/**
 * What is told of queries once they have run, to be recorded: their plans as they were before indexes came in, and what they read. All
 * of it happens in the thread that Spark hears the ends of queries in; planning only leaves behind which plan it has changed.
 */
@SuppressWarnings({"rawtypes", "unchecked"})
final class Ran {
  private static final class Before {
    final LogicalPlan plan;
    final String used;

    Before(LogicalPlan plan, String used) {
      this.plan = plan;
      this.used = used;
    }
  }

  /** By what accompanies a query from its analysis to its end. */
  private final Map<QueryPlanningTracker, Before> changed = Collections.synchronizedMap(new WeakHashMap<>());
  private final Bridge bridge;
  volatile boolean wanted;

  Ran(Bridge bridge) {
    this.bridge = bridge;
  }

  /** The plan of the query that this thread is optimizing was changed. `used`: a list of indexes. */
  void changed(LogicalPlan plan, String used) {
    scala.Option<QueryPlanningTracker> tracker = wanted ? QueryPlanningTracker$.MODULE$.get() : scala.Option.empty();
    if (tracker.isDefined()) {
      changed.putIfAbsent(tracker.get(), new Before(plan, used));
    }
  }

  void tell(QueryExecution query, long nanoseconds) {
    if (!wanted) {
      return;
    }
    try {
      Before before = changed.get(query.tracker());
      LogicalPlan plan = before == null ? query.optimizedPlan() : before.plan;
      Description description = new Description(bridge, null);
      String asked = plan.isStreaming() ? "" : description.of(plan, bridge.settings, null, null, null, new ArrayList<>());
      if (!description.relations.isEmpty()) {
        Map<String, long[]> read = new LinkedHashMap<>();
        sum(query.executedPlan(), -1, read);
        String used = before == null ? "[]" : before.used;
        bridge.ask("{\"ran\":" + written(nanoseconds, read, description.relations) + ",\"used\":" + used + ",\"asked\":" + asked + "}");
      }
    } catch (Throwable problem) {
      bridge.failed(problem);
    }
  }

  private static String written(long nanoseconds, Map<String, long[]> read, List<Scanned> relations) {
    Json json = new Json().open().key("nanoseconds").number(nanoseconds).key("read").open();
    read.forEach((root, sums) -> {
      json.key(root).list();
      for (long each : sums) {
        json.number(each);
      }
      json.endList();
    });
    json.close().key("files").list();
    relations.forEach(each -> json.number(files(each)));
    return json.endList().close().toString();
  }

  /** How many there are; -1 where nobody has listed them yet. */
  private static long files(Scanned scanned) {
    FileIndex files = scanned.getClass() == PlainScan.class ? ((PlainScan) scanned).relation.location() : null;
    return files instanceof PartitioningAwareFileIndex ? ((PartitioningAwareFileIndex) files).allFiles().size() : -1;
  }

  /** Files, bytes, rows that were read, and rows that the filters right above let through (`left`; less than 0: there are none). */
  private static void sum(SparkPlan plan, long left, Map<String, long[]> read) {
    if (plan instanceof FileSourceScanExec) {
      long rows = Explaining.metric(plan, "numOutputRows");
      long[] sums = read.computeIfAbsent(root((FileSourceScanExec) plan), unused -> new long[4]);
      sums[0] += Explaining.metric(plan, "numFiles");
      sums[1] += Explaining.metric(plan, "filesSize");
      sums[2] += rows;
      sums[3] += left < 0 ? rows : left;
    }
    long below = plan instanceof FilterExec && left < 0 ? Explaining.metric(plan, "numOutputRows") : left;
    boolean passes = plan instanceof FilterExec || plan instanceof ProjectExec || plan instanceof ColumnarToRowExec
        || plan instanceof InputAdapter || plan instanceof WholeStageCodegenExec;
    Explaining.below(plan, each -> sum(each, passes ? below : -1, read));
  }

  private static String root(FileSourceScanExec scan) {
    FileIndex files = scan.relation().location();
    List<Path> roots = files instanceof Files ? ((Files) files).tableRoots() : Scala.list(files.rootPaths());
    return roots.isEmpty() ? "" : Snapshot.canonical(roots.get(0));
  }
}
