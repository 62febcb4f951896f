"""Rows sorted as a whole, in Spark: DataFrame in, DataFrame out, each partition a range of the first column."""

from typing import TYPE_CHECKING

from grebe.indexes.classic import functions
from grebe.indexes.columns import Chosen
from grebe.indexes.content import ranges

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_SAMPLED_PER_PART = 400
_LEAST_SAMPLED, _MOST_SAMPLED = 20_000, 500_000
_DISTINCT_SAMPLED = 100_000
"""At most, where no two rows are the same."""
_MOST_RANGES = 1024
_SEED = 42


def by_range(frame: "DataFrame", key: Chosen, others: list[str], parts: int, rows: int) -> tuple["DataFrame", bool]:
    """The rows in so many partitions, each a range of the key. Some of them are read first, for the cuts;
    `others` are columns that tell rows of one key apart; `rows` is how many there may be. Also whether rows of one key had to be
    spread over several partitions."""
    sample = _sample(frame, key, min(parts, _MOST_RANGES), rows) if parts > 1 else []
    return cut_by(sample, frame, key, others, parts)


def cut_by(
    sample: list[str | None], frame: "DataFrame", key: Chosen, others: list[str], parts: int
) -> tuple["DataFrame", bool]:
    """As `by_range`, by a sample of the key in its order."""
    parts = min(parts, _MOST_RANGES)
    cuts = ranges.cuts_of(sample, parts) if parts > 1 else ()
    if not cuts:
        return frame.repartition(1), False
    constants = [_value(cut.value, key.type) for cut in cuts]
    apart = [column(name) for name in others or [key.content]]
    number = ranges.partition_of(column(key.content), cuts, constants, apart, parts)
    return frame.repartition(parts, number), ranges.spreads(cuts)


def _sample(kept: "DataFrame", key: Chosen, parts: int, rows: int) -> list[str | None]:
    """Values of the key as text (see `_value`), in its order."""
    wanted = max(_LEAST_SAMPLED, parts * _SAMPLED_PER_PART)
    own = column(key.content)
    sampled = kept.select(own).sample(min(1.0, wanted / max(1, rows)), seed=_SEED)
    return _in_order(sampled, key)


def distinct_sample(frame: "DataFrame", key: Chosen, others: list[str], rows: int) -> tuple[list[str | None], int]:
    """Keys of a sample of the distinct rows (by key and others), in their order, and about how many of these there are. What many
    rows share is as likely to be taken as what one row has."""
    columns = [column(key.content), *map(column, others)]
    fewer = max(1, rows // _DISTINCT_SAMPLED)
    taken = functions.pmod(functions.xxhash64(*columns), functions.lit(fewer)) == 0
    found = _in_order(frame.select(*columns).where(taken).dropDuplicates(), key)
    return found, len(found) * fewer


def _in_order(sampled: "DataFrame", key: Chosen) -> list[str | None]:
    own = column(key.content)
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
