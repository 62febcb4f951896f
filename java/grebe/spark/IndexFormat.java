package grebe.spark;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl;
import org.apache.parquet.hadoop.ParquetOutputFormat;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.OutputWriter;
import org.apache.spark.sql.execution.datasources.OutputWriterFactory;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;

import scala.runtime.AbstractFunction0;

/** Parquet under a name that other engines take for nothing of theirs, with the task's number where Spark looks for a bucket's. */
@SuppressWarnings({"rawtypes", "unchecked"})
public final class IndexFormat extends ParquetFileFormat {
  @Override
  public OutputWriterFactory prepareWrite(
      SparkSession session, Job job, scala.collection.immutable.Map<String, String> options, StructType schema) {
    OutputWriterFactory parquet = super.prepareWrite(session, job, options, schema);
    // Whatever the session says: INT96 has no bounds, and milliseconds would cut the values off.
    job.getConfiguration().set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS");
    ParquetOutputFormat.setWriteSupportClass(job, IndexWriteSupport.class);
    return new Named(parquet);
  }

  @Override
  public String shortName() {
    return "grebe-index";
  }

  private static final class Named extends OutputWriterFactory {
    private final OutputWriterFactory parquet;

    Named(OutputWriterFactory parquet) {
      this.parquet = parquet;
    }

    @Override
    public String getFileExtension(TaskAttemptContext context) {
      return String.format("_%05d.gix", context.getTaskAttemptID().getTaskID().getId());
    }

    @Override
    public OutputWriter newInstance(String path, StructType schema, TaskAttemptContext context) {
      SQLConf conf = new SQLConf();
      for (Object each : Scala.list(SQLConf.get().getAllConfs())) {
        conf.setConfString((String) ((scala.Tuple2) each)._1(), (String) ((scala.Tuple2) each)._2());
      }
      // Whatever the session says: days as they are, which the bounds of the files are compared by.
      conf.setConfString("spark.sql.parquet.datetimeRebaseModeInWrite", "CORRECTED");
      return (OutputWriter) SQLConf.withExistingConf(conf, new AbstractFunction0<OutputWriter>() {
        @Override
        public OutputWriter apply() {
          return checksummed(path, schema, context);
        }
      });
    }

    /** Only the writer goes through our file system, not those who commit what it wrote. */
    private OutputWriter checksummed(String path, StructType schema, TaskAttemptContext context) {
      Configuration configuration = new Configuration(context.getConfiguration());
      String scheme = new Path(path).toUri().getScheme();
      IndexFiles.openThrough(configuration, scheme == null ? FileSystem.getDefaultUri(configuration).getScheme() : scheme);
      BlockChecksums.WRITING.set(new BlockChecksums());
      try {
        return parquet.newInstance(path, schema, new TaskAttemptContextImpl(configuration, context.getTaskAttemptID()));
      } finally {
        BlockChecksums.WRITING.remove();
      }
    }
  }
}
