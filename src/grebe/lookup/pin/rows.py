"""Pinned rows: in blocks of some thousands that know their bounds, so that only blocks that may match are looked at.

Blocks lie one after the other in segments, which are record batches of a memory-mapped file. Every row carries the number of its
file.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from grebe.lookup.pin.keys import Keys
from grebe.predicate.bounds import Bounds, bounds_of, by_bounds
from grebe.predicate.evaluate import Evaluator
from grebe.predicate.tree import Path, Predicate, columns_of
from grebe.predicate.verdicts import Verdict, Verdicts, judge

BLOCK_ROWS = 4_096
_BLOCKS_OF_A_SEGMENT = 64
FILE = "\0file"
"""The column of the numbers of files."""
_FEW_KEYS = 8
"""Rows that are found by key and are more than one in so many are found by their blocks in less time."""

_IN_ONE_GO = 65_536

Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Cuts:
    """How many rows a block has."""

    block: int = field(default_factory=lambda: BLOCK_ROWS)

    @property
    def segment(self) -> int:
        return self.block * _BLOCKS_OF_A_SEGMENT


@dataclass(frozen=True, slots=True)
class PinnedRows:
    """All `segments` but the last have the same number of rows."""

    segments: Sequence[pa.RecordBatch]
    bounds: Mapping[Path, Bounds]
    keys: Sequence[Keys]
    nbytes: int
    cuts: Cuts

    @property
    def count(self) -> int:
        return sum(segment.num_rows for segment in self.segments)

    @property
    def blocks(self) -> int:
        return -(-self.count // self.cuts.block)

    def matching(self, evaluator: Evaluator, names: Sequence[str], files: Flags | None) -> Iterator[pa.Table]:
        """Rows for which the predicate is true, with these columns, and their `FILE`; `files` (None: all) says of which."""
        wanted = list(dict.fromkeys([*names, FILE]))
        for part, flags in self._judged(evaluator, files):
            rows = part.select(wanted)
            if flags is not None:
                rows = rows.filter(pa.array(flags))
            if rows.num_rows:
                yield pa.Table.from_batches([rows])

    def number(self, evaluator: Evaluator, files: Flags | None) -> int:
        """How many rows `matching` has."""
        return sum(
            part.num_rows if flags is None else int(flags.sum()) for part, flags in self._judged(evaluator, files)
        )

    def _judged(self, evaluator: Evaluator, files: Flags | None) -> Iterator[tuple[pa.RecordBatch, Flags | None]]:
        """Rows, and which of them match (None: all)."""
        asked = sorted({path[0] for path in columns_of(evaluator.predicate)}) or [FILE]
        for together in _together(self._parts(evaluator.predicate)):
            unsure = [part.select(asked) for part, surely in together if not surely]
            answers = evaluator.matches(pa.concat_batches(unsure)).to_numpy(zero_copy_only=False) if unsure else None
            start = 0
            for part, surely in together:
                flags: Flags | None = None
                if not surely and answers is not None:
                    flags = answers[start : start + part.num_rows]
                    start += part.num_rows
                if files is not None:
                    own = files[part.column(FILE).to_numpy()]
                    flags = own if flags is None else flags & own
                if flags is None or flags.any():
                    yield part, flags

    def _parts(self, predicate: Predicate) -> Iterator[tuple[pa.RecordBatch, bool]]:
        """The rows that may match, and whether they surely do."""
        for keys in self.keys:
            wanted = keys.asked(predicate)
            if wanted is None:
                continue
            rows = keys.rows_of(wanted)
            if len(rows) * _FEW_KEYS <= self.count or len(rows) <= self.cuts.block:
                yield from ((part, False) for part in self._taken(rows))
                return
        verdicts = judge(predicate, self.blocks, self._leaf())
        for first, last, verdict in _runs(verdicts):
            segment, start = divmod(first, _BLOCKS_OF_A_SEGMENT)
            part = self.segments[segment].slice(start * self.cuts.block, (last - first) * self.cuts.block)
            yield part, verdict == Verdict.ALL_MATCH

    def _taken(self, rows: Numbers) -> Iterator[pa.RecordBatch]:
        if not len(rows):
            return
        cuts = np.searchsorted(rows, np.arange(len(self.segments) + 1) * self.cuts.segment)
        for number in np.flatnonzero(np.diff(cuts)).tolist():
            own = rows[cuts[number] : cuts[number + 1]] - number * self.cuts.segment
            segment = self.segments[number]
            # Keys that lie side by side are taken without a copy.
            together = own[-1] - own[0] == len(own) - 1
            yield segment.slice(int(own[0]), len(own)) if together else segment.take(pa.array(own))

    def _leaf(self) -> Callable[[Predicate], Verdicts | None]:
        def leaf(predicate: Predicate) -> Verdicts | None:
            paths = columns_of(predicate)
            known = self.bounds.get(next(iter(paths))) if len(paths) == 1 else None
            return None if known is None else by_bounds(known, predicate)

        return leaf


def _together(parts: Iterable[tuple[pa.RecordBatch, bool]]) -> Iterator[list[tuple[pa.RecordBatch, bool]]]:
    """Small parts are looked at in one go: what it takes to begin is more than what their rows take."""
    some: list[tuple[pa.RecordBatch, bool]] = []
    rows = 0
    for part, surely in parts:
        some.append((part, surely))
        rows += part.num_rows
        if rows >= _IN_ONE_GO:
            yield some
            some, rows = [], 0
    if some:
        yield some


def _runs(verdicts: Verdicts) -> Iterator[tuple[int, int, int]]:
    """Stretches of blocks of one segment with the same verdict, those that may match: from, to, verdict."""
    if not len(verdicts):
        return
    blocks = np.arange(len(verdicts))
    cut = np.concatenate(([True], (verdicts[1:] != verdicts[:-1]) | (blocks[1:] % _BLOCKS_OF_A_SEGMENT == 0)))
    starts = np.flatnonzero(cut)
    for first, last in zip(starts.tolist(), [*starts[1:].tolist(), len(verdicts)], strict=True):
        if verdicts[first] != Verdict.CANNOT_MATCH:
            yield first, last, int(verdicts[first])


def block_bounds(segments: Sequence[pa.RecordBatch], path: Path, rows_each: int) -> Bounds | None:
    """Of the values of a column or field in each block; None if its type has no order that can be trusted."""
    blocks = [
        values.slice(start, rows_each)
        for values in (values_of(segment, path) for segment in segments)
        for start in range(0, len(values), rows_each)
    ]
    if not blocks:
        return None
    kind = blocks[0].type
    ends = [pc.min_max(block) for block in blocks]
    rows = np.array([len(block) for block in blocks], np.int64)
    nulls = np.array([block.null_count for block in blocks], np.int64)
    highs = [one["max"] for one in ends]
    if pa.types.is_floating(kind):
        # A NaN is above all numbers, and not among the ends.
        highs = [
            pa.scalar(None, kind) if pc.any(pc.is_nan(block)).as_py() else high
            for block, high in zip(blocks, highs, strict=True)
        ]
    return bounds_of(path, pa.array([one["min"] for one in ends], kind), pa.array(highs, kind), rows, nulls, True)


def values_of(batch: pa.RecordBatch | pa.Table, path: Path) -> pa.Array:
    top = batch.column(path[0])
    return pc.struct_field(top, list(path[1:])) if len(path) > 1 else top
