package grebe.spark;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Predicate;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.PartitionedFile;

/** Files that are not read, and of some others the only ranges of bytes that are. */
final class Restriction {
  private static final ObjectMapper JSON = new ObjectMapper();
  static final Restriction NONE = new Restriction(new BitSet(), new HashMap<>());

  final BitSet without;
  /** By id of the file: start and length of each range. */
  final Map<Integer, List<long[]>> ranges;

  private Restriction(BitSet without, Map<Integer, List<long[]>> ranges) {
    this.without = without;
    this.ranges = ranges;
  }

  /** {"without": "0-4,7-7", "ranges": {"5": [start, length, …]}} */
  static Restriction of(JsonNode decision) {
    Map<Integer, List<long[]>> ranges = new HashMap<>();
    decision.get("ranges").fields().forEachRemaining(file -> {
      List<long[]> parts = new ArrayList<>();
      for (int i = 0; i + 1 < file.getValue().size(); i += 2) {
        parts.add(new long[] {file.getValue().get(i).asLong(), file.getValue().get(i + 1).asLong()});
      }
      ranges.put(Integer.valueOf(file.getKey()), parts);
    });
    return new Restriction(Snapshot.parse(decision.get("without").asText()), ranges);
  }

  static Restriction of(String text) throws IOException {
    return of(JSON.readTree(text));
  }

  /** Ranges of one file by another index, or of other keys, must not be taken for each other. */
  Object identity() {
    List<Object> parts = new ArrayList<>();
    new TreeMap<>(ranges).forEach((id, list) -> {
      parts.add(id);
      list.forEach(range -> parts.addAll(Arrays.asList(range[0], range[1])));
    });
    return parts;
  }

  boolean isNothing() {
    return without.isEmpty() && ranges.isEmpty();
  }

  /** What is left of a partition's files: Spark may have cut a file into several already. Some can be read as a whole only. */
  List<PartitionedFile> left(FilePartition partition, Narrowed files, Set<Path> seen, Predicate<Path> isSplitable) {
    List<PartitionedFile> kept = new ArrayList<>();
    for (PartitionedFile file : partition.files()) {
      Path path = file.toPath();
      int id = files.id(file);
      if (id < 0 || !without.get(id)) {
        List<long[]> parts = id < 0 ? null : ranges.get(id);
        if (parts == null || !isSplitable.test(path)) {
          kept.add(file);
        } else if (seen.add(path)) {
          parts.forEach(part -> kept.add(cut(file, part[0], part[1])));
        }
      }
    }
    return kept;
  }

  private static PartitionedFile cut(PartitionedFile file, long start, long length) {
    return new PartitionedFile(file.partitionValues(), file.filePath(), start, length, file.locations(), file.modificationTime(),
        file.fileSize(), file.otherConstantMetadataColumnValues());
  }

  static int files(List<FilePartition> partitions) {
    Set<Path> paths = new HashSet<>();
    partitions.forEach(partition -> {
      for (PartitionedFile file : partition.files()) {
        paths.add(file.toPath());
      }
    });
    return paths.size();
  }
}
