package grebe.spark;

import java.util.Arrays;
import java.util.List;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
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
  private static final String BOUNDED = "grebe.bounded";
  /** As long as a row group: a second task would read the footer and find nothing to do. */
  private static final long NOT_WORTH_SPLITTING = 32 << 20;

  /** What the scan has to know, as options of its relation. */
  static scala.collection.immutable.Map options(
      scala.collection.immutable.Map others, List<FileStatus> files, List<String> bounded, SparkContext context) {
    scala.collection.immutable.Map made = (scala.collection.immutable.Map) others.updated(BOUNDED, String.join("\n", bounded));
    if (files.stream().allMatch(file -> file.getLen() <= NOT_WORTH_SPLITTING)) {
      made = (scala.collection.immutable.Map) made.updated(WHOLE, "true");
    }
    String scheme = files.isEmpty() ? null : files.get(0).getPath().toUri().getScheme();
    return IndexFiles.worthIt(scheme) && executorsHaveUs(context)
        ? (scala.collection.immutable.Map) made.updated(SCHEME, scheme) : made;
  }

  /** Not where somebody put us on the driver's class path alone. */
  private static boolean executorsHaveUs(SparkContext context) {
    return context.isLocal() || Scala.<String>list(context.listJars()).stream().anyMatch(jar -> jar.contains("grebe-spark"));
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

  private static Function1 reader(List<Filter> filters, scala.collection.immutable.Map<String, String> options,
      Configuration configuration, Object... all) {
    List<String> bounded = Arrays.asList(options.apply(BOUNDED).split("\n"));
    if (filters.stream().allMatch(filter -> bounded.containsAll(Arrays.asList(filter.references())))) {
      // By bounds of pages it is known where rows are; to fetch each column's dictionary before that takes a round each.
      configuration.set("parquet.filter.dictionary.enabled", "false");
    }
    if (options.contains(SCHEME)) {
      IndexFiles.openThrough(configuration, options.apply(SCHEME));
    }
    Function1 read = (Function1) Reflected.call(new ParquetFileFormat(), "buildReaderWithPartitionValues", all);
    return options.contains(SCHEME) ? new Told(read) : read;
  }

  /** Reads a file whose length is known, so that nobody asks for it. */
  private static final class Told extends AbstractFunction1<PartitionedFile, Object> implements java.io.Serializable {
    private final Function1 read;

    Told(Function1 read) {
      this.read = read;
    }

    @Override
    public Object apply(PartitionedFile file) {
      IndexFiles.OPENING.set(new FileStatus(file.fileSize(), false, 1, file.fileSize(), file.modificationTime(), file.toPath()));
      try {
        return read.apply(file);
      } finally {
        IndexFiles.OPENING.remove();
      }
    }
  }
}
