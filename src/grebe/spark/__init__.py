"""What Grebe does inside Spark, and the Java that Spark needs."""
