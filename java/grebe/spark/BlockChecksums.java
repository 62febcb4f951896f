package grebe.spark;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Base64;
import java.util.zip.CRC32;

import org.apache.parquet.format.KeyValue;
import org.apache.parquet.format.Util;

/**
 * CRC-32 of every block of an index file, from its first byte up to its tail (page indexes, Bloom filters, footer). They are computed
 * while the file is written and stored in its footer; the tail itself is covered by a digest in the directory of the index. So every
 * byte that is read is covered, page headers included.
 */
final class BlockChecksums {
  /** In the key-value metadata of the footer: `block size:bytes covered:base64 of big-endian CRCs`. Also in `content/blocks.py`. */
  static final String KEY = "grebe.blocks";
  private static final int BLOCK = 32 << 10;
  private static final int ENDING = 8;

  /** The file that this thread is about to write. */
  static final ThreadLocal<BlockChecksums> WRITING = new ThreadLocal<>();

  final int block;
  private long covered;
  /** What follows is the tail. */
  private boolean finished;
  private int[] sums = new int[64];
  private final CRC32 current = new CRC32();

  BlockChecksums() {
    block = BLOCK;
  }

  private BlockChecksums(int block, long covered, int[] sums) {
    this.block = block;
    this.covered = covered;
    this.sums = sums;
  }

  /** Add bytes that are written next. */
  void update(byte[] data, int from, int length) {
    int done = finished ? length : 0;
    while (done < length) {
      int part = (int) Math.min(length - done, block - covered % block);
      current.update(data, from + done, part);
      covered += part;
      done += part;
      if (covered % block == 0) {
        close();
      }
    }
  }

  private void close() {
    int number = (int) ((covered - 1) / block);
    if (number >= sums.length) {
      sums = Arrays.copyOf(sums, 2 * sums.length);
    }
    sums[number] = (int) current.getValue();
    current.reset();
  }

  /** Return all that was written so far as the value of `KEY`. */
  String text() {
    if (covered % block != 0 && !finished) {
      close();
    }
    finished = true;
    int count = blocks(covered, block);
    ByteBuffer bytes = ByteBuffer.allocate(4 * count);
    for (int i = 0; i < count; i++) {
      bytes.putInt(sums[i]);
    }
    return block + ":" + covered + ":" + Base64.getEncoder().encodeToString(bytes.array());
  }

  private static int blocks(long length, int block) {
    return (int) ((length + block - 1) / block);
  }

  /** Return the checksums in a footer at the end of these (verified) bytes, which cover just `length` bytes; null if it has none. */
  static BlockChecksums in(byte[] tail, long length) throws IOException {
    int footer = ByteBuffer.wrap(tail, tail.length - ENDING, 4).order(java.nio.ByteOrder.LITTLE_ENDIAN).getInt();
    ByteArrayInputStream stream = new ByteArrayInputStream(tail, tail.length - ENDING - footer, footer);
    Iterable<KeyValue> metadata = Util.readFileMetaData(stream, true).getKey_value_metadata();
    for (KeyValue each : metadata == null ? Arrays.<KeyValue>asList() : metadata) {
      if (each.getKey().equals(KEY)) {
        return parsed(each.getValue(), length);
      }
    }
    return null;
  }

  private static BlockChecksums parsed(String text, long length) throws IOException {
    String[] parts = text.split(":");
    int block = Integer.parseInt(parts[0]);
    ByteBuffer bytes = ByteBuffer.wrap(Base64.getDecoder().decode(parts[2]));
    int[] sums = new int[bytes.remaining() / 4];
    bytes.asIntBuffer().get(sums);
    if (Long.parseLong(parts[1]) != length || sums.length != blocks(length, block)) {
      throw new IOException("its checksums are those of " + parts[1] + " bytes, not of " + length);
    }
    return new BlockChecksums(block, length, sums);
  }

  long start(long place) {
    return place / block * block;
  }

  /** Return where the block ends that the byte before this one lies in. */
  long end(long place) {
    return Math.min(covered, (place + block - 1) / block * block);
  }

  /** Return whether these are the bytes of whole blocks from `start` on. */
  boolean match(long start, byte[] data, int from, int length) {
    CRC32 crc = new CRC32();
    for (int done = 0; done < length; done += block) {
      crc.reset();
      crc.update(data, from + done, Math.min(block, length - done));
      if ((int) crc.getValue() != sums[(int) ((start + done) / block)]) {
        return false;
      }
    }
    return true;
  }
}
