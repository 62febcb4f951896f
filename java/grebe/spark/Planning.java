package grebe.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

import org.apache.hadoop.fs.FileStatus;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.catalog.BucketSpec;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.ReturnAnswer;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.planning.GenericStrategy;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage;
import org.apache.spark.sql.execution.datasources.BucketingUtils;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileSourceStrategy$;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/** How a stand-in is read. Everything else is left to Spark's own strategies, and so is the reading of each file. */
@SuppressWarnings({"rawtypes", "unchecked"})
public final class Planning extends SparkStrategy {
  private final Bridge bridge;

  Planning(Bridge bridge) {
    this.bridge = bridge;
  }

  /** Without our help a stand-in is a relation as any other, which Spark plans right, only with more shuffles. */
  public scala.collection.immutable.Seq apply(LogicalPlan plan) {
    try {
      return planned(plan);
    } catch (Exception | LinkageError problem) {
      bridge.failed(problem);
      return Scala.nothing();
    }
  }

  private scala.collection.immutable.Seq planned(LogicalPlan plan) {
    if (plan instanceof Hinted) {
      return Scala.seq(planLater(((Hinted) plan).query));
    }
    if (plan instanceof ReturnAnswer && plan.children().head() instanceof Hinted) {
      return Scala.seq(planLater(new ReturnAnswer(((Hinted) plan.children().head()).query)));
    }
    if (plan instanceof Union) {
      return pair((Union) plan);
    }
    if (plan instanceof Aggregate) {
      SparkPlan once = togetherAlready((Aggregate) plan) ? OnePhase.of((Aggregate) plan, this::planLater) : null;
      return once == null ? Scala.nothing() : Scala.seq(once);
    }
    if (plan instanceof OneRowRelation) {
      scala.Option name = plan.getTagValue(Answered.SHOWN);
      return shown(plan, name.isDefined() ? (String) name.get() : "");
    }
    boolean scanned = plan instanceof Project || plan instanceof Filter || plan instanceof LogicalRelation;
    FileIndex files = scanned ? files(plan) : null;
    if (files instanceof Narrowed) {
      return narrowed(plan);
    }
    Content content = scanned ? content(plan) : null;
    if (content == null) {
      return shown(plan, scanned ? shown(plan) : "");
    }
    if (content.buckets > 0) {
      return scans(plan, content);
    }
    SparkPlan read = named(Pushed.closer((SparkPlan) FileSourceStrategy$.MODULE$.apply(plan).head()), shown(plan));
    return Scala.seq(compared(read));
  }

  /** What the next strategy makes of it, as if this one had nothing to say, under a name for people. */
  private static scala.collection.immutable.Seq shown(LogicalPlan plan, String name) {
    if (name.isEmpty()) {
      return Scala.nothing();
    }
    Object planner = Reflected.call(Reflected.call(SparkSession.active(), "sessionState"), "planner");
    for (GenericStrategy each : Scala.<GenericStrategy>list((scala.collection.Seq) Reflected.call(planner, "strategies"))) {
      List<SparkPlan> made = each instanceof Planning ? new ArrayList<>() : Scala.list(each.apply(plan));
      if (!made.isEmpty()) {
        return Scala.seq(plan instanceof OneRowRelation ? answered(plan, made.get(0), name) : named(made.get(0), name));
      }
    }
    return Scala.nothing();
  }

  private static SparkPlan answered(LogicalPlan row, SparkPlan planned, String name) {
    scala.Option served = row.getTagValue(Answered.SERVED);
    return new Answered(planned, name, served.isDefined() ? (ServedFiles) served.get() : null);
  }

  private static SparkPlan named(SparkPlan plan, String name) {
    return plan instanceof FileSourceScanExec
        ? Scala.named((FileSourceScanExec) plan, name) : Scala.withChildren(plan, child -> named(child, name));
  }

  /** What a scan of ours is called; empty for all others. */
  private static String shown(LogicalPlan plan) {
    LogicalRelation leaf = leaf(plan);
    boolean files = leaf != null && leaf.relation() instanceof HadoopFsRelation;
    scala.Option found = files ? ((HadoopFsRelation) leaf.relation()).options().get(Rewriting.SHOWN) : scala.Option.empty();
    return found.isDefined() ? (String) found.get() : "";
  }

  // Under the erased name that Scala's generic class calls.
  public scala.collection.immutable.Seq apply(TreeNode plan) {
    return apply((LogicalPlan) plan);
  }

