"""Rows sorted as a whole, in Spark: DataFrame in, DataFrame out, each partition a range of the first column."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from grebe.indexes.classic import functions
from grebe.indexes.columns import Chosen
from grebe.indexes.content import ranges

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_SAMPLED_PER_PART = 400
_LEAST_SAMPLED, _MOST_SAMPLED = 20_000, 500_000
_MOST_RANGES = 1024
_SEED = 42


def by_range(
    frame: "DataFrame", key: Chosen, others: list[str], parts: int, rows: int, alike: bool = True
) -> tuple["DataFrame", bool]:
    """The rows in so many partitions, each a range of the key. Some of them are read first, for the cuts;
    `others` are columns that tell rows of one key apart; `rows` is how many there may be. Also whether rows of one key had to be
    spread over several partitions. Without `alike`, rows that are the same in key and others count as one."""
    parts = min(parts, _MOST_RANGES)
    cuts = ranges.cuts_of(_sample(frame, key, parts, rows, () if alike else others), parts) if parts > 1 else ()
    if not cuts:
        return frame.repartition(1), False
    constants = [_value(cut.value, key.type) for cut in cuts]
    apart = [column(name) for name in others or [key.content]]
    number = ranges.partition_of(column(key.content), cuts, constants, apart, parts)
    return frame.repartition(parts, number), ranges.spreads(cuts)


def _sample(kept: "DataFrame", key: Chosen, parts: int, rows: int, once: Sequence[str] = ()) -> list[str | None]:
    """Values of the key as text (see `_value`), in its order; those that are the same in these columns once."""
    wanted = max(_LEAST_SAMPLED, parts * _SAMPLED_PER_PART)
    own = column(key.content)
    sampled = kept.select(own, *map(column, once)).sample(min(1.0, wanted / max(1, rows)), seed=_SEED)
    sampled = sampled.dropDuplicates() if once else sampled
    # The limit is there for the case that the number of rows was guessed far too low.
    ordered = sampled.limit(_MOST_SAMPLED).repartition(1).sortWithinPartitions(own)
    return [row[0] for row in ordered.select(_text(own, key.type)).collect()]


def _text(value: "Column", kind: str) -> "Column":
    """A value as text that gives the very same value again, whatever the session's time zone or Python's range of dates."""
    if kind in ("string", "binary"):
        return functions.hex(value.cast("binary"))
    return (functions.unix_micros(value) if kind == "timestamp" else value).cast("string")


def _value(text: str | None, kind: str) -> "Column":
    constant = functions.lit(text)
    if kind in ("string", "binary"):
        return functions.unhex(constant).cast(kind)
    if kind == "timestamp":
        return functions.timestamp_micros(constant.cast("long"))
    return constant.cast(_DDL.get(kind, kind))


# Where Spark's JSON and its SQL name a type differently.
_DDL = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}


def column(name: str) -> "Column":
    """Of the content, by its name."""
    return functions.col(quoted(name))


def quoted(*path: str) -> str:
    return ".".join("`" + name.replace("`", "``") + "`" for name in path)
