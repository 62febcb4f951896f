package grebe.spark;

import java.util.Arrays;
import java.util.List;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.execution.datasources.PartitionedFile;

/** A relation's own files without those that, as indexes say, hold no row of the query. */
@SuppressWarnings({"rawtypes", "unchecked"})
final class Narrowed extends Kept {
  /** What of the files that are listed is read. */
  final Restriction restriction;
  /** How Python is asked with the keys of a join, and with how many at most; empty: it is not. */
  final String lookup;
  final int mostKeys;
  /** Files that are left out; null if files of this table never change. */
  final ServedFiles served;
  private final Snapshot registered;
  private List<PartitionDirectory> everything;

  Narrowed(Bridge bridge, PlainScan scanned, Snapshot registered, FileIds listed, JsonNode decision) {
    super(scanned, listed, Snapshot.parse(decision.get("without").asText()), decision.get("others").asBoolean());
    this.registered = registered;
    this.served = ServedFiles.of(bridge, scanned, decision);
    this.restriction = Restriction.of(decision);
    JsonNode keys = decision.get("keys");
    this.lookup = keys.isNull() ? "" : keys.get("lookup").asText();
    this.mostKeys = keys.isNull() ? 0 : keys.get("most").asInt();
  }

  /** Files without rows of the query are left out; what has replaced one since may have some. */
  @Override
  boolean isServed(int id) {
    return false;
  }

  int id(PartitionedFile file) {
    return listed.idOf(file.toPath(), file.fileSize(), file.modificationTime());
  }

  /** Return what tells the registered file from others of its name, size and time; empty if nothing is known. */
  String factOf(PartitionedFile file) {
    String fact = registered.factOf(id(file));
    return fact == null ? "" : fact;
  }

  @Override
  Object identity() {
    return Arrays.asList(super.identity(), restriction.identity(), lookup);
  }

  /** Spark asks for the list several times while it plans a query, and a relation of ours lives no longer than that. */
  @Override
  synchronized List<PartitionDirectory> list(List partitionFilters, List dataFilters) {
    if (!partitionFilters.isEmpty()) {
      return super.list(partitionFilters, dataFilters);
    }
    if (everything == null) {
      everything = super.list(partitionFilters, dataFilters);
    }
    return everything;
  }

  @Override
  public synchronized void refresh() {
    everything = null;
    super.refresh();
  }
}
