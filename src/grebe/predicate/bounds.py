"""What the bounds of a column say of a predicate: for every unit of rows (a file, a chunk of an index) at once, without reading it.

A unit is known by its least and greatest value and by its NULLs. Nothing is claimed that a value unknown to the bounds could belie.
"""

import bisect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from grebe.predicate.arrow_types import from_arrow, physical_type, to_physical
from grebe.predicate.compare import compare
from grebe.predicate.tree import (
    Column,
    Compare,
    In,
    IsNotNull,
    IsNull,
    Literal,
    Not,
    Operator,
    Path,
    Predicate,
    StartsWith,
)
from grebe.predicate.types import Type
from grebe.predicate.verdicts import Verdict, Verdicts, either, same

Numbers: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]

MANY_VALUES = 64
"""An IN of more values than this is judged by its least and greatest only, unless they are whole numbers."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of one column, one value a unit, in the physical form of its type; null where unknown."""

    column: Path
    type: Type
    low: pa.Array
    high: pa.Array
    none_null: Flags
    """Units that surely hold no NULL in this column."""
    all_null: Flags


def bounds_of(
    column: Path, low: pa.Array, high: pa.Array, rows: Numbers, nulls: Numbers, nan_counts: bool = False
) -> Bounds | None:
    """`nulls` is less than 0 where unknown. `nan_counts`: where a NaN may be, `high` is unknown. None if the type has no order that
    can be trusted."""
    kind = from_arrow(low.type)
    if not _has_plain_order(kind):
        return None
    low, high = to_physical(low, kind), to_physical(high, kind)
    if kind.is_floating:
        # A NaN is the greatest number, but most statistics leave it out: there may always be one above such bounds.
        low = pc.if_else(pc.is_nan(low), None, low)
        high = pc.if_else(pc.is_nan(high), None, high) if nan_counts else pa.nulls(len(high), high.type)
    return Bounds(column, kind, low, high, np.asarray(nulls == 0), np.asarray(nulls == rows))


def in_order(bounds: Bounds) -> Bounds:
    """Of units that follow each other in the order of the column: where a greatest value is unknown, the least of the next unit
    is none less. (A NaN is greater than all numbers, so only the last units that hold numbers could hide one.)"""
    following = pa.concat_arrays([bounds.low[1:], pa.nulls(min(1, len(bounds.low)), bounds.low.type)])
    return replace(bounds, high=pc.coalesce(bounds.high, following))


@dataclass(frozen=True, slots=True)
class Stretches:
    """Units in the order of the column, those without any value first: where a value lies is found by halving."""

    first: int
    """The number of the first unit that has values."""
    lows: list[Any]
    highs: list[Any]

    def holding(self, values: list[Any]) -> Iterator[tuple[int, int, int]]:
        """Of values in order: the units between whose bounds some lie, and which of the values (from, to)."""
        if len(values) == 1:
            first = bisect.bisect_left(self.highs, values[0])
            for unit in range(first, bisect.bisect_right(self.lows, values[0], first)):
                yield self.first + unit, 0, 1
            return
        unit = start = 0
        while start < len(values):
            unit = bisect.bisect_left(self.highs, values[start], unit)
            if unit == len(self.highs):
                return
            start = bisect.bisect_left(values, self.lows[unit], start)
            stop = bisect.bisect_right(values, self.highs[unit], start)
            if start < stop:
                yield self.first + unit, start, stop
                # The last of them may go on in the next unit.
                start = stop if unit + 1 == len(self.lows) or self.lows[unit + 1] > values[stop - 1] else stop - 1
            unit += 1


def stretches(bounds: Bounds) -> Stretches | None:
    """Of bounds `in_order`; None where one is unknown, or numbers compare in their own way."""
    first = (
        int(np.argmin(bounds.all_null)) if len(bounds.all_null) and not bounds.all_null.all() else len(bounds.all_null)
    )
    low, high = bounds.low[first:], bounds.high[first:]
    if bounds.type.is_floating or low.null_count or high.null_count:
        return None
    return Stretches(first, low.to_pylist(), high.to_pylist())


def _has_plain_order(kind: Type) -> bool:
    return kind.is_numeric or kind.is_datetime or kind.name in ("string", "binary", "boolean")


def by_bounds(bounds: Bounds, predicate: Predicate) -> Verdicts | None:
    """What is known of a simple predicate; None if nothing is."""
    match predicate:
        case IsNull(Column(path)) if path == bounds.column:
            return named(bounds.none_null, bounds.all_null)
        case IsNotNull(Column(path)) if path == bounds.column:
            return named(bounds.all_null, bounds.none_null)
        case Compare(operator, Column(path, kind), Literal() as value) if path == bounds.column and kind == bounds.type:
            known = value.type == kind and value.value is not None
            return _Judge(bounds).compared(operator, value) if known else None
        case In(Column(path, kind), items) if path == bounds.column and kind == bounds.type:
            values = [item for item in items if isinstance(item, Literal) and item.type == kind]
            known = len(values) == len(items)
            return _Judge(bounds).among([v for v in values if v.value is not None]) if known else None
        case StartsWith(Column(path, kind), text) if path == bounds.column and kind == bounds.type:
            return _Judge(bounds).starting(text)
        case Not(inner):
            return _by_bounds_not(bounds, inner)
    return None


