"""A copy of some columns, its rows along a curve through several of them, for ranges of any of these.

`spec` is what users make, `ranks` makes every column a small number by a sample, `curve` knows the curves, `build` arranges the
rows in Spark.
"""
