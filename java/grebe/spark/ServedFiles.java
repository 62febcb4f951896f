package grebe.spark;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;

/**
 * The plain data files that a query does not read because of an index: their rows come from it, or it says that they hold none. A frame can
 * run long after it was planned, and more than once. Then these files are compared again, and a changed one ends the query: without the
 * index the rows that it has now would have been read. Right after planning they are not compared a second time.
 */
@SuppressWarnings({"rawtypes", "unchecked"})
final class ServedFiles {
  private static final int FEW = 256;

  private final Bridge bridge;
  private final PlainScan table;
  private final boolean isLocal;
  private final Snapshot registered;
  private final FileIds listed;
  private final BitSet listedIds;
  private final BitSet ids = new BitSet();
  /** Files of other tables, which a view holds rows of. */
  private final List<PlainScan> others = new ArrayList<>();
  private long comparedAt;

  private ServedFiles(Bridge bridge, PlainScan table, JsonNode decision) {
    this.bridge = bridge;
    this.table = table;
    this.isLocal = isLocal(table);
    this.comparedAt = isLocal ? System.nanoTime() : ListingTimes.comparedAt(table.relation.location());
    this.registered = bridge.snapshots.get(decision.get("snapshot").asText());
    this.listed = Scanned.listed(bridge, decision);
    this.listedIds = Snapshot.parse(decision.get("listed").asText());
    add(Snapshot.parse(decision.get("served").asText()));
  }

  /** Return the files that a decision names; null for files of a lake table, which never change. */
  static ServedFiles of(Bridge bridge, Scanned table, JsonNode decision) {
    return table.getClass() == PlainScan.class ? new ServedFiles(bridge, (PlainScan) table, decision) : null;
  }

  /** Add those of these files that the query has listed. */
  synchronized void add(BitSet more) {
    BitSet known = (BitSet) more.clone();
    known.and(listedIds);
    ids.or(known);
  }

  /** Add all files of another table. */
  void add(Scanned other) {
    if (other.getClass() == PlainScan.class) {
      others.add((PlainScan) other);
    }
  }

  /** Compare what a scan leaves to an index. */
  static void verify(SparkPlan scan) {
    FileIndex files = scan instanceof FileSourceScanExec ? ((FileSourceScanExec) scan).relation().location() : null;
    ServedFiles served = files instanceof Narrowed ? ((Narrowed) files).served : files instanceof Content ? ((Content) files).served : null;
    if (served != null) {
      served.verify();
    }
  }

  /** Throw an error that names a file which is no longer the one that the decision was made for. */
  synchronized void verify() {
    long begin = System.nanoTime();
    if (ids.isEmpty() || begin - comparedAt < (isLocal ? bridge.comparisonNanos : ListingTimes.holdsNanos)) {
      return;
    }
    List<FileStatus> expected = new ArrayList<>();
    List<String> facts = new ArrayList<>();
    BitSet missing = (BitSet) ids.clone();
    for (FileStatus file : files(table)) {
      int id = listed.idOf(file.getPath(), file.getLen(), file.getModificationTime());
      if (id >= 0 && ids.get(id)) {
        missing.clear(id);
        expected.add(file);
        facts.add(registered.factOf(id));
      } else {
        // The session has listed its files anew, and this one is another.
        int before = listed.idOf(file.getPath());
        if (before >= 0 && ids.get(before)) {
          throw changed(file.getPath());
        }
      }
    }
    if (!missing.isEmpty()) {
      throw changed(table.roots().get(0));
    }
    compare(expected, facts);
    for (PlainScan other : others) {
      List<FileStatus> all = files(other);
      compare(all, Collections.nCopies(all.size(), null));
    }
    comparedAt = begin;
  }

