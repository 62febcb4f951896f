package grebe.spark;

import java.util.Arrays;

/** BLAKE2b without a key (RFC 7693), which Java does not bring: the digest that Python writes beside index data. */
final class Blake2b {
  private static final int BLOCK = 128;
  private static final int ROUNDS = 12;
  private static final long[] IV = {
    0x6a09e667f3bcc908L, 0xbb67ae8584caa73bL, 0x3c6ef372fe94f82bL, 0xa54ff53a5f1d36f1L,
    0x510e527fade682d1L, 0x9b05688c2b3e6c1fL, 0x1f83d9abfb41bd6bL, 0x5be0cd19137e2179L
  };
  private static final byte[][] SIGMA = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3}
  };

  private final long[] state = IV.clone();
  private final long[] work = new long[16];
  private final long[] message = new long[16];

  private Blake2b() {}

  /** Return the digest of these bytes, of `size` bytes (at most 64). */
  static byte[] digest(byte[] data, int from, int length, int size) {
    Blake2b hash = new Blake2b();
    hash.state[0] ^= 0x01010000L ^ size;
    int done = 0;
    for (; length - done > BLOCK; done += BLOCK) {
      hash.compress(data, from + done, done + BLOCK, false);
    }
    hash.compress(Arrays.copyOf(Arrays.copyOfRange(data, from + done, from + length), BLOCK), 0, length, true);
    byte[] made = new byte[size];
    for (int i = 0; i < size; i++) {
      made[i] = (byte) (hash.state[i >> 3] >>> 8 * (i & 7));
    }
    return made;
  }

  private void compress(byte[] data, int from, long counted, boolean last) {
    for (int i = 0; i < 16; i++) {
      message[i] = word(data, from + 8 * i);
    }
    System.arraycopy(state, 0, work, 0, 8);
    System.arraycopy(IV, 0, work, 8, 8);
    work[12] ^= counted;
    work[14] ^= last ? -1L : 0L;
    for (int round = 0; round < ROUNDS; round++) {
      byte[] order = SIGMA[round];
      mix(0, 4, 8, 12, message[order[0]], message[order[1]]);
      mix(1, 5, 9, 13, message[order[2]], message[order[3]]);
      mix(2, 6, 10, 14, message[order[4]], message[order[5]]);
      mix(3, 7, 11, 15, message[order[6]], message[order[7]]);
      mix(0, 5, 10, 15, message[order[8]], message[order[9]]);
      mix(1, 6, 11, 12, message[order[10]], message[order[11]]);
      mix(2, 7, 8, 13, message[order[12]], message[order[13]]);
      mix(3, 4, 9, 14, message[order[14]], message[order[15]]);
    }
    for (int i = 0; i < 8; i++) {
      state[i] ^= work[i] ^ work[i + 8];
    }
  }

  private static long word(byte[] data, int at) {
    return data[at] & 0xffL | (data[at + 1] & 0xffL) << 8 | (data[at + 2] & 0xffL) << 16 | (data[at + 3] & 0xffL) << 24
        | (data[at + 4] & 0xffL) << 32 | (data[at + 5] & 0xffL) << 40 | (data[at + 6] & 0xffL) << 48 | (data[at + 7] & 0xffL) << 56;
  }

  private void mix(int a, int b, int c, int d, long x, long y) {
    work[a] += work[b] + x;
    work[d] = Long.rotateRight(work[d] ^ work[a], 32);
    work[c] += work[d];
    work[b] = Long.rotateRight(work[b] ^ work[c], 24);
    work[a] += work[b] + y;
    work[d] = Long.rotateRight(work[d] ^ work[a], 16);
    work[c] += work[d];
    work[b] = Long.rotateRight(work[b] ^ work[c], 63);
  }
}
