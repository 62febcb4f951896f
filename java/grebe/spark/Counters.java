package grebe.spark;

import java.util.concurrent.atomic.AtomicLong;

/** How often the rule was asked, and what came of it. */
final class Counters {
  final AtomicLong plans = new AtomicLong();
  final AtomicLong asked = new AtomicLong();
  final AtomicLong rewritten = new AtomicLong();
  final AtomicLong failed = new AtomicLong();
  final AtomicLong nanoseconds = new AtomicLong();
  volatile String lastFailure = "";

  /** Whether it is the first of its kind. */
  boolean failure(Throwable problem) {
    failed.incrementAndGet();
    boolean another = !problem.toString().equals(lastFailure);
    lastFailure = problem.toString();
    return another;
  }

  @Override
  public String toString() {
    Json json = new Json().open();
    json.key("plans").number(plans.get()).key("asked").number(asked.get()).key("rewritten").number(rewritten.get());
    return json.key("failed").number(failed.get()).key("nanoseconds").number(nanoseconds.get())
        .key("last_failure").text(lastFailure).close().toString();
  }
}
