"""Value to file to record: sorted keys with the place of each row, cut into small chunks that a reader finds without Spark."""
