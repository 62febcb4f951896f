package grebe.spark;

import java.util.Collections;

import org.apache.spark.sql.execution.datasources.parquet.ParquetWriteSupport;

/** Spark's own, which adds the checksums of all blocks to the footer once everything before it is written. */
public final class IndexWriteSupport extends ParquetWriteSupport {
  private final BlockChecksums written = BlockChecksums.WRITING.get();

  @Override
  public FinalizedWriteContext finalizeWrite() {
    return written == null
        ? super.finalizeWrite() : new FinalizedWriteContext(Collections.singletonMap(BlockChecksums.KEY, written.text()));
  }
}
