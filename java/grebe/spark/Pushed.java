package grebe.spark;

import java.util.ArrayList;
import java.util.List;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.SparkPlan;

/**
 * Of more than a few values of an IN, Spark tells Parquet only the least and the greatest, between which lies the whole of a sorted
 * file. The same values, a few at a time, leave out all pages that hold none of them. This is about what is read only: Spark's own
 * filter above the scan stays as it is.
 */
@SuppressWarnings({"rawtypes", "unchecked"})
final class Pushed {
  /** With more values hardly a page is left out. */
  private static final int MOST = 512;

  private Pushed() {}

  static SparkPlan closer(SparkPlan plan) {
    return plan instanceof FileSourceScanExec ? closer((FileSourceScanExec) plan) : Scala.withChildren(plan, Pushed::closer);
  }

  static FileSourceScanExec closer(FileSourceScanExec scan) {
    int few = scan.session().sessionState().conf().parquetFilterPushDownInFilterThreshold();
    List<Expression> filters = Scala.list(scan.dataFilters());
    List<Expression> more = new ArrayList<>(filters);
    for (Expression filter : filters) {
      if (few > 0 && filter instanceof InSet && ((InSet) filter).child() instanceof Attribute) {
        add((InSet) filter, few, more);
      }
    }
    return more.size() == filters.size() ? scan : Scala.withFilters(scan, more);
  }

  private static void add(InSet filter, int few, List<Expression> more) {
    List<Object> values = Scala.list(filter.hset());
    if (values.size() <= few || values.size() > MOST || values.contains(null)) {
      return;
    }
    List<Expression> parts = new ArrayList<>();
    for (int start = 0; start < values.size(); start += few) {
      List<Expression> literals = new ArrayList<>();
      for (Object value : values.subList(start, Math.min(start + few, values.size()))) {
        literals.add(new Literal(value, filter.child().dataType()));
      }
      parts.add(new In(filter.child(), Scala.seq((List) literals)));
    }
    more.add(either(parts));
  }

  /** As a balanced tree. */
  private static Expression either(List<Expression> parts) {
    int half = parts.size() / 2;
    return half == 0 ? parts.get(0) : new Or(either(parts.subList(0, half)), either(parts.subList(half, parts.size())));
  }
}
