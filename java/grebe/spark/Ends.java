package grebe.spark;

import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;

import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** The ends of files of indexes, where footers and the indexes of pages are. Such files never change, so they are kept. */
final class Ends {
  private static final int FIRST = 64 << 10;
  /** Further from the end than this share, or than this, are rows. */
  private static final int SHARE = 16;
  private static final long FURTHEST = 8 << 20;
  private static final long MOST = 64 << 20;
  private static final Map<Key, byte[]> KEPT = new LinkedHashMap<>(16, 0.75f, true);
  private static long held;

  private Ends() {}

  interface Opened {
    FSDataInputStream get() throws IOException;
  }

  /** The end of a file from this byte or an earlier one on; null if rows are there. */
  static byte[] from(long place, FileSystem store, FileStatus file, Opened stream) throws IOException {
    long length = file.getLen();
    if (place < length - Math.max(FIRST, Math.min(FURTHEST, length / SHARE))) {
      return null;
    }
    Key key = new Key(store, file.getPath());
    byte[] end = kept(key);
    if (end == null || place < length - end.length) {
      // What is missing lies before what is there: twice as much, so that the rounds do not grow with the file.
      long from = Math.max(0, Math.min(place, length - (end == null ? FIRST : 2L * end.length)));
      byte[] longer = new byte[(int) (length - from)];
      int had = end == null ? 0 : end.length;
      stream.get().readFully(from, longer, 0, longer.length - had);
      if (had > 0) {
        System.arraycopy(end, 0, longer, longer.length - had, had);
      }
      keep(key, longer);
      end = longer;
    }
    return end;
  }

  /** What is in memory of it; null if nothing is. */
  static byte[] kept(FileSystem store, FileStatus file) {
    return kept(new Key(store, file.getPath()));
  }

  private static synchronized byte[] kept(Key key) {
    return KEPT.get(key);
  }

  private static synchronized void keep(Key key, byte[] end) {
    byte[] before = KEPT.put(key, end);
    held += end.length - (before == null ? 0 : before.length);
    java.util.Iterator<Map.Entry<Key, byte[]>> oldest = KEPT.entrySet().iterator();
    while (held > MOST) {
      held -= oldest.next().getValue().length;
      oldest.remove();
    }
  }

  /** Of a store as one user sees it: Hadoop makes one for each. */
  private static final class Key {
    private final FileSystem store;
    private final Path path;

    Key(FileSystem store, Path path) {
      this.store = store;
      this.path = path;
    }

    @Override
    public boolean equals(Object other) {
      return other instanceof Key && ((Key) other).store == store && ((Key) other).path.equals(path);
    }

    @Override
    public int hashCode() {
      return Objects.hash(System.identityHashCode(store), path);
    }
  }
}
