"""Least and greatest value of a column in each file, how many rows there are, and how many are NULL."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from grebe.formats.parquet_statistics import Statistics
from grebe.indexes.kind import Extreme
from grebe.indexes.sketches.columns import physical, stored_type, subject
from grebe.indexes.sketches.protocol import Judge, OfOneColumn, On
from grebe.predicate.arrow_types import physical_type
from grebe.predicate.bounds import Bounds, by_bounds
from grebe.predicate.tree import Predicate
from grebe.predicate.types import Type
from grebe.predicate.verdicts import Verdicts

_EXACT = Context(prec=80)
_LONGEST = 64
"""Longer text is cut: the lower bound to its beginning, the upper to something above it."""


@dataclass(frozen=True, slots=True)
class Extent:
    """Of some rows: bounds (None: no value, or unknown), counts, and whether the bounds are values themselves."""

    low: Any
    high: Any
    rows: int
    nulls: int
    exact: bool = True


def extent_of(values: pa.Array) -> Extent:
    """In Spark's order: NaN is the greatest number, and -0.0 is 0.0."""
    rows, nulls = len(values), values.null_count
    if rows == nulls:
        return Extent(None, None, rows, nulls)
    if pa.types.is_floating(values.type):
        return Extent(*_floating(values.drop_null().to_numpy(zero_copy_only=False)), rows, nulls)
    ends = pc.min_max(values)
    if pa.types.is_large_string(values.type):
        (low, whole), (high, whole_too) = (_readable(ends[side].as_buffer().to_pybytes()) for side in ("min", "max"))
        return Extent(low, high if whole_too else next_text(high), rows, nulls, whole and whole_too)
    return Extent(ends["min"].as_py(), ends["max"].as_py(), rows, nulls)


def _readable(text: bytes) -> tuple[str, bool]:
    """As far as it is UTF-8, and whether that is all of it: Spark keeps in text whatever bytes it was given."""
    try:
        return text.decode(), True
    except UnicodeDecodeError as broken:
        return text[: broken.start].decode(), False


def _floating(values: npt.NDArray[np.floating[Any]]) -> tuple[float, float]:
    numbers = values[~np.isnan(values)]
    if not len(numbers):
        return float("nan"), float("nan")
    high = float("nan") if len(numbers) < len(values) else float(numbers.max()) + 0.0
    return float(numbers.min()) + 0.0, high


def joined_extents(parts: Sequence[Extent]) -> Extent:
    valued = [part for part in parts if part.rows > part.nulls]
    rows, nulls = sum(part.rows for part in parts), sum(part.nulls for part in parts)
    if not valued:
        return Extent(None, None, rows, nulls)
    return Extent(
        min((part.low for part in valued), key=_in_order),
        None if any(part.high is None for part in valued) else max((part.high for part in valued), key=_in_order),
        rows,
        nulls,
        all(part.exact for part in valued),
    )


def _stored(value: Any, kind: Type) -> Any:
    """Parquet keeps decimals as whole numbers."""
    return Decimal(value).scaleb(-kind.scale, _EXACT) if kind.is_decimal and value is not None else value


def _in_order(value: Any) -> Any:
    """NaN above all numbers."""
    return (value != value, 0.0 if value != value else value) if isinstance(value, float) else value


def cut_below(value: Any) -> Any:
    return value[:_LONGEST] if isinstance(value, str | bytes) else value


def cut_above(value: Any) -> Any:
    """Something not less that is short; None if there is none."""
    if not isinstance(value, str | bytes) or len(value) <= _LONGEST:
        return value
    return next_text(value[:_LONGEST]) if isinstance(value, str) else _next_bytes(value[:_LONGEST])


def next_text(text: str) -> str | None:
    """The least text of at most this length that is greater than all that begin with it. UTF-8 keeps the order of code points."""
    for place in range(len(text) - 1, -1, -1):
        point = ord(text[place]) + 1
        if point <= 0x10FFFF:
            # No character lies between these.
            return text[:place] + chr(0xE000 if 0xD800 <= point <= 0xDFFF else point)
    return None


def _next_bytes(data: bytes) -> bytes | None:
    cut = data.rstrip(b"\xff")
    return cut[:-1] + bytes([cut[-1] + 1]) if cut else None


