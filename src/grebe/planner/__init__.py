"""Decides what of a query is answered from which index. Plain data in, plain data out: no Spark here, and no store is read."""
