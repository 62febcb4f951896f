package grebe.spark;

import java.io.IOException;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;

import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** The ends of files of indexes, where footers and the indexes of pages are. Such files never change, so they are kept. */
final class Ends {
  private static final int FIRST = 64 << 10;
  private static final long MOST = 64 << 20;
  private static final Map<Key, End> KEPT = new LinkedHashMap<>(16, 0.75f, true);
  private static long held;

  private Ends() {}

  /** The bytes of a file from some place to its end, and the checksums of all before its tail; null if it has none or none are checked. */
  static final class End {
    final long from;
    final byte[] bytes;
    final BlockChecksums blocks;

    private End(long from, byte[] bytes, BlockChecksums blocks) {
      this.from = from;
      this.bytes = bytes;
      this.blocks = blocks;
    }
  }

  interface Source {
    /** Read so many bytes from this place on. */
    byte[] read(long from, int length) throws IOException;
  }

  /** Return the end of a file: its tail, and some of what lies before it, in one request. */
  static End of(FileSystem store, IndexFiles.Opening file, Source source) throws IOException {
    Key key = new Key(store, file.status.getPath(), file.verified);
    End end = kept(key);
    if (end == null) {
      end = fetched(file, source);
      keep(key, end);
    }
    return end;
  }

  private static End fetched(IndexFiles.Opening file, Source source) throws IOException {
    FileChecksum expected = file.expected;
    long from = Math.max(0, expected.size - Math.max(FIRST, expected.tail));
    byte[] bytes = source.read(from, (int) (expected.size - from));
    if (!file.verified) {
      return new End(from, bytes, null);
    }
    if (!expected.matches(bytes)) {
      bytes = source.read(from, bytes.length);
      if (!expected.matches(bytes)) {
        throw expected.damaged();
      }
    }
    long data = expected.size - expected.tail;
    BlockChecksums blocks = BlockChecksums.in(bytes, data);
    if (blocks == null) {
      return new End(from, bytes, null);
    }
    // Whole blocks before the tail come along, unless they are damaged: whoever reads them will find that.
    long first = blocks.end(from);
    int before = (int) (first - from);
    boolean sound = blocks.match(first, bytes, before, (int) (data - first));
    long kept = sound ? first : data;
    return new End(kept, Arrays.copyOfRange(bytes, (int) (kept - from), bytes.length), blocks);
  }

  private static synchronized End kept(Key key) {
    return KEPT.get(key);
  }

  private static synchronized void keep(Key key, End end) {
    End before = KEPT.put(key, end);
    held += end.bytes.length - (before == null ? 0 : before.bytes.length);
    java.util.Iterator<Map.Entry<Key, End>> oldest = KEPT.entrySet().iterator();
    while (held > MOST) {
      held -= oldest.next().getValue().bytes.length;
      oldest.remove();
    }
  }

  /** Of a store as one user sees it: Hadoop makes one for each. */
  private static final class Key {
    private final FileSystem store;
    private final Path path;
    private final boolean verified;

    Key(FileSystem store, Path path, boolean verified) {
      this.store = store;
      this.path = path;
      this.verified = verified;
    }

    @Override
    public boolean equals(Object other) {
      return other instanceof Key && ((Key) other).store == store && ((Key) other).path.equals(path)
          && ((Key) other).verified == verified;
    }

    @Override
    public int hashCode() {
      return Objects.hash(System.identityHashCode(store), path);
    }
  }
}
