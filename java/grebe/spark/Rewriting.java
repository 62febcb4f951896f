package grebe.spark;

import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.optimizer.ColumnPruning$;
import org.apache.spark.sql.catalyst.optimizer.PushDownPredicates$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Subquery;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;

/**
 * The rule of the optimizer: describes a plan, asks Python, carries the answer out, and looks whether the result still is the same
 * query. Whatever goes wrong, the plan stays as it was.
 */
@SuppressWarnings({"rawtypes", "unchecked"})
public final class Rewriting extends Rule {
  static final String MARK = "grebe";
  static final String PAIR = "grebe.pair";
  /** What people see a scan called: which index, and how much of it. */
  static final String SHOWN = "grebe.shown";
  /** Commands that read a table in order to change just those rows of it: what they read must be what they change. */
  private static final Set<String> WRITES_ROWS = new HashSet<>(Arrays.asList("ReplaceData", "WriteDelta"));

  private final Bridge bridge;
  private final SparkSession session;

  Rewriting(Bridge bridge, SparkSession session) {
    this.bridge = bridge;
    this.session = session;
  }

  @Override
  public String ruleName() {
    return "grebe.spark.Rewriting";
  }

  @Override
  public TreeNode apply(TreeNode node) {
    long start = System.nanoTime();
    try {
      return decided((LogicalPlan) node);
    } catch (Throwable problem) {
      bridge.failed(problem);
      return node;
    } finally {
      bridge.counters.nanoseconds.addAndGet(System.nanoTime() - start);
    }
  }

  private LogicalPlan decided(LogicalPlan whole) throws Exception {
    List<String> hints = Hinted.in(whole);
    // A subquery is decided with the plan it belongs to, and must stay on top here: the optimizer takes it apart again.
    if (hints.isEmpty() || whole instanceof Subquery) {
      return decided(whole, hints);
    }
    // On top it is in nobody's way, and there it stays: the optimizer asks again until nothing changes.
    boolean onTop = whole instanceof Hinted && hints.size() == 1;
    LogicalPlan plan = onTop ? ((Hinted) whole).query : tidy(Hinted.removed(whole));
    LogicalPlan made = decided(plan, hints);
    return onTop && made == plan ? whole : new Hinted(String.join(";", hints), made);
  }

  private LogicalPlan decided(LogicalPlan plan, List<String> hints) throws Exception {
    bridge.counters.plans.incrementAndGet();
    if (!bridge.isEnabled(session) || Explaining.OFF.get() || plan instanceof Subquery || plan.isStreaming()
        || WRITES_ROWS.contains(plan.nodeName()) || look(plan) != Found.CANDIDATE) {
      return plan;
    }
    try {
      return rewritten(plan, hints);
    } catch (Contents.Missing gone) {
      // Without that index there may be another one.
      bridge.failed(gone);
      bridge.lost(gone.path);
      return rewritten(plan, hints);
    }
  }

  private LogicalPlan rewritten(LogicalPlan plan, List<String> hints) throws Exception {
    bridge.counters.asked.incrementAndGet();
    Description description = new Description(bridge);
    SparkContext context = SparkContext.getOrCreate();
    String question = description.of(plan, bridge.settings, context.getLocalProperty("grebe.only"),
        context.getLocalProperty("grebe.without"), context.getLocalProperty("grebe.token"), hints);
    long number = bridge.asking(new Question(plan, description.relations));
    try {
      String answer = bridge.answer(number, question);
      if (answer.isEmpty()) {
        return plan;
      }
      Rewrite rewrite = new Rewrite(bridge, description.relations, plan, answer);
      LogicalPlan made = rewrite.of(plan);
      Verify.sameQuery(plan, made);
      bridge.counters.rewritten.incrementAndGet();
      bridge.ran.changed(plan, rewrite.used);
      return made;
    } finally {
      bridge.asked(number);
    }
  }

  /** What was put on top of a query with a hint can move into it once the hint is away. */
  static LogicalPlan tidy(LogicalPlan plan) {
    LogicalPlan pushed = (LogicalPlan) PushDownPredicates$.MODULE$.apply(plan);
    return (LogicalPlan) ColumnPruning$.MODULE$.apply(pushed);
  }

  private enum Found { NOTHING, CANDIDATE, DECIDED }

  /** Whether there is something to decide; a plan with a mark of ours anywhere was decided as a whole. */
  private Found look(LogicalPlan plan) {
    Found found = Found.NOTHING;
    if (plan.children().isEmpty()) {
      return leaf(plan);
    }
    for (LogicalPlan child : Scala.<LogicalPlan>list(plan.children())) {
      found = more(found, child);
    }
    for (LogicalPlan subquery : Scala.<LogicalPlan>list(plan.subqueries())) {
      found = more(found, subquery);
    }
    return found;
  }

  private Found more(Found found, LogicalPlan plan) {
    if (found == Found.DECIDED) {
      return found;
    }
    Found here = look(plan);
    return here == Found.NOTHING ? found : here;
  }

  private Found leaf(LogicalPlan plan) {
    if (Scanned.isDecided(plan)) {
      return Found.DECIDED;
    }
    Scanned scanned = Scanned.of(plan);
    if (scanned == null) {
      return Found.NOTHING;
    }
    for (Path root : scanned.roots()) {
      if (!bridge.known.hasNothing(root)) {
        return Found.CANDIDATE;
      }
    }
    return Found.NOTHING;
  }
}
