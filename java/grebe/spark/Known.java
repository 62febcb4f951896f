package grebe.spark;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

import org.apache.hadoop.fs.Path;

/** Where there is no index, so that queries over tables without one cost next to nothing. */
final class Known {
  private static final int LIMIT = 100_000;
  private final Map<Path, Long> nothing = new ConcurrentHashMap<>();

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

  void clear() {
    nothing.clear();
  }
}
