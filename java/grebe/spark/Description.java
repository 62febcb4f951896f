package grebe.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys$;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.internal.SQLConf;

import scala.Option;
import scala.Product;

/** A plan as one JSON text: its shape, the relations that it reads, and what it needs of them. `read_plan` is the other end. */
@SuppressWarnings({"rawtypes", "unchecked"})
final class Description {
  private static final Set<String> PASSES_COLUMNS = new HashSet<>(Arrays.asList(
      "Project", "Filter", "Join", "Aggregate", "Window", "Sort", "GlobalLimit", "LocalLimit", "Offset", "Sample", "Generate",
      "Expand", "Repartition", "RepartitionByExpression", "RebalancePartitions", "SubqueryAlias", "Distinct", "Deduplicate"));

  final List<Scanned> relations = new ArrayList<>();
  /** What knows which files are registered; null if nobody asks for it. */
  private final Known known;
  private final Bridge bridge;
  private final List<LogicalPlan> subqueries = new ArrayList<>();
  private final Uses uses = new Uses();
  private final Json json = new Json();

  Description(Bridge bridge) {
    this(bridge, bridge.known);
  }

  /** `known` as null: without a look at the files of relations. */
  Description(Bridge bridge, Known known) {
    this.bridge = bridge;
    this.known = known;
  }

  /** The whole question. `only` and `without` are what the user says for this thread; `token` names an explanation under way. */
  String of(LogicalPlan plan, List<String> settings, String only, String without, String token, List<String> hints) {
    json.open().key("plans").list();
    needed(plan.output());
    node(plan);
    for (int i = 0; i < subqueries.size(); i++) {
      needed(subqueries.get(i).output());
      node(subqueries.get(i));
    }
    json.endList().key("relations").list();
    for (Scanned relation : relations) {
      relation(relation);
    }
    json.endList().key("flags").list();
    uses.flags.forEach(json::text);
    json.endList().key("settings");
    settings(json, SQLConf.get(), settings);
    json.key("only").text(only).key("without").text(without).key("token").text(token);
    json.key("hints").list();
    hints.forEach(json::text);
    return json.endList().close().toString();
  }

  /** What was set; null for the rest, as the defaults differ between versions. The time zone always has a value. */
  static void settings(Json json, SQLConf conf, List<String> names) {
    json.open();
    for (String name : names) {
      boolean zone = name.equals("spark.sql.session.timeZone");
      json.key(name).text(zone ? conf.sessionLocalTimeZone() : setting(conf, name));
    }
    json.close();
  }

  /** Return a setting by its name or by the one that it had before; of a library beneath Spark, also one of its own configuration. */
  private static String setting(SQLConf conf, String name) {
    String before = name.replaceFirst("^spark\\.sql\\.(?!legacy\\.)", "spark.sql.legacy.");
    for (String each : new String[] {name, before}) {
      if (conf.contains(each)) {
        return conf.getConfString(each);
      }
    }
    return name.startsWith("spark.") ? null : SparkContext.getOrCreate().hadoopConfiguration().get(name);
  }

  private void needed(scala.collection.Seq output) {
    for (Object each : Scala.list(output)) {
      uses.whole((Attribute) each);
    }
  }

  private void node(LogicalPlan plan) {
    String name = plan.nodeName();
    json.open();
    int known = position(plan);
    Scanned scanned = known < 0 ? Scanned.of(plan) : relations.get(known);
    if (scanned != null) {
      int number = known < 0 ? relations.size() : known;
      if (known < 0) {
        relations.add(scanned);
      }
      json.key("n").text("Relation").key("r").number(number).close();
      return;
    }
    if (plan.children().isEmpty()) {
      json.key("n").text("Leaf").key("name").text(name).key("bytes").number(bytes(plan));
    } else {
      json.key("n").text(name);
      details(plan);
    }
    for (Object expression : Scala.list(plan.expressions())) {
      uses.of((Expression) expression);
    }
    if (plan instanceof Sample) {
      // Which rows it takes hangs on where they lie.
      uses.flags.add("nondeterministic");
    }
    for (Object subquery : Scala.list(plan.subqueries())) {
      subqueries.add((LogicalPlan) subquery);
    }
    if (!plan.children().isEmpty()) {
      json.key("c").list();
      for (Object child : Scala.list(plan.children())) {
        if (!PASSES_COLUMNS.contains(name)) {
          needed(((LogicalPlan) child).output());
        }
        node((LogicalPlan) child);
      }
      json.endList();
    }
    json.close();
  }

  /** By identity: a relation that the plan reads twice as the same object gets one answer. */
  private int position(LogicalPlan plan) {
    for (int i = 0; i < relations.size(); i++) {
      if (relations.get(i).leaf == plan) {
        return i;
      }
    }
    return -1;
  }

