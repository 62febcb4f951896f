package grebe.spark;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.URI;
import java.nio.file.NoSuchFileException;
import java.nio.file.Paths;
import java.nio.file.attribute.FileTime;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;

import org.apache.hadoop.fs.EtagSource;
import org.apache.hadoop.fs.FileStatus;

/**
 * What tells a file from another one of the same name, size and time (`cp -p`, a restore): inode and time of the last change of any
 * kind on a local disk, HDFS' file id, an object store's etag. `grebe.store` makes the same texts.
 */
final class FileFacts {
  private static final int FEW = 256;
  private static final String GONE = "gone";

  private FileFacts() {}

  /**
   * Of files as they are now, or as they were listed where that says it; null where nothing is to be had without a request for each, and for
   * null.
   */
  static String[] of(List<FileStatus> files) {
    String[] facts = new String[files.size()];
    IntStream places = IntStream.range(0, facts.length);
    (facts.length > FEW ? places.parallel() : places).forEach(i -> facts[i] = files.get(i) == null ? null : of(files.get(i)));
    return facts;
  }

  static String of(FileStatus file) {
    URI uri = file.getPath().toUri();
    if (uri.getScheme() == null || uri.getScheme().equals("file")) {
      return local(uri.getPath());
    }
    if (file instanceof EtagSource) {
      String etag = ((EtagSource) file).getEtag();
      return etag == null || etag.isEmpty() ? null : etag.replaceAll("^\"+|\"+$", "");
    }
    // The class is not part of every build of Hadoop.
    return file.getClass().getName().contains(".hdfs.") ? fileId(file) : null;
  }

  private static String local(String path) {
    try {
      Map<String, Object> known = java.nio.file.Files.readAttributes(Paths.get(path), "unix:ino,ctime");
      long changed = ((FileTime) known.get("ctime")).to(TimeUnit.NANOSECONDS);
      return Long.toHexString(((Number) known.get("ino")).longValue()) + "-" + Long.toHexString(changed);
    } catch (NoSuchFileException | FileNotFoundException gone) {
      return GONE; // an index must not answer for it: whoever reads the file says that it is gone
    } catch (IOException | UnsupportedOperationException | IllegalArgumentException none) {
      return null; // no such platform
    }
  }

  private static String fileId(FileStatus file) {
    try {
      return String.valueOf(Reflected.call(file, "getFileId"));
    } catch (RuntimeException none) {
      return null;
    }
  }
}
