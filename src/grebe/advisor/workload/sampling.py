"""Rows of a table at random, without Spark: from a few of its files, each read as a whole."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from grebe.clock import SYSTEM, Clock
from grebe.lookup.engine import Engine

_FILES = 8
_ROWS = 50_000


def sampled(
    engine: Engine, columns: Sequence[str], clock: Clock = SYSTEM, files: int = _FILES, rows: int = _ROWS
) -> tuple[pa.Table, int]:
    """At most so many rows with these columns, and about how many rows the table has: exactly, where all of its files are read.

    Rows of one file are often alike; from more files the sample is better, and dearer."""
    chance = np.random.default_rng(int(clock.random() * 2**53))
    sizes = engine.snapshot.files.table["size"].to_numpy()
    chosen = np.sort(chance.permutation(len(sizes))[:files])
    empty = pa.schema([engine.snapshot.reading.schema.field(name) for name in columns]).empty_table()
    parts = [part.select(list(columns)) for at in chosen.tolist() for part, _ in engine.read(at, None, columns, {})]
    read = pa.concat_tables([empty, *(part.cast(empty.schema) for part in parts)])
    share = float(sizes[chosen].sum() / max(int(sizes.sum()), 1)) or 1.0
    whole = len(chosen) == len(sizes)
    kept = read.take(np.sort(chance.permutation(read.num_rows)[:rows]))
    return kept, read.num_rows if whole else round(read.num_rows / share)
