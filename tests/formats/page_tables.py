"""What the tests of Parquet's pages share: tables of every type with nulls everywhere, files of them in memory, and rows
fetched by pages beside those of a full read."""

import io
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from grebe.formats import DataFile
from grebe.formats.parquet_pages import Dictionaries, MoreNeeded, PageMap, as_stored, want
from grebe.store.counting import Counting
from grebe.store.memory import MemoryStore


def data_of(data: bytes) -> DataFile:
    store = MemoryStore()
    store.put("t.parquet", data)
    return DataFile(Counting(store), "t.parquet", len(data))


def written(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def full_read(data: bytes) -> pa.Table:
    """As `ParquetFormat` reads it before the columns are brought to those of a table."""
    file = pq.ParquetFile(pa.BufferReader(data), coerce_int96_timestamp_unit="us")
    leaves = [file.schema.column(i) for i in range(len(file.schema))]
    return file.read().cast(
        as_stored(file.schema_arrow, {leaf.path for leaf in leaves if leaf.physical_type == "INT96"})
    )


def fetched(
    pages: PageMap,
    file: DataFile,
    rows: Sequence[int],
    names: Sequence[str] | None = None,
    dictionaries: Dictionaries | None = None,
) -> pa.Table:
    ask = want(pages, np.array(rows, np.int64), names, uri=file.uri, dictionaries=dictionaries)
    try:
        return ask.table(file.read_spans(ask.spans))
    except MoreNeeded as more:
        return more.wanted.table(file.read_spans(more.wanted.spans))


def taken(table: pa.Table, rows: Sequence[int]) -> pa.Table:
    return table.take(pa.array(rows, pa.int64()))


def assert_same(found: pa.Table, expected: pa.Table) -> None:
    """Equal, NaN equal to NaN."""
    assert found.schema.equals(expected.schema), found.schema
    if not found.equals(expected):
        for name in expected.column_names:
            assert repr(found[name].to_pylist()) == repr(expected[name].to_pylist()), name
    found.validate(full=True)


def every_type(count: int, seed: int, nulls: float = 0.2) -> pa.Table:
    """All types that Arrow writes, nested ones too; `required` is the one column that is never NULL."""
    rng = np.random.default_rng(seed)

    def below(limit: int) -> int:
        return int(rng.integers(0, limit))

    def some(make: Callable[[], Any], kind: pa.DataType | None = None) -> pa.Array:
        return pa.array([None if rng.random() < nulls else make() for _ in range(count)], kind)

    def few(make: Callable[[], Any], most: int = 4) -> list[Any]:
        return [make() for _ in range(below(most))]

    columns = {
        "flag": some(lambda: below(2) == 1, pa.bool_()),
        **{str(kind): some(lambda: below(100), kind) for kind in _NUMBERS},
        "float": some(rng.random, pa.float32()),
        "double": some(lambda: (float("nan"), -0.0, 0.0, 1e300, rng.random())[below(5)], pa.float64()),
        "text": some(lambda: "ü" * below(40) + str(below(10**6)), pa.string()),
        "word": some(lambda: f"word {below(7)}", pa.string()),
        "uuid": pa.array([f"{below(2**60):036x}" for _ in range(count)], pa.string()),
        "large": some(lambda: "y" * below(30), pa.large_string()),
        "bytes": some(lambda: rng.bytes(below(9)), pa.binary()),
        "fixed": some(lambda: rng.bytes(7), pa.binary(7)),
        "category": some(lambda: f"k{below(5)}", pa.string()).dictionary_encode(),
        **{f"decimal {digits}": some(lambda: _decimal(below), pa.decimal128(digits, 2)) for digits in (9, 18, 38)},
        "date": some(lambda: below(30_000) - 9_000, pa.date32()),
        "date64": some(lambda: below(30_000) * 86_400_000, pa.date64()),
        **{f"local {unit}": some(lambda: below(10**9), pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")},
        **{f"instant {unit}": some(lambda: below(10**9), pa.timestamp(unit, "UTC")) for unit in ("ms", "us")},
        "time": some(lambda: below(80_000), pa.time32("ms")),
        "time64": some(lambda: below(80_000), pa.time64("us")),
        "span": some(lambda: below(80_000), pa.duration("us")),
        "nothing": pa.nulls(count),
        "list": some(lambda: few(lambda: below(4) or None), pa.list_(pa.int64())),
        "words": some(lambda: few(lambda: f"s{below(10)}"), pa.list_(pa.string())),
        "pair": some(lambda: [1, below(9)], pa.list_(pa.int16(), 2)),
        "struct": some(lambda: {"a": below(3) or None, "b": {"c": f"q{below(9)}", "e": below(2) == 1}}, _STRUCT),
        "lists": some(lambda: few(lambda: few(lambda: below(9)) or None), pa.list_(pa.list_(pa.int32()))),
        "map": some(lambda: [(f"k{i}", below(3) or None) for i in range(below(4))], pa.map_(pa.string(), pa.int64())),
        "deep": some(lambda: few(lambda: {"x": below(5), "y": few(lambda: str(below(3))) or None}), _DEEP),
    }
    table = pa.table(columns)
    required = pa.array(rng.integers(-(2**62), 2**62, count))
    return table.append_column(pa.field("required", pa.int64(), nullable=False), required)


def _decimal(below: Callable[[int], int]) -> Decimal:
    return Decimal(below(10**8) - 5 * 10**7).scaleb(-2)


_NUMBERS = (*(pa.int8(), pa.int16(), pa.int32(), pa.int64()), *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()))
_STRUCT = pa.struct({"a": pa.int64(), "b": pa.struct({"c": pa.string(), "e": pa.bool_()})})
_DEEP = pa.list_(pa.struct({"x": pa.int64(), "y": pa.list_(pa.string())}))
