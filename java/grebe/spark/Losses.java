package grebe.spark;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.apache.hadoop.fs.Path;
import org.apache.spark.TaskFailedReason;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;

/**
 * Hears of tasks that fail on a file of an index, which is then set aside, or on a data file that changed, which no index covers from then on;
 * whatever started them, a query or an RDD's own job.
 */
final class Losses extends SparkListener {
  /** The name alone: how messages write the folders differs, with escapes and without. */
  private static final Pattern INDEX_FILE = Pattern.compile("part-[\\w-]+\\.gix");
  private final Bridge bridge;

  Losses(Bridge bridge) {
    this.bridge = bridge;
  }

  @Override
  public void onTaskEnd(SparkListenerTaskEnd end) {
    if (end.reason() instanceof TaskFailedReason) {
      String message = ((TaskFailedReason) end.reason()).toErrorString();
      Matcher changed = UnchangedFileReader.MESSAGE.matcher(message);
      if (changed.find()) {
        // A session may go on listing the file as it was: object stores give the listed etag, not that of now.
        Path data = new Path(changed.group(1));
        bridge.snapshots.values().forEach(registered -> registered.setChanged(data));
      }
      Matcher file = INDEX_FILE.matcher(message);
      Path path = file.find() ? bridge.contents.named(file.group()) : null;
      if (path != null) {
        bridge.lost(path);
      }
    }
  }
}
