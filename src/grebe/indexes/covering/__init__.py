"""A copy of some columns, laid out for filters, joins and groupings: hash-bucketed by the key, or sorted by it as a whole.

`spec` is what users make, `layout` chooses buckets or order, `build` arranges the rows in Spark, `directory` describes what was
written, and `probe` offers it to the planner.
"""
