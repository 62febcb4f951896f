"""Predicates: what a query asks of its rows, understood once for all index kinds and both engines.

In the order a predicate passes through them:

- `parse` (SQL text, Spark's dialect) and `builder` (`col("a") == 1`) make a `tree`;
- `bind` gives columns their `types` and inserts the casts that Spark would insert (`coercion`), folds constants (`fold`), and makes
  calls of the `functions` that it knows;
- `normalise` brings it to one form, `unwrap` frees columns from casts and functions where that is exact (`inverses`, `prefixes`);
- `weaker` says what else is true of the column where it is not exact, `about` what is said of some columns only;
- `verdicts` names what may be said of a whole file, and combines it through AND, OR and NOT; `bounds` knows it by the least and the
  greatest value;
- `evaluate` applies it to Arrow data exactly as Spark would; `text` writes it as SQL again.
"""
