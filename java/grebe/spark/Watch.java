package grebe.spark;

import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.util.QueryExecutionListener;

/** Hears how queries end: how long they took, and whether one failed on a file of an index, which is then set aside. */
final class Watch implements QueryExecutionListener {
  private static final Pattern INDEX_FILE = Pattern.compile("[a-z0-9]+:/[^\\s,'\"]+\\.gix");
  private final Bridge bridge;
  private final Map<QueryExecution, Long> took = Collections.synchronizedMap(new WeakHashMap<>());

  Watch(Bridge bridge) {
    this.bridge = bridge;
  }

  long milliseconds(QueryExecution query) {
    return took.getOrDefault(query, -1L);
  }

  @Override
  public void onSuccess(String action, QueryExecution query, long nanoseconds) {
    took.put(query, nanoseconds / 1_000_000);
  }

  @Override
  public void onFailure(String action, QueryExecution query, Exception exception) {
    for (Throwable at = exception; at != null; at = at.getCause()) {
      Matcher path = INDEX_FILE.matcher(String.valueOf(at.getMessage()));
      if (path.find()) {
        bridge.lost(path.group());
        return;
      }
    }
  }
}