  private void details(LogicalPlan plan) {
    if (plan instanceof Filter) {
      json.key("e").list();
      Expressions.conjuncts(json, ((Filter) plan).condition());
      json.endList();
    } else if (plan instanceof Project) {
      json.key("a");
      aliases(Scala.list(((Project) plan).projectList()));
    } else if (plan instanceof Join) {
      join((Join) plan);
    } else if (plan instanceof Aggregate) {
      Aggregate aggregate = (Aggregate) plan;
      keys("k", Scala.list(aggregate.groupingExpressions()));
      json.key("a");
      aliases(Scala.list(aggregate.aggregateExpressions()));
      json.key("f").list();
      Scala.<NamedExpression>list(aggregate.aggregateExpressions()).forEach(each -> Expressions.function(json, (Expression) each));
      json.endList().key("m").list();
      Scala.<NamedExpression>list(aggregate.aggregateExpressions()).forEach(each -> Expressions.answerable(json, (Expression) each));
      json.endList();
    } else if (plan instanceof Window) {
      keys("k", Scala.list(((Window) plan).partitionSpec()));
      keys("o", orders(((Window) plan).orderSpec()));
    } else if (plan instanceof Sort) {
      keys("k", orders(((Sort) plan).order()));
      json.key("global").truth(((Sort) plan).global());
    } else if (plan instanceof GlobalLimit || plan instanceof LocalLimit) {
      Option rows = plan.maxRows();
      json.key("rows").number(rows.isDefined() ? ((Number) rows.get()).longValue() : -1);
    }
  }

  private void join(Join join) {
    json.key("type").text(join.joinType().toString());
    Option found = ExtractEquiJoinKeys$.MODULE$.unapply(join);
    if (found.isDefined()) {
      keys("l", Scala.list((scala.collection.Seq) ((Product) found.get()).productElement(1)));
      keys("r", Scala.list((scala.collection.Seq) ((Product) found.get()).productElement(2)));
    }
    json.key("hint").text(hint(join.hint().leftHint(), "left") + hint(join.hint().rightHint(), "right"));
  }

  private static String hint(Option hint, String side) {
    if (!hint.isDefined() || !((HintInfo) hint.get()).strategy().isDefined()) {
      return "";
    }
    return side + ":" + ((HintInfo) hint.get()).strategy().get() + " ";
  }

  private void keys(String name, List<Expression> expressions) {
    json.key(name).list();
    expressions.forEach(each -> Expressions.reference(json, each));
    json.endList();
  }

  private static List<Expression> orders(scala.collection.Seq orders) {
    List<Expression> plain = new ArrayList<>();
    for (Object each : Scala.list(orders)) {
      plain.add(((SortOrder) each).child());
    }
    return plain;
  }

  /** [new, old] for what is only another name. */
  private void aliases(List<NamedExpression> list) {
    json.list();
    for (NamedExpression each : list) {
      if (each instanceof Alias && Expressions.isReference(((Alias) each).child())) {
        json.list().number(each.exprId().id());
        Expressions.reference(json, ((Alias) each).child());
        json.endList();
      }
    }
    json.endList();
  }

  private static long bytes(LogicalPlan plan) {
    scala.math.BigInt size = plan.stats().sizeInBytes();
    return size.isValidLong() ? size.toLong() : Long.MAX_VALUE;
  }

  private void relation(Scanned scanned) {
    json.open();
    scanned.describe(json);
    json.key("output").list();
    for (Object each : Scala.list(scanned.leaf.output())) {
      Attribute attribute = (Attribute) each;
      json.list().number(attribute.exprId().id()).text(attribute.name()).text(attribute.dataType().json()).endList();
    }
    json.endList().key("uses").list();
    for (Object each : Scala.list(scanned.leaf.output())) {
      uses.write(json, (Attribute) each);
    }
    json.endList();
    matched(scanned);
    json.close();
  }

  /** What Python would ask next, if it is known already which table this is. */
  private void matched(Scanned scanned) {
    List<Path> roots = scanned.roots();
    String snapshot = roots.isEmpty() || known == null ? null : known.tableAt(roots.get(0));
    if (scanned.isListedCheaply() && snapshot != null && bridge.snapshots.containsKey(snapshot)) {
      match(json.key("matched"), scanned, snapshot, bridge.snapshots.get(snapshot));
    }
  }

  static Json match(Json json, Scanned scanned, String snapshot, Snapshot registered) {
    Match match = new Match(registered);
    scanned.match(match);
    return match.write(json, snapshot);
  }
}
