"""What the tests of formats share: a file on disk as a data file, its records in plain Python, and Spark's rows to
compare."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from grebe.formats import DataFile, Format, Reading
from grebe.formats.reading import columns_of
from grebe.store.local import LocalStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Row = tuple[Any, ...]


def data_file(path: Path) -> DataFile:
    return DataFile(LocalStore(path.parent), path.name, path.stat().st_size)


def reading_of(
    kind: Format,
    schema: Mapping[str, Any] | DataFile,
    options: Mapping[str, str | bool] | None = None,
    time_zone: str = "UTC",
) -> Reading:
    """With the schema of a DataFrame as JSON, or the one that a file shows."""
    given = options or {}
    complete = kind.options.complete(given)
    columns = kind.columns(schema, complete) if isinstance(schema, DataFile) else columns_of(dict(schema))
    return Reading.of(
        kind.name,
        kind.options.of_reading(given),
        columns,
        time_zone,
        local_times=kind.local_times,
        by_position=kind.by_position,
    )


def all_rows(kind: Format, file: DataFile, reading: Reading, names: Sequence[str] | None = None) -> list[Row]:
    """Every record; asserts on the way that each is found again by its locator, alone and in another order."""
    records, locators = [], []
    for located in kind.read(file, reading, names):
        assert located.records.num_rows == located.locators.num_rows
        assert located.locators.schema.equals(kind.locator.schema)
        records.append(located.records)
        locators.append(located.locators)
    if not records:
        return []
    rows = plain(pa.Table.from_batches(records))
    where = pa.Table.from_batches(locators).combine_chunks().to_batches()[0]
    order = np.random.default_rng(7).permutation(where.num_rows)
    shuffled = where.take(pa.array(order))
    assert plain(kind.fetch(file, reading, shuffled, names)) == [rows[i] for i in order]
    assert plain(kind.fetch(file, reading, shuffled.slice(0, 1), names)) == [rows[order[0]]]
    assert plain(kind.fetch(file, reading, shuffled.slice(0, 0), names)) == []
    return rows


def plain(table: pa.Table) -> list[Row]:
    return [tuple(comparable(value) for value in row.values()) for row in table.to_pylist()]


def spark_rows(frame: "DataFrame") -> list[Row]:
    return [tuple(comparable(value) for value in row) for row in frame.collect()]


def comparable(value: Any) -> Any:
    """NaN equal to NaN, instants in UTC without saying so, maps and structs as Arrow gives them."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    if isinstance(value, bytearray):
        return bytes(value)
    if hasattr(value, "asDict"):
        return {name: comparable(part) for name, part in value.asDict().items()}
    if isinstance(value, dict):
        return {key: comparable(part) for key, part in value.items()}
    if isinstance(value, list):
        if value and all(type(part) is tuple for part in value):
            return {key: comparable(part) for key, part in value}
        return [comparable(part) for part in value]
    return value
