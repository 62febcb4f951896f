"""Tests of the planner: no Spark, no store."""
