package grebe.spark;

import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;

import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.util.QueryExecutionListener;

/** Hears how long queries took. */
final class Watch implements QueryExecutionListener {
  private final Ran ran;
  private final Map<QueryExecution, Long> took = Collections.synchronizedMap(new WeakHashMap<>());

  Watch(Ran ran) {
    this.ran = ran;
  }

  long milliseconds(QueryExecution query) {
    return took.getOrDefault(query, -1L);
  }

  @Override
  public void onSuccess(String action, QueryExecution query, long nanoseconds) {
    took.put(query, nanoseconds / 1_000_000);
    ran.tell(query, nanoseconds);
  }

  @Override
  public void onFailure(String action, QueryExecution query, Exception exception) {}
}
