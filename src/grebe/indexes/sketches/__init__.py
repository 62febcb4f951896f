"""What is kept of each file of a table, so that a predicate can leave files out: one small class a sketch."""
