"""Real servers for tests and benches: S3, HDFS, Azure, a Spark, and a proxy that makes them fail. Not part of the package."""
