package grebe.spark;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningExpression;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.InSubqueryExec;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.FileScanRDD;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.metric.SQLMetrics;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.util.SerializableConfiguration;

/**
 * Spark's own scan of a table, of which only some files, or parts of them, are read. Which ones is known before, or only when the
 * query runs: from the keys of a join's other side, which Spark collects as for its own dynamic pruning of partitions.
 */
@SuppressWarnings({"rawtypes", "unchecked"})
public final class NarrowedScan extends SparkPlan {
  private final SparkPlan scan;
  private final scala.collection.immutable.Seq keys;
  private boolean narrowed;
  /** Plain files that are read in ranges, by path, with their facts. */
  private final HashMap<String, String> facts = new HashMap<>();

  // Public, as Spark copies nodes through their constructors.
  public NarrowedScan(SparkPlan scan, scala.collection.immutable.Seq keys) {
    this.scan = scan;
    this.keys = keys;
  }

  @Override
  public RDD doExecute() {
    narrow();
    ServedFiles.verify(scan);
    return scan.execute();
  }

  @Override
  public RDD doExecuteColumnar() {
    narrow();
    ServedFiles.verify(scan);
    return scan.executeColumnar();
  }

  /** Whatever goes wrong, all files are read. */
  private synchronized void narrow() {
    if (!narrowed && scan instanceof FileSourceScanExec) {
      narrowed = true;
      try {
        narrow((FileSourceScanExec) scan);
      } catch (Exception | LinkageError problem) {
        Bridge.active.failed(problem);
      }
    }
  }

  private void narrow(FileSourceScanExec source) throws Exception {
    Narrowed files = (Narrowed) source.relation().location();
    List<Restriction> restrictions = new ArrayList<>();
    if (!files.restriction.ranges.isEmpty()) {
      restrictions.add(files.restriction);
    }
    for (Expression each : Scala.<Expression>list(keys)) {
      Restriction restriction = byKeys(files, each);
      restrictions.add(restriction);
      if (files.served != null) {
        files.served.add(restriction.without);
      }
    }
    restrictions.removeIf(Restriction::isNothing);
    if (restrictions.isEmpty()) {
      return;
    }
    // Of a scan that prunes partitions by itself: what it waits for must be there before it lists its files.
    source.waitForSubqueries();
    if (files.isPlain()) {
      verify(source); // no ranges where they cannot be verified
    }
    for (Restriction restriction : restrictions) {
      restrict(source, files, restriction);
    }
  }

  /** Make tasks compare each file that they read in ranges with the one that was planned for. */
  private void verify(FileSourceScanExec source) throws ReflectiveOperationException {
    FileScanRDD rows = (FileScanRDD) source.inputRDDs().head();
    SparkSession session = source.relation().sparkSession();
    Configuration configuration = session.sessionState().newHadoopConfWithOptions(source.relation().options());
    Broadcast<SerializableConfiguration> shared =
        JavaSparkContext.fromSparkContext(session.sparkContext()).broadcast(new SerializableConfiguration(configuration));
    Field reader = readFunction();
    reader.set(rows, new UnchangedFileReader((scala.Function1) reader.get(rows), shared, facts));
  }

  private static Field readFunction() throws NoSuchFieldException {
    for (Field field : FileScanRDD.class.getDeclaredFields()) {
      if (field.getType() == scala.Function1.class) {
        field.setAccessible(true);
        return field;
      }
    }
    throw new NoSuchFieldException("FileScanRDD.readFunction");
  }

  /** Keys that nobody collected, or too many of them, restrict nothing. */
  private static Restriction byKeys(Narrowed files, Expression key) throws Exception {
    Expression found = key instanceof DynamicPruningExpression ? ((DynamicPruningExpression) key).child() : key;
    if (!(found instanceof InSubqueryExec)) {
      return Restriction.NONE;
    }
    scala.Option values = ((InSubqueryExec) found).values();
    if (!values.isDefined() || ((Object[]) values.get()).length > files.mostKeys) {
      return Restriction.NONE;
    }
    Json json = new Json().open().key("lookup").text(files.lookup).key("values").list();
    for (Object value : (Object[]) values.get()) {
      if (value != null) {
        Expressions.value(json, value);
      }
    }
    String answer = Bridge.active.ask(json.endList().close().toString());
    return answer.isEmpty() ? Restriction.NONE : Restriction.of(answer);
  }

