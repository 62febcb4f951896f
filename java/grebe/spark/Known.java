package grebe.spark;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

import org.apache.hadoop.fs.Path;

/** Where there is no index, so that queries over tables without one cost next to nothing; and which table's files are where. */
final class Known {
  private static final int LIMIT = 100_000;
  private final Map<Path, Long> nothing = new ConcurrentHashMap<>();
  private final Map<Path, String> tables = new ConcurrentHashMap<>();

  void nothingAt(Path root, long milliseconds) {
    if (nothing.size() >= LIMIT) {
      nothing.clear();
    }
    nothing.put(root, System.nanoTime() + milliseconds * 1_000_000);
  }

  boolean hasNothing(Path root) {
    Long until = nothing.get(root);
    return until != null && until - System.nanoTime() > 0;
  }

  void tableAt(Path root, String snapshot) {
    if (tables.size() >= LIMIT) {
      tables.clear();
    }
    tables.put(root, snapshot);
  }

  /** The key of the registered files that a relation with this root was last compared with; null if there is none. */
  String tableAt(Path root) {
    return tables.get(root);
  }

  void clear() {
    nothing.clear();
    tables.clear();
  }
}
