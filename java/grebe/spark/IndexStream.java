package grebe.spark;

import java.io.EOFException;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.function.IntFunction;

import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSInputStream;
import org.apache.hadoop.fs.FileSystem;

/**
 * A file of an index. Its end comes from memory; streams of the store's own are opened for the rest, once that is asked for. The rest is
 * read in whole blocks, each of which is compared with its checksum.
 */
@SuppressWarnings({"rawtypes", "unchecked"})
final class IndexStream extends FSInputStream {
  /** So many ranges a stream of Hadoop's fetches at the same time. */
  private static final int AT_ONCE = 4;
  private static final int MOST_STREAMS = 4;
  private static final int LONGEST = 16 << 20;
  private final FileSystem store;
  private final IndexFiles.Opening file;
  /** The first serves what is read at one place, all of them what is read at several. */
  private final List<FSDataInputStream> opened = new ArrayList<>();
  private Ends.End end;
  private long at;
  /** Blocks that were compared, from this byte of the file on. */
  private byte[] blocks = new byte[0];
  private long blocksFrom;
  private int blocksLength;

  IndexStream(FileSystem store, IndexFiles.Opening file) {
    this.store = store;
    this.file = file;
  }

  private long length() {
    return file.status.getLen();
  }

  private Ends.End end() throws IOException {
    if (end == null) {
      end = Ends.of(store, file, this::stored);
    }
    return end;
  }

  @Override
  public int read() throws IOException {
    byte[] one = new byte[1];
    return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
  }

  @Override
  public int read(byte[] into, int offset, int length) throws IOException {
    if (length == 0 || at >= length()) {
      return length == 0 ? 0 : -1;
    }
    int count;
    if (at >= end().from) {
      count = copied(end.bytes, end.from, end.bytes.length, into, offset, length);
    } else if (end.blocks == null) {
      first().seek(at);
      count = first().read(into, offset, length);
    } else {
      if (at < blocksFrom || at >= blocksFrom + blocksLength) {
        fill(length);
      }
      count = copied(blocks, blocksFrom, blocksLength, into, offset, length);
    }
    at += Math.max(0, count);
    return count;
  }

  private int copied(byte[] bytes, long from, int there, byte[] into, int offset, int length) {
    int place = (int) (at - from);
    int count = Math.min(length, there - place);
    System.arraycopy(bytes, place, into, offset, count);
    return count;
  }

  /** Read the blocks that hold the next so many bytes. */
  private void fill(int length) throws IOException {
    long from = end.blocks.start(at);
    int wanted = (int) Math.min(LONGEST, end.blocks.end(at + length) - from);
    blocksLength = 0;
    if (blocks.length < wanted) {
      blocks = new byte[wanted];
    }
    try {
      first().readFully(from, blocks, 0, wanted);
    } catch (IOException failed) {
      throw file.expected.failed(failed);
    }
    if (!end.blocks.match(from, blocks, 0, wanted)) {
      System.arraycopy(again(from, wanted), 0, blocks, 0, wanted);
    }
    blocksFrom = from;
    blocksLength = wanted;
  }

  /** What did not match may have been damaged on its way. */
  private byte[] again(long from, int length) throws IOException {
    byte[] bytes = stored(from, length);
    if (!end.blocks.match(from, bytes, 0, length)) {
      throw file.expected.damaged();
    }
    return bytes;
  }

  /** As the store has it, through a stream of its own. */
  private byte[] stored(long from, int length) throws IOException {
    byte[] bytes = new byte[length];
    try (FSDataInputStream stream = open()) {
      stream.readFully(from, bytes);
    } catch (IOException failed) {
      throw file.expected.failed(failed);
    }
    return bytes;
  }

  /** Several ranges at once; without `@Override`, as Hadoop has it from 3.3.5 on, and nobody asks for it before. */
  public void readVectored(List ranges, IntFunction allocate) throws IOException {
    List asked = new ArrayList<>(ranges);
    end();
    asked.removeIf(range -> fromMemory(range, allocate));
    if (end.blocks == null) {
      fetch(asked, allocate);
    } else {
      fetchBlocks(asked);
    }
  }

  /** Small files are kept as a whole. */
  private boolean fromMemory(Object range, IntFunction allocate) {
    if (from(range) < end.from || until(range) > length()) {
      return false;
    }
    int length = (int) (until(range) - from(range));
    ByteBuffer bytes = (ByteBuffer) allocate.apply(length);
    bytes.put(end.bytes, (int) (from(range) - end.from), length);
    ((Buffer) bytes).flip();
    Reflected.call(range, "setData", CompletableFuture.completedFuture(bytes));
    return true;
  }

