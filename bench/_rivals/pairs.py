"""What a key-value store is filled with: keys of a table, and for each where its row lies, or some of its columns."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def files_of(source: str) -> list[Path]:
    return sorted(Path(source).glob("*.parquet"))


def located(source: str, key: str, limit: int | None = None) -> Iterator[pa.Table]:
    """Of each file the keys, and the number of the file and of the row in one integer."""
    left = limit
    for number, file in enumerate(files_of(source)):
        keys = pq.read_table(file, columns=[key])[key][:left]
        yield pa.table({"key": keys, "value": (number << 32) + np.arange(len(keys))})
        if left is not None:
            left -= len(keys)
            if left == 0:
                return


def rows(source: str, key: str, columns: list[str]) -> Iterator[tuple[list[int], list[str]]]:
    """Of each file the keys, and these columns of each row as JSON."""
    for file in files_of(source):
        table = pq.read_table(file, columns=list(dict.fromkeys([key, *columns])))
        values = zip(*(table[column].to_pylist() for column in columns), strict=True)
        yield table[key].to_pylist(), [json.dumps(value) for value in values]
