package grebe.spark;

import java.io.IOException;
import java.io.Serializable;
import java.util.HashMap;
import java.util.regex.Pattern;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkException;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.util.SerializableConfiguration;

/**
 * Reads ranges of files as Spark does, and fails if the file is no longer the one that the ranges were planned for: the rows that an index
 * found may lie elsewhere in another file. The file is compared after it was opened. What is written into it later, while it is read, is not
 * noticed.
 */
@SuppressWarnings({"rawtypes", "unchecked"})
final class UnchangedFileReader extends scala.runtime.AbstractFunction1 implements Serializable {
  private static final long serialVersionUID = 1L;
  private static final String CODE = "SOURCE_CHANGED_FILE_CHANGED: ";
  private static final String CHANGED = " changed after the query was planned";
  /** The path of the file, in the message of a task that failed. */
  static final Pattern MESSAGE = Pattern.compile(CODE + "(.+?)" + CHANGED);
  private final scala.Function1 reader;
  private final Broadcast<SerializableConfiguration> configuration;
  /** Facts of the files that are read in ranges, by path; empty where there are none. */
  private final HashMap<String, String> facts;

  UnchangedFileReader(scala.Function1 reader, Broadcast<SerializableConfiguration> configuration, HashMap<String, String> facts) {
    this.reader = reader;
    this.configuration = configuration;
    this.facts = facts;
  }

  @Override
  public Object apply(Object each) {
    PartitionedFile file = (PartitionedFile) each;
    Object rows = reader.apply(file);
    String fact = facts.get(file.toPath().toString());
    if (fact != null && isChanged(file, fact, configuration.value().value())) {
      // Neither a RuntimeException nor an IOException: with ignoreCorruptFiles Spark would skip the file.
      throw error(file.toPath(), ", and an index names ranges of its bytes");
    }
    return rows;
  }

  static RuntimeException error(Path path, String because) {
    return UnchangedFileReader.<RuntimeException>unchecked(new SparkException(
        CODE + path + CHANGED + because + "; make the DataFrame anew, or run REFRESH TABLE, and run the query again", null));
  }

  private static boolean isChanged(PartitionedFile file, String fact, Configuration configuration) {
    try {
      FileStatus now = file.toPath().getFileSystem(configuration).getFileStatus(file.toPath());
      String facts = FileFacts.of(now);
      return now.getLen() != file.fileSize() || now.getModificationTime() != file.modificationTime()
          || !fact.isEmpty() && facts != null && !fact.equals(facts);
    } catch (IOException gone) {
      return true;
    }
  }

  private static <T extends Throwable> RuntimeException unchecked(Throwable problem) throws T {
    throw (T) problem;
  }
}
