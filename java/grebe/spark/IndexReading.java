package grebe.spark;

import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;

import scala.Function1;
import scala.runtime.AbstractFunction1;

/** Parquet as Spark reads it, with fewer tasks and requests: an index's files are small, known in advance, and never change. */
@SuppressWarnings({"rawtypes", "unchecked"})
final class IndexReading extends ParquetFileFormat {
  private static final String WHOLE = "grebe.whole";
  private static final String SCHEME = "grebe.scheme";
  private static final String VERIFIED = "grebe.verified";
  private static final String BOUNDED = "grebe.bounded";
  /** As long as a row group: a second task would read the footer and find nothing to do. */
  private static final long NOT_WORTH_SPLITTING = 32 << 20;

  private final HashMap<String, FileChecksum> expected = new HashMap<>();

  IndexReading(List<FileChecksum> files) {
    files.forEach(file -> expected.put(file.path, file));
  }

  /** What the scan has to know, as options of its relation. */
  static scala.collection.immutable.Map options(List<FileStatus> files, List<String> bounded, boolean verified) {
    Map<String, String> made = new HashMap<>();
    // Files of the user's that are gone may be passed over if he says so; those of an index never, as its rows are the table's.
    made.put("ignoreMissingFiles", "false");
    made.put("ignoreCorruptFiles", "false");
    made.put(BOUNDED, String.join("\n", bounded));
    if (files.stream().allMatch(file -> file.getLen() <= NOT_WORTH_SPLITTING)) {
      made.put(WHOLE, "true");
    }
    String scheme = files.isEmpty() ? null : files.get(0).getPath().toUri().getScheme();
    if (scheme != null && (verified || IndexFiles.worthIt(scheme))) {
      made.put(SCHEME, scheme);
    }
    if (verified) {
      made.put(VERIFIED, "true");
    }
    scala.collection.immutable.Map options = (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.empty();
    for (Map.Entry<String, String> each : made.entrySet()) {
      options = (scala.collection.immutable.Map) options.updated(each.getKey(), each.getValue());
    }
    return options;
  }

  @Override
  public boolean isSplitable(SparkSession session, scala.collection.immutable.Map<String, String> options, Path path) {
    return !options.contains(WHOLE) && super.isSplitable(session, options, path);
  }

  /** Of this and the next, one overrides Spark's: that of its version of Scala. */
  public Function1<PartitionedFile, scala.collection.Iterator<InternalRow>> buildReaderWithPartitionValues(
      SparkSession session, StructType data, StructType partitions, StructType required,
      scala.collection.immutable.Seq<Filter> filters, scala.collection.immutable.Map<String, String> options, Configuration configuration) {
    return reader(Scala.list(filters), options, configuration, session, data, partitions, required, filters, options, configuration);
  }

  public Function1<PartitionedFile, scala.collection.Iterator<InternalRow>> buildReaderWithPartitionValues(
      SparkSession session, StructType data, StructType partitions, StructType required,
      scala.collection.Seq<Filter> filters, scala.collection.immutable.Map<String, String> options, Configuration configuration) {
    return reader(Scala.list(filters), options, configuration, session, data, partitions, required, filters, options, configuration);
  }

  private Function1 reader(List<Filter> filters, scala.collection.immutable.Map<String, String> options,
      Configuration configuration, Object... all) {
    List<String> bounded = Arrays.asList(options.apply(BOUNDED).split("\n"));
    if (filters.stream().allMatch(filter -> bounded.containsAll(Arrays.asList(filter.references())))) {
      // By bounds of pages it is known where rows are; to fetch each column's dictionary before that takes a round each.
      configuration.set("parquet.filter.dictionary.enabled", "false");
    }
    if (options.contains(SCHEME)) {
      IndexFiles.openThrough(configuration, options.apply(SCHEME));
    }
    if (options.contains(VERIFIED)) {
      // Of files that an older release wrote, without checksums of blocks, at least the pages are compared.
      configuration.set("parquet.page.verify-checksum.enabled", "true");
    }
    Function1 read = (Function1) Reflected.call(new ParquetFileFormat(), "buildReaderWithPartitionValues", all);
    return options.contains(SCHEME) ? new Told(read, expected, options.contains(VERIFIED)) : read;
  }

  /** Reads a file of which it is known how long it is and how it ends, so that nobody asks, and everything is compared. */
  private static final class Told extends AbstractFunction1<PartitionedFile, Object> implements java.io.Serializable {
    private final Function1 read;
    private final HashMap<String, FileChecksum> expected;
    private final boolean verified;

    Told(Function1 read, HashMap<String, FileChecksum> expected, boolean verified) {
      this.read = read;
      this.expected = expected;
      this.verified = verified;
    }

    @Override
    public Object apply(PartitionedFile file) {
      FileStatus status = new FileStatus(file.fileSize(), false, 1, file.fileSize(), file.modificationTime(), file.toPath());
      IndexFiles.OPENING.set(new IndexFiles.Opening(status, expected.get(file.toPath().toString()), verified));
      try {
        return read.apply(file);
      } finally {
        IndexFiles.OPENING.remove();
      }
    }
  }
}
