package grebe.spark;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;

import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.ExperimentalMethods;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import py4j.GatewayServer;

/** What Python calls. One for a JVM; Python's answers come through `planner`: text in, text out, so that no object is ever shared. */
@SuppressWarnings({"rawtypes", "unchecked"})
public final class Bridge {
  private static final Logger LOG = LoggerFactory.getLogger("grebe");
  static volatile Bridge active;

  private final Function<String, String> planner;
  final Map<String, Snapshot> snapshots = new ConcurrentHashMap<>();
  final Contents contents = new Contents();
  final Known known = new Known();
  final Counters counters = new Counters();
  final Map<Long, Question> questions = new ConcurrentHashMap<>();
  private final Map<Long, SparkSession> sessions = new ConcurrentHashMap<>();
  private final AtomicLong numbers = new AtomicLong();
  final Ran ran = new Ran(this);
  private final Watch watch = new Watch(ran);
  private final Losses losses = new Losses(this);
  private final Set<SparkSession> watched = Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap<>()));
  private final Set<SparkSessionExtensions> reached = Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap<>()));
  /** Of sessions that nobody said anything else of. */
  private volatile boolean enabled = true;
  private final Map<SparkSession, Boolean> switched = Collections.synchronizedMap(new WeakHashMap<>());
  /** Whether sessions that are made later are attached as well. */
  volatile boolean everywhere;
  volatile boolean verified = true;
  /** For how long a comparison of data files with what was planned holds, on a local disk. */
  volatile long comparisonNanos = 1_000_000_000L;
  volatile List<String> settings = new ArrayList<>();

  /** `server` is py4j's in this JVM; the planner listens on `port`, and knows `key` as well. */
  public Bridge(GatewayServer server, int port, byte[] key) {
    planner = new PlannerClient(server, port, key);
    active = this;
  }

  /** Queries of this session use indexes from now on. Doing it twice does nothing. */
  public void attach(SparkSession session) {
    // Another process that shares the JVM may have made one of its own meanwhile.
    active = this;
    ExperimentalMethods methods = session.experimental();
    if (!isAttached(session)) {
      methods.extraOptimizations_$eq(with(Scala.list(methods.extraOptimizations()), new Rewriting(this, session)));
    }
    if (watched.add(session)) {
      session.listenerManager().register(watch);
      if (watched.size() == 1) {
        session.sparkContext().listenerBus().addToQueue(losses, "grebe");
      }
    }
    try {
      SqlParser.install(session);
      reachLater(session);
    } catch (ReflectiveOperationException problem) {
      failed(problem);
    }
    // Stays when the rule goes: a plan that was rewritten before may still be carried out.
    if (!contains(Scala.list(methods.extraStrategies()), Planning.class)) {
      methods.extraStrategies_$eq(with(Scala.list(methods.extraStrategies()), new Planning(this)));
    }
  }

  boolean isAttached(SparkSession session) {
    return contains(Scala.list(session.experimental().extraOptimizations()), Rewriting.class);
  }

  /** Sessions that are made from this one share its extensions. */
  private void reachLater(SparkSession session) throws ReflectiveOperationException {
    SparkSessionExtensions extensions = (SparkSessionExtensions) session.getClass().getMethod("extensions").invoke(session);
    everywhere = true;
    if (reached.add(extensions)) {
      new Extension().apply(extensions);
    }
  }

  public void detach(SparkSession session) throws ReflectiveOperationException {
    everywhere = false;
    SqlParser.remove(session);
    if (watched.remove(session)) {
      session.listenerManager().unregister(watch);
      if (watched.isEmpty()) {
        session.sparkContext().removeSparkListener(losses);
      }
    }
    List<Object> others = new ArrayList<>();
    for (Object rule : Scala.list(session.experimental().extraOptimizations())) {
      if (!(rule instanceof Rewriting)) {
        others.add(rule);
      }
    }
    session.experimental().extraOptimizations_$eq(Scala.seq(others));
  }

  private static boolean contains(List<Object> items, Class<?> kind) {
    return items.stream().anyMatch(kind::isInstance);
  }

  private static scala.collection.immutable.Seq with(List<Object> items, Object more) {
    List<Object> all = new ArrayList<>(items);
    all.add(more);
    return Scala.seq(all);
  }

  public boolean isEnabled(SparkSession session) {
    return switched.getOrDefault(session, enabled);
  }

  public void setEnabled(SparkSession session, boolean on) {
    switched.put(session, on);
  }

  /** What holds for sessions that are made later. */
  public void setEnabledByDefault(boolean on) {
    enabled = on;
  }

  /** Whether Python is told of every query that has run. */
  public void setRecording(boolean on) {
    ran.wanted = on;
  }

  /** Waits until everything that has happened by now was heard, or so long. */
  public void listen(SparkSession session, long milliseconds) {
    try {
      session.sparkContext().listenerBus().waitUntilEmpty(milliseconds);
    } catch (java.util.concurrent.TimeoutException late) {
      LOG.info("Spark is still busy telling of queries");
    }
  }

  /** Names of Spark's settings that every question carries the values of. */
  public void setSettings(List<String> names) {
    settings = new ArrayList<>(names);
  }

  /** Their values in a session. */
  public String values(SparkSession session, List<String> names) {
    Json json = new Json();
    Description.settings(json, session.sessionState().conf(), names);
    return json.toString();
  }

  long asking(Question question) {
    long number = numbers.incrementAndGet();
    questions.put(number, question);
    return number;
  }

  /** What Python says to a question. Throws where Python failed. */
  String answer(long number, String question) {
    String answer = planner.apply(number + " " + question);
    if (answer.startsWith("!")) {
      throw new IllegalStateException("a fault in Grebe: " + answer.substring(1));
    }
    return answer;
  }

  /** What Python says to something that is asked while a query runs. */
  String ask(String question) {
    return answer(numbers.incrementAndGet(), question);
  }

  /** What Python says to a statement of a session's: how it reads it (`parse`), or what came of it (`run`). */
  String aboutStatement(String what, String text, SparkSession session) {
    long number = numbers.incrementAndGet();
    sessions.put(number, session);
    try {
      String question = new Json().open().key("statement").text(text).key("what").text(what).close().toString();
      return answer(number, question);
    } finally {
      sessions.remove(number);
    }
  }

  /** The session whose statement a question is about. */
  public SparkSession sessionOf(long question) {
    return open(sessions, question);
  }

  private static <T> T open(Map<Long, T> asked, long number) {
    T found = asked.get(number);
    if (found == null) {
      throw new IllegalArgumentException("no question of this number is open: " + number);
    }
    return found;
  }

  void asked(long number) {
    questions.remove(number);
  }

  /** While a question is open: which files of one of its relations are registered. The next question will tell by itself. */
  public String match(long question, int relation, String snapshot) {
    Scanned asked = open(questions, question).relations.get(relation);
    for (Path root : asked.roots()) {
      known.tableAt(root, snapshot);
    }
    return Description.match(new Json(), asked, snapshot, snapshots.get(snapshot)).toString();
  }

  /** While a question is open: what its plan does, block by block, for views. */
  public String blocks(long question) {
    Question asked = open(questions, question);
    Json json = new Json().list();
    Block.in(asked.plan).forEach(block -> block.describe(json, asked.relations));
    return json.endList().toString();
  }

  /** While a question is open: a name for the files of one of its relations as they are; empty if there is none. */
  public String digest(long question, int relation) {
    Scanned asked = open(questions, question).relations.get(relation);
    return asked.getClass() == PlainScan.class ? Relations.digest(((PlainScan) asked).relation) : "";
  }

  /** The same of a frame's relation, listed now. */
  public String digest(Dataset frame) {
    return Relations.digest(frame);
  }

  /** The tables of a query that is to be stored, that one first. */
  public List<Object> tablesOf(Dataset frame, String table) throws Exception {
    return Stored.tables(frame, table);
  }

  /** What a query that is to be stored means, seen from this table. */
  public String stored(Dataset frame, String table) {
    return Stored.describe(frame, table);
  }

  /** The original plan is carried out; that is said once for each kind of failure. */
  void failed(Throwable problem) {
    if (counters.failure(problem)) {
      LOG.warn("Grebe left a plan as it was: {}", problem.toString());
    }
  }

  /** A task did not find a file of an index, or could not read it. */
  void lost(Path path) {
    contents.forgetAll();
    planner.apply("lost " + Snapshot.canonical(path));
  }

  /** The frame of a query, or the name of the command that the text is; see `Queries`. */
  public Object query(SparkSession session, String text) {
    return Queries.frame(session, text);
  }

  /** The name of the command that a frame is the result of; empty for a query. */
  public String command(Dataset frame) {
    return Queries.command(frame);
  }

  public String plans(Dataset frame) {
    return Explaining.plans(frame);
  }

  public String actual(Dataset frame) {
    return Explaining.actual(frame, watch);
  }

  /** The registered files of a table, by a key that Python chooses; made when first asked for. */
  public Snapshot snapshot(String key) {
    return snapshots.computeIfAbsent(key, unused -> new Snapshot());
  }

  public void forget(String key) {
    snapshots.remove(key);
  }

  /** Where a text of Python's is kept for the rule: an index's files, once for each version of it. */
  public boolean hasContent(String key) {
    return contents.has(key);
  }

  public void addContent(String key, String index, String files) {
    contents.add(key, index, files);
  }

  /** Whether what is read of indexes is compared with its checksums. */
  public void setVerified(boolean on) {
    verified = on;
  }

  /** Set for how long data files need not be compared again with what was planned. */
  public void setComparisonMilliseconds(long milliseconds) {
    comparisonNanos = milliseconds * 1_000_000;
    ListingTimes.holdsNanos = 30 * comparisonNanos;
  }

  /** Rows of an index, of just these files (see `FileChecksum`), for whoever writes them anew. */
  public Dataset content(SparkSession session, String index, String schema, String files) throws java.io.IOException {
    return Relations.content(session, schema, Contents.parsed(index, files));
  }

  /** Below the roots of a relation there is no index, for so many milliseconds. */
  public void nothingAt(long question, int relation, long milliseconds) {
    for (Path root : open(questions, question).relations.get(relation).roots()) {
      known.nothingAt(root, milliseconds);
    }
  }

  public void lookAgain() {
    known.clear();
  }

  public String counters() {
    return counters.toString();
  }

  /** The relation that a frame reads, as JSON; see `Relations`. */
  public String relation(Dataset frame) {
    return Relations.describe(frame);
  }

  /** Its files, listed now. */
  public String files(Dataset frame) {
    return Relations.files(frame);
  }

  /** The frame's relation anew, listed now, with each registered file's id as one more column. */
  public Dataset numbered(Dataset frame, Snapshot registered, String column) {
    return Relations.numbered(frame, registered, column);
  }

  /** Files of a lake table, read as plain Parquet; see `Listed`. */
  public Dataset listed(SparkSession session, String schema, String partitions, String values, byte[] ids, byte[] sizes,
      byte[] times, byte[] offsets, byte[] uris, byte[] rows) {
    return Relations.listed(session, schema, partitions, values, new byte[][] {ids, sizes, times, offsets, uris, rows});
  }

  /** Each partition becomes files of its own; see `IndexFormat`. */
  public void write(Dataset frame, String folder, Map<String, String> options) {
    Thread thread = Thread.currentThread();
    ClassLoader before = thread.getContextClassLoader();
    thread.setContextClassLoader(Bridge.class.getClassLoader());
    try {
      frame.write().format(IndexFormat.class.getName()).options(options).mode("append").save(folder);
    } finally {
      thread.setContextClassLoader(before);
    }
  }
}
