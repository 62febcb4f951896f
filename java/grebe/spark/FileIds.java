package grebe.spark;

import org.apache.hadoop.fs.Path;

/** The ids of files as they are listed. */
interface FileIds {
  /** Return the id of exactly this file, or -1 if it has none. */
  int idOf(Path path, long size, long time);

  /** Return the id that a file of this name had, whatever it is now, or -1. */
  int idOf(Path path);
}
