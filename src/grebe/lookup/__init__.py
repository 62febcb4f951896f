"""Lookups without Spark: a predicate, the indexes that help with it, and the few bytes of the table that hold its rows."""
