package grebe.spark;

import java.io.EOFException;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.function.IntFunction;

import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;

/** A file of an index. Its end comes from memory; streams of the store's own are opened for the rest, once that is asked for. */
@SuppressWarnings("rawtypes")
final class IndexStream extends FSInputStream {
  /** So many ranges a stream of Hadoop's fetches at the same time. */
  private static final int AT_ONCE = 4;
  private static final int MOST_STREAMS = 4;
  private final FileSystem store;
  private final FileStatus file;
  /** The first serves what is read at one place, all of them what is read at several. */
  private final List<FSDataInputStream> opened = new ArrayList<>();
  private long at;

  IndexStream(FileSystem store, FileStatus file) {
    this.store = store;
    this.file = file;
  }

  @Override
  public int read() throws IOException {
    byte[] one = new byte[1];
    return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
  }

  @Override
  public int read(byte[] into, int offset, int length) throws IOException {
    if (length == 0 || at >= file.getLen()) {
      return length == 0 ? 0 : -1;
    }
    byte[] end = Ends.from(at, store, file, this::first);
    int count;
    if (end != null) {
      int from = (int) (at - (file.getLen() - end.length));
      count = Math.min(length, end.length - from);
      System.arraycopy(end, from, into, offset, count);
    } else {
      first().seek(at);
      count = first().read(into, offset, length);
    }
    at += Math.max(0, count);
    return count;
  }

  /** Several ranges at once; without `@Override`, as Hadoop has it from 3.3.5 on, and nobody asks for it before. */
  public void readVectored(List ranges, IntFunction allocate) throws IOException {
    List asked = new ArrayList<>(ranges);
    byte[] end = Ends.kept(store, file);
    asked.removeIf(range -> end != null && fromMemory(range, end, allocate));
    fetch(asked, allocate);
  }

  /** Small files are kept as a whole. */
  private boolean fromMemory(Object range, byte[] end, IntFunction allocate) {
    long from = (Long) Reflected.call(range, "getOffset");
    int length = (Integer) Reflected.call(range, "getLength");
    if (from < file.getLen() - end.length || from + length > file.getLen()) {
      return false;
    }
    ByteBuffer bytes = (ByteBuffer) allocate.apply(length);
    bytes.put(end, (int) (from - (file.getLen() - end.length)), length);
    ((Buffer) bytes).flip();
    Reflected.call(range, "setData", CompletableFuture.completedFuture(bytes));
    return true;
  }

  private void fetch(List ranges, IntFunction allocate) throws IOException {
    int streams = Math.min(MOST_STREAMS, (ranges.size() + AT_ONCE - 1) / AT_ONCE);
    int each = (ranges.size() + streams - 1) / Math.max(1, streams);
    for (int number = 0; number < streams; number++) {
      List some = ranges.subList(Math.min(ranges.size(), number * each), Math.min(ranges.size(), (number + 1) * each));
      fetch(stream(number), some, allocate);
    }
  }

  private static void fetch(FSDataInputStream stream, List ranges, IntFunction allocate) throws IOException {
    try {
      Reflected.call(stream, "readVectored", ranges, allocate);
    } catch (IllegalStateException failed) {
      Throwable why = failed.getCause() instanceof InvocationTargetException ? failed.getCause().getCause() : failed;
      throw why instanceof IOException ? (IOException) why : new IOException(why);
    }
  }

  @Override
  public void seek(long place) throws IOException {
    if (place < 0 || place > file.getLen()) {
      throw new EOFException("no byte " + place + " in " + file.getPath() + " of " + file.getLen() + " bytes");
    }
    at = place;
  }

  @Override
  public long getPos() {
    return at;
  }

  @Override
  public boolean seekToNewSource(long place) {
    return false;
  }

  @Override
  public void close() throws IOException {
    for (FSDataInputStream each : opened) {
      each.close();
    }
  }

  private FSDataInputStream first() throws IOException {
    return stream(0);
  }

  private FSDataInputStream stream(int number) throws IOException {
    while (opened.size() <= number) {
      try {
        opened.add(store.openFile(file.getPath())
            .opt("fs.option.openfile.length", Long.toString(file.getLen()))
            .opt("fs.option.openfile.read.policy", "parquet, columnar, vector, random")
            .build().get());
      } catch (ExecutionException failed) {
        throw failed.getCause() instanceof IOException ? (IOException) failed.getCause() : new IOException(failed.getCause());
      } catch (InterruptedException stopped) {
        Thread.currentThread().interrupt();
        throw (IOException) new java.io.InterruptedIOException().initCause(stopped);
      }
    }
    return opened.get(number);
  }
}