  /** Whether the rows of each group lie in one bucket, since the bucket's columns are among those that are grouped by. */
  private static boolean togetherAlready(Aggregate aggregate) {
    LogicalPlan child = (LogicalPlan) aggregate.children().head();
    LogicalPlan read = child instanceof Union ? standIn((Union) child) : child;
    Content content = read == null ? null : content(read);
    if (content == null || content.buckets == 0) {
      return false;
    }
    List<Integer> places = places(read, keys(read));
    List<Attribute> output = Scala.list(child.output());
    List<Long> grouped = new ArrayList<>();
    for (Object each : Scala.list(aggregate.groupingExpressions())) {
      if (each instanceof Attribute) {
        grouped.add(((Attribute) each).exprId().id());
      }
    }
    return places.size() == keys(read).size() && places.stream().allMatch(place -> grouped.contains(output.get(place).exprId().id()));
  }

  /** Of a stand-in and the files that are read beside it, both to lie in its buckets, the stand-in; null if it is no such pair. */
  private static LogicalPlan standIn(Union union) {
    List<LogicalPlan> parts = Scala.list(union.children());
    Content content = parts.size() == 2 ? content(parts.get(0)) : null;
    boolean ours = content != null && content.buckets > 0 && !content.pair.isEmpty()
        && Scanned.pair(end(parts.get(1))).equals(content.pair);
    return ours && places(parts.get(0), keys(parts.get(0))).size() == keys(parts.get(0)).size() ? parts.get(0) : null;
  }

  private scala.collection.immutable.Seq pair(Union union) {
    LogicalPlan read = standIn(union);
    if (read == null) {
      return Scala.nothing();
    }
    List<SparkPlan> planned = new ArrayList<>();
    Scala.<LogicalPlan>list(union.children()).forEach(part -> planned.add(planLater(part)));
    Content content = content(read);
    return Scala.seq(together(planned, places(read, keys(read)), places(read, content.order), content.buckets));
  }

  private scala.collection.immutable.Seq scans(LogicalPlan plan, Content content) {
    List<List<FileStatus>> sorted = sortedRuns(content, spec(plan).numBuckets());
    List<Integer> keys = places(plan, keys(plan));
    List<Integer> order = places(plan, content.order);
    if (order.isEmpty() || sorted.size() == 1 || keys.size() < keys(plan).size()) {
      return Scala.seq(scan(plan, content, sorted.size() == 1));
    }
    List<SparkPlan> parts = new ArrayList<>();
    for (List<FileStatus> run : sorted) {
      parts.add(scan(replaced(plan, content.only(run)), content, true));
    }
    return Scala.seq(together(parts, keys, order, content.buckets));
  }

  /** Filters by the keys of a join go to the scan; all others are Spark's. */
  private static scala.collection.immutable.Seq narrowed(LogicalPlan plan) {
    List<String> partitions = Arrays.asList(((HadoopFsRelation) leaf(plan).relation()).partitionSchema().fieldNames());
    List<Expression> keys = new ArrayList<>();
    ByKeys.collect(plan, keys);
    keys.removeIf(key -> Scala.<Attribute>list(key.references()).stream().anyMatch(each -> partitions.contains(each.name())));
    SparkPlan planned = (SparkPlan) FileSourceStrategy$.MODULE$.apply(ByKeys.without(plan, keys)).head();
    return Scala.seq(narrowed(named(planned, shown(plan)), keys));
  }

  /** The same plan, with a scan that compares the files which the index answers for. */
  private static SparkPlan compared(SparkPlan plan) {
    return plan instanceof FileSourceScanExec
        ? new OrderedScan(plan, new ArrayList<>()) : Scala.withChildren(plan, Planning::compared);
  }

  private static SparkPlan narrowed(SparkPlan plan, List<Expression> keys) {
    return plan instanceof FileSourceScanExec
        ? new NarrowedScan(plan, Scala.seq((List) keys)) : Scala.withChildren(plan, child -> narrowed(child, keys));
  }

  /** Asked at once for what Spark will ask it later, so that a Spark that differs from those we know shows here. */
  private static Together together(List<SparkPlan> parts, List<Integer> keys, List<Integer> order, int buckets) {
    Together made = new Together(Scala.seq(parts), keys, order, buckets);
    made.requiredChildDistribution();
    made.requiredChildOrdering();
    made.outputPartitioning();
    return made;
  }

  /** Spark's own plan of it, with the scan told what it is. */
  private SparkPlan scan(LogicalPlan plan, Content content, boolean sorted) {
    SparkPlan planned = named((SparkPlan) FileSourceStrategy$.MODULE$.apply(plan).head(), shown(plan));
    return wrapped(planned, content, sorted ? content.order : new ArrayList<>(), spec(plan).numBuckets());
  }

