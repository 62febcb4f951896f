"""What users hold in their hands: `attach(spark)` and `open(path)`, and the verbs of a table, one line each."""
