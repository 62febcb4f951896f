"""A copy of some columns, its rows laid out by a tree of cuts that is learned from logged queries.

`spec` is what users make, `logged` the queries that they give; `axes` makes values of any type whole numbers in Spark's order,
`boxes` makes predicates stretches of these, and `workload` arrays of the stretches; `learn` grows the `tree`, `shares` predicts
what queries read by it, and `build` arranges the rows in Spark.
"""
