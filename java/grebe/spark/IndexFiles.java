package grebe.spark;

import java.io.IOException;
import java.net.URI;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.CompletableFuture;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FilterFileSystem;
import org.apache.hadoop.fs.FutureDataInputStreamBuilder;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.impl.OpenFileParameters;

/**
 * A store as a scan of an index sees it: opening a file asks for nothing, and its end is fetched once. Of the eight rounds that
 * Parquet's reader takes for a file otherwise (length, length of the footer, footer, indexes of pages, data), two are left.
 */
public final class IndexFiles extends FilterFileSystem {
  /** The file that this thread is about to open. */
  static final ThreadLocal<FileStatus> OPENING = new ThreadLocal<>();
  private static final String REAL = "grebe.real.";
  /** Where a request takes its time; elsewhere there is nothing to gain. */
  private static final Set<String> SLOW = new HashSet<>(Arrays.asList("s3", "s3a", "s3n", "gs", "abfs", "abfss", "wasb", "wasbs"));

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
    FileStatus told = told(path);
    return told == null ? super.getFileStatus(path) : told;
  }

  @Override
  public FSDataInputStream open(Path path, int buffer) throws IOException {
    FileStatus told = told(path);
    return told == null ? super.open(path, buffer) : stream(told);
  }

  @Override
  public FutureDataInputStreamBuilder openFile(Path path) throws IOException {
    return told(path) == null ? super.openFile(path) : createDataInputStreamBuilder(this, path);
  }

  @Override
  protected CompletableFuture<FSDataInputStream> openFileWithOptions(Path path, OpenFileParameters parameters) throws IOException {
    FileStatus told = told(path);
    return told == null ? super.openFileWithOptions(path, parameters) : CompletableFuture.completedFuture(stream(told));
  }

  /** The real one is everybody's. */
  @Override
  public void close() {}

  private FSDataInputStream stream(FileStatus file) {
    return new FSDataInputStream(new IndexStream(fs, file));
  }

  private static FileStatus told(Path path) {
    FileStatus told = OPENING.get();
    return told != null && told.getPath().equals(path) ? told : null;
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
