package grebe.spark;

import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;

import org.apache.spark.sql.execution.datasources.FileIndex;

/**
 * When the files of a listing were last known to be as they are listed. A frame keeps its listing for as long as it lives, and queries plan by
 * it: where a store must be listed to see a change, planning lists again once the listing is older than `holdsNanos`.
 */
final class ListingTimes {
  /** So long a listing of a store holds that tells changes by listings alone. */
  static volatile long holdsNanos = 30_000_000_000L;
  private static final List<Entry> ENTRIES = new ArrayList<>();

  private ListingTimes() {}

  private static final class Entry {
    final WeakReference<FileIndex> files;
    long comparedAt = System.nanoTime();

    Entry(FileIndex files) {
      this.files = new WeakReference<>(files);
    }
  }

  /** Return when a listing was last compared; of one that was never met, now: its frame was made a moment ago. */
  static synchronized long comparedAt(FileIndex files) {
    return entry(files).comparedAt;
  }

  static boolean isOld(FileIndex files) {
    return System.nanoTime() - comparedAt(files) >= holdsNanos;
  }

  /** Note that the files of a listing were as listed at this moment. */
  static synchronized void compared(FileIndex files, long nanos) {
    entry(files).comparedAt = nanos;
  }

  /** Listings are told apart by identity: Spark's own equality goes by their roots. */
  private static Entry entry(FileIndex files) {
    Entry found = null;
    for (Iterator<Entry> each = ENTRIES.iterator(); each.hasNext();) {
      Entry entry = each.next();
      FileIndex other = entry.files.get();
      if (other == null) {
        each.remove();
      } else if (other == files) {
        found = entry;
      }
    }
    if (found == null) {
      found = new Entry(files);
      ENTRIES.add(found);
    }
    return found;
  }
}
