package grebe.spark;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;

/** A relation of plain files: its file index lists them, and one of ours around it leaves some out. */
@SuppressWarnings({"rawtypes", "unchecked"})
class PlainScan extends RelationScan {
  private PartitionPaths paths;

  PlainScan(LogicalRelation plan) {
    super(plan);
  }

  @Override
  List<Path> roots() {
    return Scala.list(relation.location().rootPaths());
  }

  @Override
  void describe(Json json) {
    json.key("roots").list();
    roots().forEach(root -> json.text(Snapshot.canonical(root)));
    json.endList();
    end(json, relation.fileFormat().toString(), relation.fileFormat().getClass().getName(), relation.location().getClass().getName());
    json.key("options").open();
    for (Object each : Scala.list(relation.options())) {
      scala.Tuple2 option = (scala.Tuple2) each;
      json.key((String) option._1()).text((String) option._2());
    }
    json.close();
    json.key("data_schema").text(relation.dataSchema().json());
    json.key("partition_schema").text(relation.partitionSchema().json());
    json.key("bytes").number(bytes());
    name(json);
  }

  /** Other packages may have their own idea of what listing is. */
  @Override
  boolean isListedCheaply() {
    return relation.location().getClass().getPackage().equals(HadoopFsRelation.class.getPackage());
  }

  @Override
  void match(Match match) {
    PartitionPaths now = PartitionPaths.of(relation);
    List<FileStatus> known = new ArrayList<>();
    List<Integer> ids = new ArrayList<>();
    for (Object each : Scala.list(relation.location().listFiles(Scala.nothing(), Scala.nothing()))) {
      PartitionDirectory directory = (PartitionDirectory) each;
      for (FileStatusWithMetadata file : Files.files(directory)) {
        match.elsewhere |= !now.agreeOnTimestamps(directory, file.getPath());
        if (isDisplaced(directory, file)) {
          match.displaced(match.registered.idOf(file.getPath(), file.getLen(), file.getModificationTime()));
        }
        int id = id(match.registered, directory, file);
        if (id < 0 || match.registered.isChanged(id)) {
          match.file(-1, file.getLen(), false);
          match.changed += match.registered.isNamed(file.getPath()) ? 1 : 0;
        } else {
          known.add(file.fileStatus());
          ids.add(id);
        }
      }
    }
    // Size and time agree. A file that is taken for another one here is not listed: `Snapshot.among` gives it no id later in this query.
    boolean[] same = ServedFiles.areUnchanged(this, known, ids, match.registered);
    for (int i = 0; i < same.length; i++) {
      match.file(same[i] ? ids.get(i) : -1, known.get(i).getLen(), false);
      match.changed += same[i] ? 0 : 1;
    }
  }

  /**
   * Return the id of a file as it is listed; -1 if it is not registered, or is listed with other partition values than its path spells:
   * indexes know the latter, so the file is read as it is.
   */
  int id(FileIds registered, PartitionDirectory directory, FileStatusWithMetadata file) {
    return isDisplaced(directory, file) ? -1 : registered.idOf(file.getPath(), file.getLen(), file.getModificationTime());
  }

  boolean isDisplaced(PartitionDirectory directory, FileStatusWithMetadata file) {
    synchronized (this) {
      paths = paths == null ? PartitionPaths.of(relation) : paths;
    }
    return !paths.agree(directory, file.getPath());
  }

  /** What is known of the table's size does not hold for it. */
  @Override
  LogicalPlan narrowed(Bridge bridge, JsonNode decision) {
    Narrowed files = new Narrowed(bridge, this, bridge.snapshots.get(decision.get("snapshot").asText()), listed(bridge, decision), decision);
    return Scala.withRelation(plan, over(files, "narrowed", "", decision.get("shown").asText()), plan.output());
  }

  @Override
  LogicalPlan rest(FileIds registered, BitSet covered, boolean others, String pair, String shown) {
    LogicalRelation fresh = plan.newInstance();
    return Scala.withRelation(fresh, over(new Kept(this, registered, covered, others), "stand-in", pair, shown), fresh.output());
  }

  private HadoopFsRelation over(Kept files, String mark, String pair, String shown) {
    return new HadoopFsRelation(files, relation.partitionSchema(), relation.dataSchema(),
        mark.equals("narrowed") ? relation.bucketSpec() : scala.Option.empty(), relation.fileFormat(),
        marked(relation.options(), mark, pair, shown), relation.sparkSession());
  }
}
