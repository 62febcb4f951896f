"""Bounds of a column of a content file, from the statistics in its footer: exact, or unknown.

Unknown are those that the writer left out (long text), that Grebe cannot trust (INT96, another calendar), and the upper bound of
numbers where a NaN may be: Spark sorts it above all others. The writers of Spark do so too and give it as the greatest value of its
row group; of any other writer no upper bound is believed.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from grebe.formats.parquet_file import CheckedParquet
from grebe.formats.parquet_pages.schema import INT96
from grebe.formats.spark_types import arrow_type, type_json

_LEGACY_CALENDAR = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_DATED = ("date", "timestamp", "timestamp_ntz")
_FLOATING = ("float", "double")
_EXACT = Context(prec=80)
_COUNTS_NAN = re.compile(r"parquet-mr version 1\.1[0-7]\.")
"""Writers of whom a test shows what they say of a NaN."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """`low` and `high` are as Parquet stores them; None: unknown, or there are only NULLs."""

    low: Any = None
    high: Any = None
    nulls: int | None = None


def bounds_of(file: CheckedParquet, column: str, kind: str) -> Bounds:
    metadata, leaves = file.metadata, file.footer.schema.leaves
    leaf = [b".".join(one.path).decode() for one in leaves].index(column)
    groups = None if leaves[leaf].physical == INT96 else file.statistics(leaf)
    if groups is None:
        return Bounds()
    nulls = sum(group.null_count for group in groups)
    valued = [group for group in groups if group.num_values]
    if not valued or any(not group.has_min_max for group in valued) or _other_calendar(metadata, kind):
        return Bounds(nulls=nulls)
    lows, highs = ([_stored(raw, kind) for raw in ends] for ends in _ends(valued))
    if kind in _FLOATING:
        if not _COUNTS_NAN.match(metadata.created_by or ""):
            return Bounds(None if any(map(math.isnan, lows)) else min(lows), None, nulls)
        numbers = [low for low in lows if not math.isnan(low)]
        return Bounds(min(numbers, default=None), None if any(map(math.isnan, highs)) else max(highs), nulls)
    return Bounds(None if None in lows else min(lows), None if None in highs else max(highs), nulls)


def column_of(values: Sequence[Any], kind: str) -> pa.Array:
    """Bounds of several files as a column of the key's own type."""
    wanted = arrow_type(type_json(kind))
    if pa.types.is_date32(wanted):
        return pa.array(values, pa.int32()).cast(wanted)
    if pa.types.is_timestamp(wanted):
        return pa.array(values, pa.int64()).cast(wanted)
    if pa.types.is_decimal(wanted):
        scaled = [None if v is None else Decimal(v).scaleb(-wanted.scale, _EXACT) for v in values]
        return pa.array(scaled, wanted)
    return pa.array(values, wanted)


def _ends(groups: Sequence[pq.Statistics]) -> tuple[list[Any], list[Any]]:
    return [group.min_raw for group in groups], [group.max_raw for group in groups]


def _other_calendar(metadata: pq.FileMetaData, kind: str) -> bool:
    return kind in _DATED and any(key in (metadata.metadata or {}) for key in _LEGACY_CALENDAR)


def _stored(raw: Any, kind: str) -> Any:
    """Text as text, decimals as their unscaled number; None for what is no text."""
    if kind == "string":
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return None
    if kind.startswith("decimal(") and isinstance(raw, bytes):
        return int.from_bytes(raw, "big", signed=True)
    return raw
