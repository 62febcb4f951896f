package grebe.spark;

import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URI;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.CompletableFuture;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FilterFileSystem;
import org.apache.hadoop.fs.FutureDataInputStreamBuilder;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.impl.OpenFileParameters;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/**
 * A store as a scan of an index sees it: opening a file asks for nothing, its end is fetched once, and every byte is compared with the
 * checksums that were written with it. Of the eight rounds that Parquet's reader takes for a file otherwise (length, length of the
 * footer, footer, indexes of pages, data), two are left. What is written through it is summed up on its way.
 */
public final class IndexFiles extends FilterFileSystem {
  /** The file that this thread is about to open. */
  static final ThreadLocal<Opening> OPENING = new ThreadLocal<>();
  private static final String REAL = "grebe.real.";
  /** Where a request takes its time; elsewhere there is nothing to gain. */
  private static final Set<String> SLOW = new HashSet<>(Arrays.asList("s3", "s3a", "s3n", "gs", "abfs", "abfss", "wasb", "wasbs"));

  /** A file that is read, and what it is compared with. */
  static final class Opening {
    final FileStatus status;
    final FileChecksum expected;
    final boolean verified;

    Opening(FileStatus status, FileChecksum expected, boolean verified) {
      this.status = status;
      this.expected = expected;
      this.verified = verified;
    }
  }

  static boolean worthIt(String scheme) {
    return SLOW.contains(scheme);
  }

  /** In this configuration, which must be that of one scan, files of the scheme are opened through this class. */
  static void openThrough(Configuration configuration, String scheme) {
    for (String setting : settings(scheme)) {
      String value = configuration.get(setting);
      if (value != null) {
        configuration.set(REAL + setting, value);
      }
    }
    configuration.set(settings(scheme)[0], IndexFiles.class.getName());
    // Else it would be the file system of everybody else, or that of everybody else would be taken.
    configuration.set(settings(scheme)[1], "true");
    configuration.setClassLoader(new OfThread());
  }

  private static String[] settings(String scheme) {
    return new String[] {"fs." + scheme + ".impl", "fs." + scheme + ".impl.disable.cache"};
  }

  @Override
  public void initialize(URI name, Configuration configuration) throws IOException {
    Configuration real = new Configuration(configuration);
    real.setClassLoader(Thread.currentThread().getContextClassLoader());
    for (String setting : settings(name.getScheme())) {
      String value = configuration.get(REAL + setting);
      if (value == null) {
        real.unset(setting);
      } else {
        real.set(setting, value);
      }
    }
    setConf(configuration);
    fs = FileSystem.get(name, real);
  }

  @Override
  public FileStatus getFileStatus(Path path) throws IOException {
    Opening told = OPENING.get();
    return isTold(told, path) ? told.status : super.getFileStatus(path);
  }

  @Override
  public FSDataInputStream open(Path path, int buffer) throws IOException {
    return stream(path);
  }

  @Override
  public FutureDataInputStreamBuilder openFile(Path path) throws IOException {
    return createDataInputStreamBuilder(this, path);
  }

  @Override
  protected CompletableFuture<FSDataInputStream> openFileWithOptions(Path path, OpenFileParameters parameters) throws IOException {
    return CompletableFuture.completedFuture(stream(path));
  }

  @Override
  public FSDataOutputStream create(Path path, FsPermission permission, boolean overwrite, int buffer, short replication, long block,
      Progressable progress) throws IOException {
    FSDataOutputStream real = super.create(path, permission, overwrite, buffer, replication, block, progress);
    BlockChecksums written = BlockChecksums.WRITING.get();
    return written == null ? real : new FSDataOutputStream(new Summed(real, written), null);
  }

  /** The real one is everybody's. */
  @Override
  public void close() {}

  private FSDataInputStream stream(Path path) throws IOException {
    Opening told = OPENING.get();
    if (!isTold(told, path)) {
      throw new IOException(path + " is opened, and no scan of an index said how it ends");
    }
    return new FSDataInputStream(new IndexStream(fs, told));
  }

  private static boolean isTold(Opening told, Path path) {
    return told != null && told.status.getPath().equals(path);
  }

  private static final class Summed extends FilterOutputStream {
    private final BlockChecksums sums;

    Summed(OutputStream real, BlockChecksums sums) {
      super(real);
      this.sums = sums;
    }

    @Override
    public void write(int one) throws IOException {
      write(new byte[] {(byte) one}, 0, 1);
    }

    @Override
    public void write(byte[] data, int from, int length) throws IOException {
      sums.update(data, from, length);
      out.write(data, from, length);
    }
  }

  /** Finds this class where the task was found, which is not where the driver has it from. */
  private static final class OfThread extends ClassLoader {
    OfThread() {
      super(null);
    }

    @Override
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
      return Class.forName(name, false, Thread.currentThread().getContextClassLoader());
    }
  }
}
