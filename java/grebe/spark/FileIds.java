package grebe.spark;

import org.apache.hadoop.fs.Path;

/** The ids of files as they are listed. */
interface FileIds {
  /** Return the id of exactly this file, or -1 if it has none. */
  int idOf(Path path, long size, long time);
}
