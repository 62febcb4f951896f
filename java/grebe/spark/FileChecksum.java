package grebe.spark;

import java.io.EOFException;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.Serializable;
import java.util.Arrays;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;

import org.apache.hadoop.fs.Path;

/** What the directory of an index says of one of its files: how long it is, how long its tail, and the tail's digest. */
final class FileChecksum implements Serializable {
  private static final long serialVersionUID = 1;

  final String index;
  final String path;
  final long size;
  final int tail;
  private final byte[] digest;

  private FileChecksum(String index, String path, long size, int tail, byte[] digest) {
    this.index = index;
    this.path = path;
    this.size = size;
    this.tail = tail;
    this.digest = digest;
  }

  /** Parse `size tail digest path`. */
  static FileChecksum parse(String index, String line) {
    String[] parts = line.split(" ", 4);
    byte[] digest = new byte[parts[2].length() / 2];
    for (int i = 0; i < digest.length; i++) {
      digest[i] = (byte) Integer.parseInt(parts[2].substring(2 * i, 2 * i + 2), 16);
    }
    return new FileChecksum(index, new Path(parts[3]).toString(), Long.parseLong(parts[0]), Integer.parseInt(parts[1]), digest);
  }

  /** Return whether the file ends with these bytes. */
  boolean matches(byte[] data) {
    return Arrays.equals(Blake2b.digest(data, data.length - tail, tail, digest.length), digest);
  }

  IOException damaged() {
    return corrupt("DAMAGED", "is damaged", null);
  }

  /** No class of our own: the driver would not find it in a task's result, and lose what it says. */
  private IOException corrupt(String detail, String what, Throwable cause) {
    return new IOException("[CORRUPT_INDEX_" + detail + "] " + path + " of index " + index + " " + what
        + ". The index is not used in this session any more: run the query again; refresh the index with mode='full'", cause);
  }

  /** Return the error to fail with where reading the file failed: ours if the file is gone or too short, else the store's own. */
  IOException failed(Throwable why) {
    Throwable cause = why instanceof ExecutionException || why instanceof CompletionException ? why.getCause() : why;
    if (cause instanceof FileNotFoundException) {
      return corrupt("MISSING", "is missing", cause);
    }
    if (cause instanceof EOFException) {
      return corrupt("DAMAGED", "is too short", cause);
    }
    return cause instanceof IOException ? (IOException) cause : new IOException(cause);
  }
}
