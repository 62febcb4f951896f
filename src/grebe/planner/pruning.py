"""Which content files of a copy can hold a row that a predicate lets through.

Two things are known of a file: its bucket, which `=`, IN and IS NULL on the only bucket column narrow down, and the bounds of the
first column sorted by. Each gives a verdict a file for a simple predicate; `judge` carries them through AND, OR and NOT. Nothing is
read, and the work is a few passes over all files at once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from grebe.indexes.kind import Copy
from grebe.planner.content import Bounds, Content, Flags, Numbers, content_of, path_of
from grebe.planner.spark_hash import bucket_of
from grebe.predicate.arrow_types import physical_type
from grebe.predicate.compare import compare
from grebe.predicate.tree import (
    Column,
    Compare,
    In,
    IsNotNull,
    IsNull,
    Literal,
    Operator,
    Path,
    Predicate,
    StartsWith,
)
from grebe.predicate.types import VOID
from grebe.predicate.verdicts import Verdict, Verdicts, both, either, judge, must_read, same

_SINGLE_VALUES = 64
"""An IN of more values than this is judged by its least and greatest only, unless they are whole numbers."""


def files_to_read(copy: Copy, predicate: Predicate, mentions: frozenset[Path]) -> Numbers:
    """Positions in `copy.content`, ascending; `content.everything` itself if none is left out. The predicate is bound and
    normalised, and `mentions` are the columns that it speaks of."""
    content, bucket_column = content_of(copy), _bucket_column(copy)
    known = {bucket_column, content.bounds.column if content.bounds is not None else None}
    if mentions and mentions.isdisjoint(known):
        return content.everything
    leaf = partial(_verdicts, content, content.bounds, bucket_column, copy.layout.buckets)
    kept = np.flatnonzero(must_read(judge(predicate, content.files, leaf)))
    return kept if len(kept) < content.files else content.everything


def _bucket_column(copy: Copy) -> Path | None:
    """The column that alone decides the bucket."""
    by = copy.layout.bucket_by
    return path_of(copy, by[0]) if copy.layout.buckets > 0 and len(by) == 1 else None


def _verdicts(
    content: Content, bounds: Bounds | None, bucket_column: Path | None, buckets: int, predicate: Predicate
) -> Verdicts | None:
    """What is known of a simple predicate; None if nothing is."""
    known = None
    if bucket_column is not None:
        known = _by_bucket(content, bucket_column, buckets, predicate)
    if bounds is not None:
        judged = _by_bounds(bounds, predicate)
        known = judged if known is None else known if judged is None else both(known, judged)
    return known


def _by_bucket(content: Content, column: Path, buckets: int, predicate: Predicate) -> Verdicts | None:
    match predicate:
        case Compare("=" | "<=>", Column(path, kind), Literal() as value) if path == column and kind == value.type:
            values: tuple[Literal, ...] = (value,)
        case In(Column(path, kind), items) if path == column and len(items) <= _SINGLE_VALUES:
            values = tuple(item for item in items if isinstance(item, Literal) and item.type == kind)
            if len(values) < len(items):
                return None
        case IsNull(Column(path)) if path == column:
            values = (Literal(None, VOID),)
        case _:
            return None
    hashed = [bucket_of(value, buckets) for value in values]
    wanted = [one for one in hashed if one is not None]
    if len(wanted) < len(hashed):
        return None
    elsewhere = ~np.isin(content.buckets, [*wanted, -1])
    return _named(elsewhere, np.zeros_like(elsewhere))


def _by_bounds(bounds: Bounds, predicate: Predicate) -> Verdicts | None:
    match predicate:
        case IsNull(Column(path)) if path == bounds.column:
            return _named(bounds.none_null, bounds.all_null)
        case IsNotNull(Column(path)) if path == bounds.column:
            return _named(bounds.all_null, bounds.none_null)
        case Compare(operator, Column(path, kind), Literal() as value) if path == bounds.column and kind == bounds.type:
            known = value.type == kind and value.value is not None
            return _Judge(bounds).compared(operator, value) if known else None
        case In(Column(path, kind), items) if path == bounds.column and kind == bounds.type:
            values = [item for item in items if isinstance(item, Literal) and item.type == kind]
            known = len(values) == len(items)
            return _Judge(bounds).among([v for v in values if v.value is not None]) if known else None
        case StartsWith(Column(path, kind), text) if path == bounds.column and kind == bounds.type:
            return _Judge(bounds).starting(text)
    return None


def _named(cannot: Flags, surely: Flags) -> Verdicts:
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
            return self._answer(self._none_between(np.sort([int(v.value) for v in values])), None)  # type: ignore[arg-type]  # integers, by their type
        if len(values) > _SINGLE_VALUES:
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

    def _none_between(self, values: Numbers) -> Flags:
        """Files between whose bounds none of the sorted values lies."""
        low, high = self.bounds.low, self.bounds.high
        known = low.is_valid().to_numpy(zero_copy_only=False) & high.is_valid().to_numpy(zero_copy_only=False)
        first = np.searchsorted(values, pc.fill_null(low, 0).to_numpy(zero_copy_only=False), "left")
        after = np.searchsorted(values, pc.fill_null(high, 0).to_numpy(zero_copy_only=False), "right")
        return np.asarray(known & (first >= after))

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
        return _named(never, always)


def _true(answers: pa.Array) -> Flags:
    return np.asarray(pc.fill_null(answers, False).to_numpy(zero_copy_only=False), np.bool_)
