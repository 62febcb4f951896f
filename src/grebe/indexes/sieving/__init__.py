"""The Sieve's algorithm: from (key, file) pairs to a small map of key stretches to files, in numpy and Arrow alone.

`keys` maps values of a column to int64 in Spark's order, `build` makes a `sieve` of pairs, and its bytes are what an index stores.
Two index kinds share it; Spark, the lake and predicates are their business.
"""