  /** The scan has made its list of partitions, and nobody has asked for it yet. */
  private void restrict(FileSourceScanExec source, Narrowed files, Restriction restriction) throws ReflectiveOperationException {
    FileScanRDD rows = (FileScanRDD) source.inputRDDs().head();
    List<FilePartition> before = Scala.list(rows.filePartitions());
    List<FilePartition> after = new ArrayList<>();
    Set<Path> seen = new HashSet<>();
    List<PartitionedFile> kept = new ArrayList<>();
    for (FilePartition partition : before) {
      List<PartitionedFile> left = restriction.left(partition, files, seen, path -> isSplitable(source, path));
      // A bucket stays the partition that it is.
      after.add(new FilePartition(partition.index(), left.toArray(new PartitionedFile[0])));
      kept.addAll(left);
    }
    if (files.isPlain()) {
      for (PartitionedFile file : kept) {
        if (seen.contains(file.toPath())) {
          facts.put(file.toPath().toString(), files.factOf(file));
        }
      }
    }
    List<FilePartition> packed = source.bucketedScan() ? after : packed(kept);
    Field list = FileScanRDD.class.getDeclaredField("filePartitions");
    list.setAccessible(true);
    list.set(rows, Scala.seq(packed));
    count(source, packed);
  }

  /** Not if it is compressed as a whole, or if records may go over several lines. */
  private static boolean isSplitable(FileSourceScanExec source, Path path) {
    HadoopFsRelation relation = source.relation();
    return relation.fileFormat().isSplitable(relation.sparkSession(), relation.options(), path);
  }

  /** As Spark packs files into tasks: the largest first, each task up to its share. */
  private static List<FilePartition> packed(List<PartitionedFile> files) {
    SQLConf conf = SQLConf.get();
    long open = conf.filesOpenCostInBytes();
    long total = 0;
    for (PartitionedFile file : files) {
      total += file.length() + open;
    }
    long share = total / Math.max(1, SparkContext.getOrCreate().defaultParallelism());
    long most = Math.min(conf.filesMaxPartitionBytes(), Math.max(open, share));
    files.sort(Comparator.comparingLong(PartitionedFile::length).reversed());
    List<FilePartition> made = new ArrayList<>();
    List<PartitionedFile> together = new ArrayList<>();
    long size = 0;
    for (PartitionedFile file : files) {
      if (!together.isEmpty() && size + file.length() > most) {
        made.add(new FilePartition(made.size(), together.toArray(new PartitionedFile[0])));
        together.clear();
        size = 0;
      }
      together.add(file);
      size += file.length() + open;
    }
    if (!together.isEmpty()) {
      made.add(new FilePartition(made.size(), together.toArray(new PartitionedFile[0])));
    }
    return made;
  }

  /** Spark has told how many files it found; this is how many are read. */
  private static void count(FileSourceScanExec source, List<FilePartition> partitions) {
    long bytes = 0;
    for (FilePartition partition : partitions) {
      for (PartitionedFile file : partition.files()) {
        bytes += file.length();
      }
    }
    SparkContext context = SparkContext.getOrCreate();
    List<SQLMetric> changed = new ArrayList<>();
    set(source, "numFiles", Restriction.files(partitions), changed);
    set(source, "filesSize", bytes, changed);
    String execution = context.getLocalProperty(SQLExecution.EXECUTION_ID_KEY());
    SQLMetrics.postDriverMetricUpdates(context, execution, Scala.seq(changed));
  }

  private static void set(FileSourceScanExec source, String name, long value, List<SQLMetric> changed) {
    scala.Option metric = source.metrics().get(name);
    if (metric.isDefined()) {
      ((SQLMetric) metric.get()).set(value);
      changed.add((SQLMetric) metric.get());
    }
  }

  @Override
  public Partitioning outputPartitioning() {
    return scan.outputPartitioning();
  }

  @Override
  public scala.collection.immutable.Seq outputOrdering() {
    return Scala.seq(Scala.list(scan.outputOrdering()));
  }

  @Override
  public scala.collection.immutable.Seq output() {
    return Scala.seq(Scala.list(scan.output()));
  }

  @Override
  public boolean supportsColumnar() {
    return scan.supportsColumnar();
  }

  // Spark calls this ahead of every action, also where it has executed the plan before.
  @Override
  public void resetMetrics() {
    ServedFiles.verify(scan);
    super.resetMetrics();
  }

  @Override
  public scala.collection.immutable.Seq children() {
    return Scala.seq(scan);
  }

  public SparkPlan withNewChildrenInternal(scala.collection.IndexedSeq children) {
    return new NarrowedScan((SparkPlan) children.head(), keys);
  }

  public SparkPlan withNewChildrenInternal(scala.collection.immutable.IndexedSeq children) {
    return new NarrowedScan((SparkPlan) children.head(), keys);
  }

  @Override
  public String nodeName() {
    return "GrebeScan";
  }

  @Override
  public int productArity() {
    return 2;
  }

  @Override
  public Object productElement(int n) {
    return n == 0 ? scan : keys;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof NarrowedScan;
  }

  // Exchange reuse compares canonicalised plans: same scan, same keys.
  @Override
  public boolean equals(Object other) {
    return other instanceof NarrowedScan && ((NarrowedScan) other).scan.equals(scan) && ((NarrowedScan) other).keys.equals(keys);
  }

  @Override
  public int hashCode() {
    return 31 * scan.hashCode() + keys.hashCode();
  }
}
