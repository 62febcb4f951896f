package grebe.spark;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;

import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractFunction2;
import scala.runtime.BoxedUnit;

/**
 * Reaches sessions that are made later: `newSession()`, and those of a Spark Connect server. `attach` puts it in by itself; a server
 * may also name it in `spark.sql.extensions` (after Delta's). It does nothing until Python has attached.
 */
@SuppressWarnings({"rawtypes", "unchecked"})
public final class Extension extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    extensions.injectPreCBORule((scala.Function1) new Builder());
    extensions.injectParser((scala.Function2) new OverParser());
    return BoxedUnit.UNIT;
  }

  private static final class Builder extends AbstractFunction1<SparkSession, Rule> {
    @Override
    public Rule apply(SparkSession session) {
      return new Arrival(session);
    }
  }

  private static final class OverParser extends AbstractFunction2<SparkSession, ParserInterface, ParserInterface> {
    @Override
    public ParserInterface apply(SparkSession session, ParserInterface parser) {
      return SqlParser.over(session, parser);
    }
  }

  /** Attaches its session at the first query, and rewrites that one itself: the optimizer has its list of rules already. */
  private static final class Arrival extends Rule {
    private final SparkSession session;

    Arrival(SparkSession session) {
      this.session = session;
    }

    @Override
    public String ruleName() {
      return "grebe.spark.Arrival";
    }

    @Override
    public TreeNode apply(TreeNode plan) {
      Bridge bridge = Bridge.active;
      if (bridge == null || !bridge.everywhere || bridge.isAttached(session)) {
        return plan;
      }
      bridge.attach(session);
      return new Rewriting(bridge, session).apply((LogicalPlan) plan);
    }
  }
}
