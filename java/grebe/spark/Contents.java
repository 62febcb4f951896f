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

  private final Map<String, List<FileChecksum>> named = new LinkedHashMap<String, List<FileChecksum>>(16, 0.75f, true) {
    @Override
    protected boolean removeEldestEntry(Map.Entry<String, List<FileChecksum>> eldest) {
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

    Missing(Path path, String what) {
      super("a file of the index " + what + ": " + path);
      this.path = path;
    }
  }

  synchronized boolean has(String key) {
    return named.containsKey(key);
  }

  /** One file a line, in the order in which decisions count them; see `FileChecksum`. */
  synchronized void add(String key, String index, String files) {
    named.put(key, parsed(index, files));
  }

  static List<FileChecksum> parsed(String index, String files) {
    List<FileChecksum> made = new ArrayList<>();
    for (String line : files.split("\n")) {
      if (!line.isEmpty()) {
        made.add(FileChecksum.parse(index, line));
      }
    }
    return made;
  }

  synchronized List<FileChecksum> checksums(String key) {
    return named.getOrDefault(key, Collections.emptyList());
  }

  /** The file of an index with this name, or null. */
  synchronized Path named(String file) {
    for (List<FileChecksum> files : named.values()) {
      for (FileChecksum each : files) {
        if (each.path.endsWith("/" + file)) {
          return new Path(each.path);
        }
      }
    }
    return null;
  }

  /** Whatever was found is looked up again. */
  synchronized void forgetAll() {
    found.clear();
  }

  /** With the places of their blocks, where the store has any. Throws if a file is missing or of another size. */
  synchronized List<FileStatus> files(String key, Configuration configuration) throws IOException {
    List<FileStatus> known = found.get(key);
    if (known == null) {
      known = found(checksums(key), configuration);
      found.put(key, known);
    }
    return known;
  }

  static List<FileStatus> found(List<FileChecksum> files, Configuration configuration) throws IOException {
    Map<Path, FileStatus> there = new HashMap<>();
    List<Path> folders = new ArrayList<>();
    List<FileStatus> found = new ArrayList<>();
    for (FileChecksum file : files) {
      Path path = new Path(file.path);
      if (!folders.contains(path.getParent())) {
        folders.add(path.getParent());
        list(path.getParent(), configuration, there);
      }
      FileStatus status = there.get(path);
      if (status == null || status.getLen() != file.size) {
        throw new Missing(path, status == null ? "is missing" : "has another size than was written");
      }
      found.add(status);
    }
    return found;
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
