"""How the rows of a covering index shall lie: hash buckets for keys that are looked up and joined on, one order for the others.

Hash buckets by a key with few values would be of very unequal size, and nobody joins on prices or moments; ranges of those are what
queries ask for. So a key of such a type, or with few different values, is sorted as a whole.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from grebe.indexes.columns import Chosen
from grebe.indexes.content.parts import LEAST, parts_for, rows_per_file
from grebe.indexes.content.shape import Shape
from grebe.indexes.kind import FILE_COLUMN, Facts, Layout

_MB = 1024 * 1024
# Buckets come out even if there are many more values than buckets.
_VALUES_PER_BUCKET = 32
_RANGE_TYPES = ("date", "timestamp", "timestamp_ntz", "float", "double")


@dataclass(frozen=True, slots=True)
class Distinct:
    """Of a sample: its rows, the different values of the first key column, and those of all key columns together."""

    rows: int
    first: int
    all: int


@dataclass(frozen=True, slots=True)
class Plan:
    """`parts`: partitions to write. `rows_per_file` cuts those that come out far too large."""

    layout: Layout
    parts: int
    rows_per_file: int
    reason: str


def plan(shape: Shape, facts: Facts, sample: Callable[[], Distinct]) -> Plan:
    """`sample` is taken only if the choice hangs on it."""
    expected = facts.bytes_of([*(column.path for column in shape.columns), (FILE_COLUMN,)])
    most = rows_per_file(expected, facts.rows)
    names = tuple(column.content for column in shape.on)
    if shape.layout is not None:
        # More rows for an index that is there: they lie as the others do.
        parts = shape.layout.buckets or parts_for(expected)
        order = names if not shape.layout.buckets else shape.layout.sort_by
        return Plan(replace(shape.layout, sort_by=order), parts, most, "as before")
    parts = shape.buckets or parts_for(expected)
    why = "asked for" if shape.buckets == 0 else ""
    if shape.buckets is None:
        why = _sorted_because(shape.on[0], parts, sample)
    if why:
        return Plan(Layout(0, (), names), parts, most, f"sorted as a whole: {why}")
    # Also of a small table: what it is joined with is shuffled into as many parts, and must keep every core busy.
    parts = shape.buckets or max(LEAST, parts)
    by, because = _bucket_columns(names, parts, sample)
    asked = "asked for" if shape.buckets else f"about {max(1, expected // _MB):,} MB"
    return Plan(Layout(parts, by, names), parts, most, f"{parts} buckets: {asked}{because}")


def _sorted_because(first: Chosen, parts: int, sample: Callable[[], Distinct]) -> str:
    if _is_measure(first.type):
        return f"{first.name} is {first.type}, which queries ask for by range"
    found = sample()
    if not _selective(found.first, found.rows, parts):
        return f"{first.name} has few values ({found.first:,} in {found.rows:,} sampled rows)"
    return ""


def _bucket_columns(names: tuple[str, ...], parts: int, sample: Callable[[], Distinct]) -> tuple[tuple[str, ...], str]:
    """As few as are selective: buckets by one column also serve joins on that column alone."""
    if len(names) == 1:
        return names, ""
    found = sample()
    if _selective(found.first, found.rows, parts) or found.all < 2 * found.first:
        return names[:1], ""
    return names, f", by all key columns, since {names[0]} alone has few values"


def _selective(values: int, rows: int, parts: int) -> bool:
    return values >= min(_VALUES_PER_BUCKET * parts, rows / 2)


def _is_measure(kind: str) -> bool:
    """Whole numbers are keys, also where a database writes them as decimals."""
    return kind in _RANGE_TYPES or (kind.startswith("decimal(") and not kind.endswith(",0)"))