def _by_bounds_not(bounds: Bounds, inner: Predicate) -> Verdicts | None:
    """From what is known of the rows that are not NULL: where the inner predicate is NULL, so is its NOT, but for `<=>`."""
    everywhere = np.ones_like(bounds.none_null)
    known = by_bounds(replace(bounds, none_null=everywhere, all_null=~everywhere), inner)
    if known is None:
        return None
    all_true, none_true = known == Verdict.ALL_MATCH, known == Verdict.CANNOT_MATCH
    match inner:
        case Compare("<=>"):
            return named(all_true & bounds.none_null, none_true | bounds.all_null)
        case In(_, items) if any(isinstance(item, Literal) and item.value is None for item in items):
            return same(Verdict.CANNOT_MATCH, len(known))
        case In() | StartsWith():
            return named(all_true | bounds.all_null, none_true & bounds.none_null)
    return None


def named(cannot: Flags, surely: Flags) -> Verdicts:
    verdicts = np.where(surely, Verdict.ALL_MATCH, Verdict.MUST_READ).astype(np.int8)
    verdicts[cannot] = Verdict.CANNOT_MATCH
    return verdicts


@dataclass(frozen=True, slots=True)
class _Judge:
    """Comparisons with the bounds of every file. An unknown bound gives NULL, which counts as: not known to be so."""

    bounds: Bounds

    def compared(self, operator: Operator, value: Literal) -> Verdicts:
        scalar = pa.scalar(value.value, physical_type(value.type))
        low: Callable[[Operator], Flags] = lambda op: _true(compare(op, self.bounds.low, scalar))  # noqa: E731 - two short names
        high: Callable[[Operator], Flags] = lambda op: _true(compare(op, self.bounds.high, scalar))  # noqa: E731 - as above
        match operator:
            case "=" | "<=>":
                return self._answer(low(">") | high("<"), low("=") & high("="))
            case "<>":
                return self._answer(low("=") & high("="), low(">") | high("<"))
            case "<":
                return self._answer(low(">="), high("<"))
            case "<=":
                return self._answer(low(">"), high("<="))
            case ">":
                return self._answer(high("<="), low(">"))
        return self._answer(high("<"), low(">="))

    def among(self, values: list[Literal]) -> Verdicts:
        """Of the values of an IN that are not NULL."""
        kind = physical_type(self.bounds.type)
        if pa.types.is_integer(kind):
            return self._answer(*self._between(np.sort([int(v.value) for v in values])))  # type: ignore[arg-type]  # integers, by their type
        if len(values) > MANY_VALUES:
            ends = pc.min_max(pa.array([v.value for v in values], kind)) if not self.bounds.type.is_floating else None
            if ends is None:
                return self._answer(None, None)
            return self._answer(
                _true(compare(">", self.bounds.low, ends["max"])) | _true(compare("<", self.bounds.high, ends["min"])),
                None,
            )
        whole = same(Verdict.CANNOT_MATCH, len(self.bounds.low))
        for value in values:
            whole = either(whole, self.compared("=", value))
        return whole

    def _between(self, values: Numbers) -> tuple[Flags, Flags]:
        """Files between whose bounds none of the sorted values lies, and those whose bounds are both one of them."""
        low, high = self.bounds.low, self.bounds.high
        known = low.is_valid().to_numpy(zero_copy_only=False) & high.is_valid().to_numpy(zero_copy_only=False)
        least, most = (pc.fill_null(bound, 0).to_numpy(zero_copy_only=False) for bound in (low, high))
        none = np.searchsorted(values, least, "left") >= np.searchsorted(values, most, "right")
        return np.asarray(known & none), np.asarray(known & ~none & (least == most))

    def starting(self, text: str) -> Verdicts:
        """What starts with a text lies together in the order, with the text itself first."""
        low, high = self.bounds.low, self.bounds.high
        low_starts, high_starts = (_true(pc.starts_with(bound, text)) for bound in (low, high))
        scalar = pa.scalar(text, low.type)
        beyond = _true(compare(">", low, scalar)) & ~low_starts
        return self._answer(beyond | _true(compare("<", high, scalar)), low_starts & high_starts)

    def _answer(self, cannot: Flags | None, surely: Flags | None) -> Verdicts:
        """A row that is NULL matches no comparison."""
        bounds = self.bounds
        never = bounds.all_null if cannot is None else bounds.all_null | cannot
        always = np.zeros_like(bounds.none_null) if surely is None else surely & bounds.none_null
        return named(never, always)


def _true(answers: pa.Array) -> Flags:
    return np.asarray(pc.fill_null(answers, False).to_numpy(zero_copy_only=False), np.bool_)
