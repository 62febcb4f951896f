package grebe.spark;

import java.util.BitSet;

/** Which files of a leaf are registered: ids, those with deleted rows among them, their bytes, and number and bytes of the rest. */
final class Match {
  final Snapshot registered;
  private final int size;
  private final BitSet ids = new BitSet();
  private final BitSet deleted = new BitSet();
  private long known;
  private long others;
  private long otherBytes;
  private boolean twice;
  /** Of the rest, files under whose names others are registered: they were changed since. */
  long changed;
  /** Timestamps of partitions were understood in another zone than the session's. */
  boolean elsewhere;
  /** Some of the rest are listed with other partition values than their paths spell; which of these are registered. */
  private boolean displaced;
  private final BitSet displacedIds = new BitSet();

  Match(Snapshot registered) {
    this.registered = registered;
    this.size = registered.size();
  }

  void file(int id, long bytes, boolean hasDeletes) {
    if (id >= 0) {
      twice |= ids.get(id);
      ids.set(id);
      deleted.set(id, hasDeletes);
      known += bytes;
    } else {
      others++;
      otherBytes += bytes;
    }
  }

  /** Note a file that is listed with other partition values than its path spells; `id` is that of the path, or -1. */
  void displaced(int id) {
    displaced = true;
    if (id >= 0) {
      displacedIds.set(id);
    }
  }

  Json write(Json json, String snapshot) {
    json.open().key("snapshot").text(snapshot).key("registered").number(size);
    json.key("ids").text(Snapshot.ranges(ids)).key("deleted").text(Snapshot.ranges(deleted)).key("bytes").number(known);
    json.key("others").number(others).key("other_bytes").number(otherBytes);
    json.key("changed").number(changed);
    json.key("elsewhere").truth(elsewhere);
    json.key("displaced").truth(displaced);
    // Such a file is read twice; an index has its rows once.
    return json.key("twice").truth(twice || ids.intersects(displacedIds)).close();
  }
}