@dataclass(frozen=True, slots=True)
class MinMax(OfOneColumn):
    """`grebe.MinMax("a")`."""

    sketch: ClassVar[str] = "min_max"

    column: str

    def fields(self, on: Sequence[On]) -> Mapping[str, str]:
        kind = stored_type(on[0].type)
        return {"min": kind, "max": kind, "rows": "long", "nulls": "long", "exact": "boolean"}

    def state(self, on: Sequence[On], values: Sequence[pa.Array]) -> Extent:
        return extent_of(values[0])

    def told(self, on: Sequence[On], known: Statistics, rows: int) -> Extent:
        return Extent(_stored(known.low, on[0].type), _stored(known.high, on[0].type), rows, known.nulls)

    def joined(self, states: Sequence[Extent]) -> Extent:
        return joined_extents(states)

    def row(self, on: Sequence[On], state: Extent) -> Mapping[str, Any]:
        low, high = cut_below(state.low), cut_above(state.high)
        exact = state.exact and low == state.low and (high == state.high or high != high)
        return {"min": low, "max": high, "rows": state.rows, "nulls": state.nulls, "exact": exact}

    def judge(self, on: Sequence[On], stored: Mapping[str, pa.Array]) -> Judge:
        return Extents.of(on[0], stored)

    def helps(self, on: Sequence[On], predicate: Predicate) -> bool:
        return subject(predicate) == on[0].path


@dataclass(frozen=True, slots=True)
class Extents:
    """Of all files."""

    bounds: Bounds
    rows: npt.NDArray[np.int64]
    nulls: npt.NDArray[np.int64]
    exact: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, on: On, stored: Mapping[str, pa.Array]) -> "Extents":
        rows, nulls = (numbers(stored[name]) for name in ("rows", "nulls"))
        low, high = (physical(stored[name], on.type) for name in ("min", "max"))
        known = rows >= 0
        bounds = Bounds(on.path, on.type, low, high, known & (nulls == 0), known & (nulls == rows))
        return cls(bounds, rows, nulls, pc.fill_null(stored["exact"], False).to_numpy(zero_copy_only=False))

    @property
    def nbytes(self) -> int:
        return int(self.bounds.low.nbytes + self.bounds.high.nbytes + 19 * len(self.rows))

    def verdicts(self, predicate: Predicate) -> Verdicts | None:
        return by_bounds(self.bounds, predicate)

    def over(self, files: npt.NDArray[np.bool_]) -> Extreme | None:
        """Of these files together; None where their NULLs are unknown."""
        if (self.nulls[files] < 0).any():
            return None
        nulls, valued = int(self.nulls[files].sum()), files & ~self.bounds.all_null
        if not self.exact[valued].all() or not _is_whole(self.bounds.type):
            return Extreme(nulls)
        ends = (pc.filter(side, pa.array(valued)) for side in (self.bounds.low, self.bounds.high))
        return Extreme(nulls, *(function(side).as_py() for function, side in zip((pc.min, pc.max), ends, strict=True)))


def _is_whole(kind: Type) -> bool:
    """Values that a plan can be given as constants."""
    return kind.is_integral or kind.is_datetime


def numbers(column: pa.Array) -> npt.NDArray[np.int64]:
    """Counts; less than 0 where unknown."""
    return np.asarray(pc.fill_null(column, -1).to_numpy(zero_copy_only=False), np.int64)


@dataclass(frozen=True, slots=True)
class NullCount(OfOneColumn):
    """`grebe.NullCount("a")`: rows and NULLs alone, for IS NULL and IS NOT NULL."""

    sketch: ClassVar[str] = "null_count"

    column: str

    def fields(self, on: Sequence[On]) -> Mapping[str, str]:
        return {"rows": "long", "nulls": "long"}

    def state(self, on: Sequence[On], values: Sequence[pa.Array]) -> tuple[int, int]:
        return len(values[0]), values[0].null_count

    def told(self, on: Sequence[On], known: Statistics, rows: int) -> tuple[int, int]:
        return rows, known.nulls

    def joined(self, states: Sequence[tuple[int, int]]) -> tuple[int, int]:
        return sum(rows for rows, _ in states), sum(nulls for _, nulls in states)

    def row(self, on: Sequence[On], state: tuple[int, int]) -> Mapping[str, Any]:
        return {"rows": state[0], "nulls": state[1]}

    def judge(self, on: Sequence[On], stored: Mapping[str, pa.Array]) -> Judge:
        rows, nulls = (numbers(stored[name]) for name in ("rows", "nulls"))
        unknown = unknown_bounds(on[0].type, len(rows))
        known = rows >= 0
        bounds = Bounds(on[0].path, on[0].type, unknown, unknown, known & (nulls == 0), known & (nulls == rows))
        return Extents(bounds, rows, nulls, np.zeros(len(rows), np.bool_))

    def helps(self, on: Sequence[On], predicate: Predicate) -> bool:
        return subject(predicate) == on[0].path


def unknown_bounds(kind: Type, count: int) -> pa.Array:
    return pa.nulls(count, physical_type(kind))
