package grebe.spark;

import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.function.UnaryOperator;

import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.physical.ClusteredDistribution;
import org.apache.spark.sql.catalyst.plans.physical.Distribution;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

import scala.Option;
import scala.Product;

/** Scala's collections and case classes from Java, in a way that compiles against Scala 2.12 and 2.13. */
@SuppressWarnings({"rawtypes", "unchecked"})
final class Scala {
  private Scala() {}

  static scala.collection.immutable.Seq seq(List items) {
    scala.collection.immutable.List made = scala.collection.immutable.List$.MODULE$.empty();
    for (int i = items.size() - 1; i >= 0; i--) {
      made = new scala.collection.immutable.$colon$colon(items.get(i), made);
    }
    return made;
  }

  static scala.collection.immutable.Seq seq(Object... items) {
    return seq(Arrays.asList(items));
  }

  static scala.collection.immutable.Seq nothing() {
    return seq(Collections.emptyList());
  }

  static <T> List<T> list(scala.collection.Iterable items) {
    List<T> made = new ArrayList<>();
    scala.collection.Iterator each = items.iterator();
    while (each.hasNext()) {
      made.add((T) each.next());
    }
    return made;
  }

  /** The node with each child exchanged; the node itself if none is another one. */
  static <T extends TreeNode> T withChildren(T node, UnaryOperator<T> change) {
    List<T> children = new ArrayList<>();
    boolean changed = false;
    for (T child : Scala.<T>list(node.children())) {
      T made = change.apply(child);
      changed |= made != child;
      children.add(made);
    }
    return changed ? (T) node.withNewChildren(seq(children)) : node;
  }

  static Alias alias(Expression of, String name, ExprId id) {
    return new Alias(of, name, id, nothing(), Option.empty(), nothing());
  }

  /** Another aggregation of the same kind: later versions have more fields, which stay. */
  static Aggregate aggregate(Aggregate original, List groups, List outputs, LogicalPlan child) {
    Object[] fields = new Object[original.productArity()];
    for (int i = 0; i < fields.length; i++) {
      fields[i] = original.productElement(i);
    }
    fields[0] = seq(groups);
    fields[1] = seq(outputs);
    fields[2] = child;
    try {
      return (Aggregate) Aggregate.class.getConstructors()[0].newInstance(fields);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("Aggregate", e);
    }
  }

  /** The same relation of the plan over other files: Spark 3.5 has one field less than 4. */
  static LogicalRelation withRelation(LogicalRelation original, HadoopFsRelation relation, scala.collection.Seq output) {
    for (Method method : LogicalRelation.class.getMethods()) {
      if (method.getName().equals("copy")) {
        Object[] fields = {relation, output, Option.empty(), Boolean.FALSE, Option.empty()};
        try {
          return (LogicalRelation) method.invoke(original, Arrays.copyOf(fields, method.getParameterCount()));
        } catch (ReflectiveOperationException e) {
          throw new IllegalStateException("LogicalRelation.copy", e);
        }
      }
    }
    throw new IllegalStateException("LogicalRelation has no copy");
  }

  /** Rows with equal keys together, in so many partitions. Later versions have more fields, which stay at their defaults. */
  static Distribution clustered(List keys, int partitions) {
    try {
      for (Constructor<?> constructor : ClusteredDistribution.class.getConstructors()) {
        Object[] fields = new Object[constructor.getParameterCount()];
        Object[] known = {seq(keys), Boolean.TRUE, Option.apply(partitions)};
        System.arraycopy(known, 0, fields, 0, known.length);
        for (int i = known.length; i < fields.length; i++) {
          fields[i] = ClusteredDistribution.class.getMethod("$lessinit$greater$default$" + (i + 1)).invoke(null);
        }
        return (Distribution) constructor.newInstance(fields);
      }
      throw new IllegalStateException("ClusteredDistribution has no constructor");
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("ClusteredDistribution", e);
    }
  }

  /** The same scan with its buckets read as fewer partitions. */
  static FileSourceScanExec coalesced(FileSourceScanExec scan, int buckets) {
    return changed(scan, 5, Option.apply(buckets));
  }

  /** The same scan with other filters for its format. */
  static FileSourceScanExec withFilters(FileSourceScanExec scan, List filters) {
    return changed(scan, 6, seq(filters));
  }

  /** The same scan under the name of another table, which people see and nobody else: Spark compares scans without it. */
  static FileSourceScanExec named(FileSourceScanExec scan, String name) {
    return changed(scan, 7, Option.apply(new TableIdentifier(name)));
  }

  /** The same scan with another field, by its place in Spark 3.5: Spark 4 has one field more before it, the stream. */
  private static FileSourceScanExec changed(FileSourceScanExec scan, int place, Object value) {
    Object[] fields = new Object[scan.productArity()];
    for (int i = 0; i < fields.length; i++) {
      fields[i] = ((Product) scan).productElement(i);
    }
    fields[fields.length == 9 ? place : place + 1] = value;
    Constructor<?> constructor = FileSourceScanExec.class.getConstructors()[0];
    try {
      return (FileSourceScanExec) constructor.newInstance(fields);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("FileSourceScanExec", e);
    }
  }
}
