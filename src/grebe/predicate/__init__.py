"""Predicates: what a query asks of its rows, understood once for all index kinds and both engines.

In the order a predicate passes through them:

- `parse` (SQL text, Spark's dialect) and `builder` (`col("a") == 1`) make a `tree`;
- `bind` gives columns their `types` and inserts the casts that Spark would insert (`coercion`), then folds constants (`fold`);
- `normalise` brings it to one form, `unwrap` frees columns from casts where that is exact;
- `verdicts` names what may be said of a whole file, and combines it through AND, OR and NOT;
- `evaluate` applies it to Arrow data exactly as Spark would; `text` writes it as SQL again.
"""