  /**
   * Tell which files are still those that were registered, as far as that can be seen without a request for each: local ones are looked at,
   * and where stores must be listed for it, an old listing is compared with a new one.
   */
  static boolean[] areUnchanged(PlainScan table, List<FileStatus> listed, List<Integer> ids, Snapshot registered) {
    FileIndex listing = table.relation.location();
    boolean isOld = !isLocal(table) && ListingTimes.isOld(listing);
    long begin = System.nanoTime();
    List<FileStatus> now = isOld ? now(listed, configuration(table)) : listed;
    List<FileStatus> known = new ArrayList<>();
    for (int i = 0; i < listed.size(); i++) {
      known.add(registered.factOf(ids.get(i)) == null ? null : now.get(i));
    }
    String[] facts = FileFacts.of(known);
    boolean[] same = new boolean[facts.length];
    for (int i = 0; i < facts.length; i++) {
      FileStatus file = now.get(i);
      same[i] = file != null && file.getLen() == listed.get(i).getLen() && file.getModificationTime() == listed.get(i).getModificationTime()
          && (facts[i] == null || facts[i].equals(registered.factOf(ids.get(i))));
    }
    if (isOld) {
      ListingTimes.compared(listing, begin);
    }
    return same;
  }

  private static boolean isLocal(PlainScan table) {
    return table.roots().stream().allMatch(ServedFiles::isLocal);
  }

  private static Configuration configuration(PlainScan table) {
    return table.session().sessionState().newHadoopConfWithOptions(table.relation.options());
  }

  private static List<FileStatus> files(PlainScan table) {
    List<FileStatus> files = new ArrayList<>();
    for (Object each : Scala.list(table.relation.location().listFiles(Scala.nothing(), Scala.nothing()))) {
      for (FileStatusWithMetadata file : Files.files((PartitionDirectory) each)) {
        files.add(file.fileStatus());
      }
    }
    return files;
  }

  private void compare(List<FileStatus> expected, List<String> facts) {
    List<FileStatus> now = now(expected, configuration(table));
    for (int i = 0; i < expected.size(); i++) {
      FileStatus before = expected.get(i);
      FileStatus after = now.get(i);
      String fact = after == null || facts.get(i) == null ? null : FileFacts.of(after);
      if (after == null || after.getLen() != before.getLen() || after.getModificationTime() != before.getModificationTime()
          || fact != null && !fact.equals(facts.get(i))) {
        throw changed(before.getPath());
      }
    }
  }

  /** Return the files as they are now, null for those that are gone: local ones by themselves, others by a listing of each folder. */
  private static List<FileStatus> now(List<FileStatus> files, Configuration configuration) {
    Stream<FileStatus> stream = files.size() > FEW ? files.parallelStream() : files.stream();
    if (files.stream().allMatch(file -> isLocal(file.getPath()))) {
      return stream.map(file -> status(file.getPath(), configuration)).collect(Collectors.toCollection(ArrayList::new));
    }
    Map<Path, FileStatus> found = new HashMap<>();
    List<Path> folders = stream.map(file -> file.getPath().getParent()).distinct().collect(Collectors.toList());
    folders.parallelStream().map(folder -> list(folder, configuration)).collect(Collectors.toList())
        .forEach(there -> there.forEach(file -> found.put(file.getPath(), file)));
    return files.stream().map(file -> found.get(file.getPath())).collect(Collectors.toCollection(ArrayList::new));
  }

  private static boolean isLocal(Path path) {
    return "file".equals(path.toUri().getScheme());
  }

  private static FileStatus status(Path path, Configuration configuration) {
    try {
      return path.getFileSystem(configuration).getFileStatus(path);
    } catch (FileNotFoundException gone) {
      return null;
    } catch (IOException problem) {
      throw new UncheckedIOException(problem);
    }
  }

  private static List<FileStatus> list(Path folder, Configuration configuration) {
    try {
      FileSystem store = folder.getFileSystem(configuration);
      return Arrays.asList(store.listStatus(folder));
    } catch (FileNotFoundException gone) {
      return new ArrayList<>();
    } catch (IOException problem) {
      throw new UncheckedIOException(problem);
    }
  }

  private RuntimeException changed(Path path) {
    registered.setChanged(path);
    return UnchangedFileReader.error(path, ", and an index answered for it");
  }
}
