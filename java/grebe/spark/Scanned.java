package grebe.spark;

import java.util.BitSet;
import java.util.List;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/** A leaf of a plan that reads files of a table: which files, how they are read, and the same leaf with some of them left out. */
@SuppressWarnings({"rawtypes", "unchecked"})
abstract class Scanned {
  final LogicalPlan leaf;

  Scanned(LogicalPlan leaf) {
    this.leaf = leaf;
  }

  /** Null if the plan is no such leaf, or one that nobody but its own format may touch. */
  static Scanned of(LogicalPlan plan) {
    if (IcebergScan.is(plan)) {
      return new IcebergScan(plan);
    }
    if (!(plan instanceof LogicalRelation) || !(((LogicalRelation) plan).relation() instanceof HadoopFsRelation)) {
      return null;
    }
    LogicalRelation relation = (LogicalRelation) plan;
    String files = ((HadoopFsRelation) relation.relation()).location().getClass().getName();
    if (files.startsWith(DeltaScan.PACKAGE)) {
      return files.equals(DeltaScan.FILES) ? new DeltaScan(relation) : null;
    }
    return files.equals(HudiScan.FILES) ? new HudiScan(relation) : new PlainScan(relation);
  }

  /** Whether a leaf was made by us, so that the plan it stands in was decided. */
  static boolean isDecided(LogicalPlan plan) {
    if (plan instanceof LogicalRelation && ((LogicalRelation) plan).relation() instanceof HadoopFsRelation) {
      return ((HadoopFsRelation) ((LogicalRelation) plan).relation()).options().contains(Rewriting.MARK);
    }
    return IcebergScan.isPart(plan);
  }

  abstract List<Path> roots();

  /** What a user who asks for a frame's files means. */
  abstract String[] inputFiles();

  abstract SparkSession session();

  /** As Spark reckons it. */
  abstract long bytes();

  /** Roots, format, options, schemas, size and name, as keys of an object that is open. */
  abstract void describe(Json json);

  /** Whether its files can be compared before Python has said what it is. */
  abstract boolean isListedCheaply();

  abstract void match(Match match);

  /** The same leaf, of which some files are not read. */
  abstract LogicalPlan narrowed(Bridge bridge, JsonNode decision);

  /**
   * The same leaf with new attributes, without the files that are read from an index; `pair` names that. `others`: with those that are
   * not registered. `shown`: what it is called.
   */
  abstract LogicalPlan rest(FileIds registered, BitSet covered, boolean others, String pair, String shown);

  /** Return the files that a decision was made for. */
  static FileIds listed(Bridge bridge, JsonNode decision) {
    return bridge.snapshots.get(decision.get("snapshot").asText()).among(Snapshot.parse(decision.get("listed").asText()));
  }

  /** A relation over files of an index in the place of this leaf. */
  abstract LogicalRelation replaced(HadoopFsRelation relation, scala.collection.Seq output);

  /** Under which name a leaf was made to be read beside a stand-in; empty if it was not. */
  static String pair(LogicalPlan leaf) {
    if (leaf instanceof LogicalRelation && ((LogicalRelation) leaf).relation() instanceof HadoopFsRelation) {
      scala.Option pair = ((HadoopFsRelation) ((LogicalRelation) leaf).relation()).options().get(Rewriting.PAIR);
      return pair.isDefined() ? (String) pair.get() : "";
    }
    return IcebergScan.pairOf(leaf);
  }

  static scala.collection.immutable.Map marked(scala.collection.immutable.Map own, String mark, String pair, String shown) {
    scala.collection.immutable.Map options =
        (scala.collection.immutable.Map) ((scala.collection.immutable.Map) own.updated(Rewriting.MARK, mark)).updated(Rewriting.SHOWN, shown);
    return pair.isEmpty() ? options : (scala.collection.immutable.Map) options.updated(Rewriting.PAIR, pair);
  }

  static void end(Json json, String format, String formatClass, String filesClass) {
    json.key("format").text(format).key("format_class").text(formatClass).key("files_class").text(filesClass);
  }
}