  private static long from(Object range) {
    return (Long) Reflected.call(range, "getOffset");
  }

  private static long until(Object range) {
    return from(range) + (Integer) Reflected.call(range, "getLength");
  }

  /** Whole blocks, each fetched once, are compared as soon as they are there; the ranges are parts of them. */
  private void fetchBlocks(List asked) throws IOException {
    asked.sort(Comparator.comparingLong(IndexStream::from));
    List<Object> pieces = new ArrayList<>();
    List<Integer> pieceOf = new ArrayList<>();
    long start = 0;
    long stop = -1;
    for (Object range : asked) {
      long from = end.blocks.start(from(range));
      long until = end.blocks.end(until(range));
      if (until < until(range)) {
        throw new EOFException("a range of " + file.expected.path + " reaches from rows into the indexes of pages");
      }
      if (from < stop) {
        pieces.set(pieces.size() - 1, piece(start, stop = Math.max(stop, until)));
      } else {
        pieces.add(piece(start = from, stop = until));
      }
      pieceOf.add(pieces.size() - 1);
    }
    fetch(pieces, ByteBuffer::allocate);
    List<CompletableFuture<ByteBuffer>> compared = new ArrayList<>();
    for (Object piece : pieces) {
      CompletableFuture<ByteBuffer> data = (CompletableFuture<ByteBuffer>) Reflected.call(piece, "getData");
      compared.add(data.handle((bytes, failed) -> compared(from(piece), bytes, failed)));
    }
    for (int i = 0; i < asked.size(); i++) {
      Object range = asked.get(i);
      int before = (int) (from(range) - from(pieces.get(pieceOf.get(i))));
      int length = (int) (until(range) - from(range));
      Reflected.call(range, "setData", compared.get(pieceOf.get(i)).thenApply(bytes -> part(bytes, before, length)));
    }
  }

  private static Object piece(long from, long until) {
    return Reflected.callStatic("org.apache.hadoop.fs.FileRange", "createFileRange", from, (int) (until - from));
  }

  private ByteBuffer compared(long from, ByteBuffer bytes, Throwable failed) {
    try {
      if (failed != null) {
        throw file.expected.failed(failed);
      }
      int length = bytes.remaining();
      boolean sound = bytes.hasArray()
          && end.blocks.match(from, bytes.array(), bytes.arrayOffset() + ((Buffer) bytes).position(), length);
      return sound ? bytes : ByteBuffer.wrap(again(from, length));
    } catch (IOException problem) {
      throw new CompletionException(problem);
    }
  }

  private static ByteBuffer part(ByteBuffer bytes, int before, int length) {
    ByteBuffer own = bytes.duplicate();
    ((Buffer) own).position(((Buffer) bytes).position() + before);
    ((Buffer) own).limit(((Buffer) own).position() + length);
    return own.slice();
  }

  private void fetch(List ranges, IntFunction allocate) throws IOException {
    int streams = Math.min(MOST_STREAMS, (ranges.size() + AT_ONCE - 1) / AT_ONCE);
    int each = (ranges.size() + streams - 1) / Math.max(1, streams);
    for (int number = 0; number < streams; number++) {
      List some = ranges.subList(Math.min(ranges.size(), number * each), Math.min(ranges.size(), (number + 1) * each));
      fetch(stream(number), some, allocate);
    }
  }

  private void fetch(FSDataInputStream stream, List ranges, IntFunction allocate) throws IOException {
    try {
      Reflected.call(stream, "readVectored", ranges, allocate);
    } catch (IllegalStateException failed) {
      Throwable why = failed.getCause() instanceof InvocationTargetException ? failed.getCause().getCause() : failed;
      throw file.expected.failed(why);
    }
  }

  @Override
  public void seek(long place) throws IOException {
    if (place < 0 || place > length()) {
      throw new EOFException("no byte " + place + " in " + file.expected.path + " of " + length() + " bytes");
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
      opened.add(open());
    }
    return opened.get(number);
  }

  private FSDataInputStream open() throws IOException {
    try {
      return store.openFile(file.status.getPath())
          .opt("fs.option.openfile.length", Long.toString(length()))
          .opt("fs.option.openfile.read.policy", "parquet, columnar, vector, random")
          .build().get();
    } catch (IOException | ExecutionException failed) {
      throw file.expected.failed(failed);
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
      throw (IOException) new java.io.InterruptedIOException().initCause(stopped);
    }
  }
}
