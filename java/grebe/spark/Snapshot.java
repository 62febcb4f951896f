package grebe.spark;

import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

import org.apache.hadoop.fs.Path;

/** The registered files of one table: canonical URI to id, size, time of change and facts. Grows, is never changed otherwise. */
public final class Snapshot implements FileIds {
  private final Map<String, Integer> places = new HashMap<>();
  private int[] ids = new int[0];
  private long[] sizes = new long[0];
  private long[] times = new long[0];
  /** Another file that was registered under the same name before, or -1: it may come back as it was. */
  private int[] earlier = new int[0];
  /** Ids of files that were found to have changed. */
  private final BitSet changed = new BitSet();
  /** By id what `FileFacts` had to say of the file; none for most. */
  private final Map<Integer, String> facts = new ConcurrentHashMap<>();

  /** Adds files; the arrays are those of Arrow: little-endian numbers, and offsets into one text. `newFacts` is a line for each. */
  public synchronized void add(
      byte[] newIds, byte[] newSizes, byte[] newTimes, byte[] offsets, byte[] uris, byte[] newFacts) {
    int before = ids.length;
    int count = newIds.length / 4;
    int[] moreIds = java.util.Arrays.copyOf(ids, before + count);
    long[] moreSizes = java.util.Arrays.copyOf(sizes, before + count);
    long[] moreTimes = java.util.Arrays.copyOf(times, before + count);
    int[] moreEarlier = java.util.Arrays.copyOf(earlier, before + count);
    order(newIds).asIntBuffer().get(moreIds, before, count);
    order(newSizes).asLongBuffer().get(moreSizes, before, count);
    order(newTimes).asLongBuffer().get(moreTimes, before, count);
    ByteBuffer ends = order(offsets);
    for (int i = 0; i < count; i++) {
      int start = ends.getInt(4 * i);
      int stop = ends.getInt(4 * i + 4);
      Integer other = places.put(new String(uris, start, stop - start, StandardCharsets.UTF_8), before + i);
      moreEarlier[before + i] = other == null ? -1 : other;
    }
    if (newFacts.length > 0) {
      String[] lines = new String(newFacts, StandardCharsets.UTF_8).split("\n", -1);
      for (int i = 0; i < count; i++) {
        if (!lines[i].isEmpty()) {
          facts.put(moreIds[before + i], lines[i]);
        }
      }
    }
    earlier = moreEarlier;
    ids = moreIds;
    sizes = moreSizes;
    times = moreTimes;
  }

  /** So many files were ever registered. */
  synchronized int size() {
    return ids.length;
  }

  /** Whether some file was ever registered under this name. */
  synchronized boolean isNamed(Path path) {
    return places.containsKey(canonical(path));
  }

  /** Of a registered file; null if nothing was known. */
  String factOf(int id) {
    return facts.get(id);
  }

  @Override
  public int idOf(Path path, long size, long time) {
    return idOf(path, size, time, null);
  }

  /**
   * Return the files that a decision was made for. A file of the same path, size and time as one of these has its id; every other one has none:
   * it was replaced, or registered after the decision.
   */
  FileIds among(BitSet listed) {
    return new FileIds() {
      @Override
      public int idOf(Path path, long size, long time) {
        return Snapshot.this.idOf(path, size, time, listed);
      }

      @Override
      public int idOf(Path path) {
        return Snapshot.this.idOf(path, listed);
      }
    };
  }

  @Override
  public int idOf(Path path) {
    return idOf(path, null);
  }

  private synchronized int idOf(Path path, BitSet listed) {
    Integer newest = places.get(canonical(path));
    for (int place = newest == null ? -1 : newest; place >= 0; place = earlier[place]) {
      if (listed == null || listed.get(ids[place])) {
        return ids[place];
      }
    }
    return -1;
  }

  private synchronized int idOf(Path path, long size, long time, BitSet listed) {
    Integer newest = places.get(canonical(path));
    for (int place = newest == null ? -1 : newest; place >= 0; place = earlier[place]) {
      if (sizes[place] == size && times[place] == time && (listed == null || listed.get(ids[place]))) {
        return ids[place];
      }
    }
    return -1;
  }

  /** Return whether a task found that this file is no longer the registered one. */
  synchronized boolean isChanged(int id) {
    return changed.get(id);
  }

  /** Take the file of this name for another one than the registered. */
  synchronized void setChanged(Path path) {
    Integer newest = places.get(canonical(path));
    for (int place = newest == null ? -1 : newest; place >= 0; place = earlier[place]) {
      changed.set(ids[place]);
    }
  }

  /** One form for one place, as `grebe.files.canonical_uri` has it. Hadoop's paths are clean and decoded already. */
  static String canonical(Path path) {
    URI uri = path.toUri();
    String scheme = uri.getScheme() == null ? "file" : uri.getScheme().toLowerCase(Locale.ROOT);
    String authority = uri.getAuthority() == null ? "" : uri.getAuthority();
    String place = uri.getPath().equals("/") ? "" : uri.getPath();
    switch (scheme) {
      case "s3a": case "s3n":
        scheme = "s3";
        break;
      case "gcs":
        scheme = "gs";
        break;
      case "abfss": case "wasb": case "wasbs": case "az": case "azure": case "adl":
        scheme = "abfs";
        break;
      default:
        break;
    }
    return scheme + "://" + authority(scheme, authority) + place;
  }

  private static String authority(String scheme, String authority) {
    if (scheme.equals("file")) {
      return authority.equalsIgnoreCase("localhost") ? "" : authority;
    }
    int at = authority.lastIndexOf('@');
    if (scheme.equals("abfs")) {
      int first = authority.indexOf('@');
      return first < 0 ? authority : authority.substring(0, first) + "@"
          + authority.substring(first + 1).toLowerCase(Locale.ROOT).replaceFirst("\\.blob\\.", ".dfs.");
    }
    String host = authority.substring(at + 1);
    switch (scheme) {
      case "http":
        return host.toLowerCase(Locale.ROOT).replaceFirst(":80$", "");
      case "https":
        return host.toLowerCase(Locale.ROOT).replaceFirst(":443$", "");
      case "hdfs": case "webhdfs": case "swebhdfs": case "viewfs": case "ftp": case "sftp":
        return host.toLowerCase(Locale.ROOT);
      default:
        return host;
    }
  }

  private static ByteBuffer order(byte[] bytes) {
    return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
  }

  /** "0-4,7": sets of ids as text, ends included. */
  static String ranges(BitSet set) {
    StringBuilder text = new StringBuilder();
    for (int start = set.nextSetBit(0); start >= 0; ) {
      int stop = set.nextClearBit(start);
      text.append(text.length() > 0 ? "," : "").append(start).append('-').append(stop - 1);
      start = set.nextSetBit(stop);
    }
    return text.toString();
  }

  static BitSet parse(String ranges) {
    BitSet set = new BitSet();
    for (String range : split(ranges)) {
      int dash = range.indexOf('-');
      set.set(Integer.parseInt(range.substring(0, dash)), Integer.parseInt(range.substring(dash + 1)) + 1);
    }
    return set;
  }

  private static List<String> split(String ranges) {
    List<String> parts = new ArrayList<>();
    for (String part : ranges.split(",")) {
      if (!part.isEmpty()) {
        parts.add(part);
      }
    }
    return parts;
  }
}