  private static SparkPlan wrapped(SparkPlan plan, Content content, List<String> order, int written) {
    if (plan instanceof FileSourceScanExec) {
      FileSourceScanExec scan = Pushed.closer((FileSourceScanExec) plan);
      return new OrderedScan(content.buckets == written ? scan : Scala.coalesced(scan, content.buckets), order);
    }
    List<SparkPlan> children = new ArrayList<>();
    for (Object child : Scala.list(plan.children())) {
      children.add(wrapped((SparkPlan) child, content, order, written));
    }
    return (SparkPlan) plan.withNewChildren(Scala.seq(children));
  }

  /** Lists of files that are sorted within each partition: a run, or where buckets share a partition, each of these on its own. */
  static List<List<FileStatus>> sortedRuns(Content content, int written) {
    List<List<FileStatus>> sorted = new ArrayList<>();
    for (List<FileStatus> run : content.runs) {
      Map<Integer, List<FileStatus>> byShare = new TreeMap<>();
      for (FileStatus file : run) {
        int bucket = (Integer) BucketingUtils.getBucketId(file.getPath().getName()).get();
        byShare.computeIfAbsent(bucket / content.buckets, share -> new ArrayList<>()).add(file);
      }
      sorted.addAll(byShare.values());
    }
    return sorted.isEmpty() ? content.runs : sorted;
  }

  /** Where in the output the leaf's own columns of these names are, up to the first that is not there. Names alone may deceive. */
  private static List<Integer> places(LogicalPlan plan, List<String> columns) {
    List<Attribute> output = Scala.list(plan.output());
    Map<Long, Attribute> origins = origins(plan);
    List<Integer> places = new ArrayList<>();
    for (String name : columns) {
      int found = -1;
      for (int i = 0; i < output.size(); i++) {
        Attribute own = origins.get(output.get(i).exprId().id());
        found = own != null && own.name().equals(name) ? i : found;
      }
      if (found < 0) {
        break;
      }
      places.add(found);
    }
    return places;
  }

  /** The leaf's own columns by the ids that they have on top, maybe as another name. */
  private static Map<Long, Attribute> origins(LogicalPlan plan) {
    Map<Long, Attribute> here = new HashMap<>();
    if (plan instanceof LogicalRelation) {
      Scala.<Attribute>list(plan.output()).forEach(own -> here.put(own.exprId().id(), own));
      return here;
    }
    Map<Long, Attribute> below = origins(below(plan));
    if (!(plan instanceof Project)) {
      return below;
    }
    for (NamedExpression each : Scala.<NamedExpression>list(((Project) plan).projectList())) {
      Object plain = each instanceof Alias ? ((Alias) each).child() : each;
      Attribute own = plain instanceof Attribute ? below.get(((Attribute) plain).exprId().id()) : null;
      if (own != null) {
        here.put(each.exprId().id(), own);
      }
    }
    return here;
  }

  private static List<String> keys(LogicalPlan plan) {
    return Scala.list(spec(plan).bucketColumnNames());
  }

  private static BucketSpec spec(LogicalPlan plan) {
    return (BucketSpec) ((HadoopFsRelation) leaf(plan).relation()).bucketSpec().get();
  }

  private static Content content(LogicalPlan plan) {
    FileIndex files = files(plan);
    return files instanceof Content ? (Content) files : null;
  }

  private static FileIndex files(LogicalPlan plan) {
    LogicalRelation leaf = leaf(plan);
    return leaf != null && leaf.relation() instanceof HadoopFsRelation ? ((HadoopFsRelation) leaf.relation()).location() : null;
  }

  private static LogicalRelation leaf(LogicalPlan plan) {
    LogicalPlan at = end(plan);
    return at instanceof LogicalRelation ? (LogicalRelation) at : null;
  }

  /** What projections and filters lie above. */
  private static LogicalPlan end(LogicalPlan plan) {
    LogicalPlan at = plan;
    while (at instanceof Project || at instanceof Filter || at instanceof LogicalQueryStage) {
      at = below(at);
    }
    return at;
  }

  /** A part that has run already is planned again with the rest. */
  private static LogicalPlan below(LogicalPlan plan) {
    return plan instanceof LogicalQueryStage ? ((LogicalQueryStage) plan).logicalPlan() : (LogicalPlan) plan.children().head();
  }

  private static LogicalPlan replaced(LogicalPlan plan, Content content) {
    if (plan instanceof LogicalRelation) {
      LogicalRelation relation = (LogicalRelation) plan;
      HadoopFsRelation old = (HadoopFsRelation) relation.relation();
      return Scala.withRelation(relation, new HadoopFsRelation(content, old.partitionSchema(), old.dataSchema(), old.bucketSpec(),
          old.fileFormat(), old.options(), old.sparkSession()), relation.output());
    }
    return (LogicalPlan) plan.withNewChildren(Scala.seq(replaced((LogicalPlan) plan.children().head(), content)));
  }
}
