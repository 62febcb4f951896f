"""A stored query: tables joined, filtered, and grouped, kept as one row for each group of each file.

`trees` are expressions as Spark understands them, `definition` is what the log remembers, `spec` is what users make, and `build`
derives the rows in Spark. Which queries a view answers is the planner's matter (`planner.views`).
"""
