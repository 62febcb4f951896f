package grebe.spark;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;

/** The files of index versions: named by Python once, looked up on the store when first used, so that a lost one shows in planning. */
final class Contents {
  private static final int LIMIT = 1_000;

  private final Map<String, List<Path>> named = new LinkedHashMap<String, List<Path>>(16, 0.75f, true) {
    @Override
    protected boolean removeEldestEntry(Map.Entry<String, List<Path>> eldest) {
      if (size() > LIMIT) {
        found.remove(eldest.getKey());
        return true;
      }
      return false;
    }
  };
  private final Map<String, List<FileStatus>> found = new HashMap<>();

  static final class Missing extends IOException {
    final Path path;

    Missing(Path path) {
      super("a file of the index is missing: " + path);
      this.path = path;
    }
  }

  synchronized boolean has(String key) {
    return named.containsKey(key);
  }

  /** One path a line, in the order in which decisions count them. */
  synchronized void add(String key, String files) {
    List<Path> paths = new ArrayList<>();
    for (String line : files.split("\n")) {
      if (!line.isEmpty()) {
        paths.add(new Path(line));
      }
    }
    named.put(key, paths);
  }

  /** The file of an index with this name, or null. */
  synchronized Path named(String file) {
    for (List<Path> paths : named.values()) {
      for (Path path : paths) {
        if (path.getName().equals(file)) {
          return path;
        }
      }
    }
    return null;
  }

  /** Whatever was found is looked up again. */
  synchronized void forgetAll() {
    found.clear();
  }

  /** With the places of their blocks, where the store has any. Throws if a file is missing. */
  synchronized List<FileStatus> files(String key, Configuration configuration) throws IOException {
    List<FileStatus> known = found.get(key);
    if (known == null) {
      List<Path> paths = named.getOrDefault(key, Collections.emptyList());
      Map<Path, FileStatus> there = new HashMap<>();
      List<Path> folders = new ArrayList<>();
      known = new ArrayList<>();
      for (Path path : paths) {
        if (!folders.contains(path.getParent())) {
          folders.add(path.getParent());
          list(path.getParent(), configuration, there);
        }
        FileStatus status = there.get(path);
        if (status == null) {
          throw new Missing(path);
        }
        known.add(status);
      }
      found.put(key, known);
    }
    return known;
  }

  private static void list(Path folder, Configuration configuration, Map<Path, FileStatus> into) throws IOException {
    FileSystem system = folder.getFileSystem(configuration);
    RemoteIterator<LocatedFileStatus> each = system.listLocatedStatus(folder);
    while (each.hasNext()) {
      FileStatus status = each.next();
      into.put(status.getPath(), status);
    }
  }
}
