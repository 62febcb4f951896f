"""Pieces of a sieve, made in Spark's tasks: of the keys of a range, or of pieces that are there already."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from grebe.files import FileIds
from grebe.indexes.content.sealed import sealed, unsealed
from grebe.indexes.kind import FILE_COLUMN
from grebe.indexes.sieving.build import build
from grebe.indexes.sieving.keys import Keys
from grebe.indexes.sieving.sieve import Sieve
from grebe.indexes.sketches.columns import physical
from grebe.indexes.summary.shape import HIGH, LOW, PAYLOAD, SIEVE

KEY = "_grebe_key"
SCHEMA = pa.schema([(SIEVE, pa.int32()), (LOW, pa.int64()), (HIGH, pa.int64()), (PAYLOAD, pa.binary())])
_MOST_PAIRS = 2_000_000
"""In memory at once; more are thinned out first."""
_STRETCHES = 500_000
"""Of a merged piece."""

Codes = npt.NDArray[np.int64]
Files = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class PieceBuilder:
    """Of all keys in one partition."""

    number: int
    keys: Keys
    budget: int
    """Bytes."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        codes: list[Codes] = []
        files: list[Files] = []
        pending = 0
        for batch in batches:
            values = physical(batch.column(KEY), self.keys.type)
            codes.append(self.keys.codes(values))
            files.append(batch.column(FILE_COLUMN).to_numpy().astype(np.uint32))
            pending += len(values)
            if pending > _MOST_PAIRS:
                one, of = _distinct(np.concatenate(codes), np.concatenate(files))
                # What stays is counted as nothing, so that the next thinning waits for as many again.
                codes, files, pending = [one], [of], 0
        if codes:
            all_codes = np.concatenate(codes)
            made = build(all_codes, all_codes, np.concatenate(files), self.budget)
            if made is not None:
                yield piece(self.number, made)


def bytes_of(values: pa.Array) -> int:
    """What these values take, without anything around them."""
    if pa.types.is_large_string(values.type) or pa.types.is_large_binary(values.type):
        offsets = np.frombuffer(values.buffers()[1], np.int64)
        return int(offsets[values.offset + len(values)] - offsets[values.offset])
    width: int = values.type.bit_width
    return len(values) * max(1, width // 8)


def _distinct(codes: Codes, files: Files) -> tuple[Codes, Files]:
    order = np.lexsort((files, codes))
    codes, files = codes[order], files[order]
    first = np.ones(len(codes), np.bool_)
    first[1:] = (codes[1:] != codes[:-1]) | (files[1:] != files[:-1])
    return codes[first], files[first]


def piece(number: int, sieve: Sieve) -> pa.RecordBatch:
    row = {SIEVE: [number], LOW: [sieve.low], HIGH: [sieve.high], PAYLOAD: [sealed(sieve.to_bytes())]}
    return pa.RecordBatch.from_pydict(row, SCHEMA)


def opened(payload: bytes, uri: str) -> Sieve:
    return Sieve.from_bytes(unsealed(payload, uri))


@dataclass(frozen=True, slots=True)
class PieceMerger:
    """Of several runs one: no more bytes than they took, and without files that are gone."""

    number: int
    left_out: FileIds

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        payloads = [one.as_py() for batch in batches for one in batch.column(PAYLOAD)]
        if not payloads:
            return
        parts = [opened(one, "a piece of the sieve").triples() for one in payloads]
        lows, highs, files = (np.concatenate([part[side] for part in parts]) for side in range(3))
        kept = ~self.left_out.contains(files)
        lows, highs, files = lows[kept], highs[kept], files[kept]
        budget = sum(map(len, payloads))
        for some in _cut(lows, highs):
            own = [lows[some.places], highs[some.places], files[some.places]]
            share = len(some.places) / max(1, len(lows))
            made = build(np.maximum(own[0], some.low), np.minimum(own[1], some.high), own[2], int(budget * share))
            if made is not None:
                yield piece(self.number, made)


@dataclass(frozen=True, slots=True)
class _Cut:
    low: int
    high: int
    places: npt.NDArray[np.int64]


def _cut(lows: Codes, highs: Codes) -> Iterator[_Cut]:
    """Ranges of keys with about as many stretches; one that reaches over a cut belongs to both sides."""
    if not len(lows):
        return
    ordered = np.sort(lows)
    starts = np.unique(ordered[::_STRETCHES])
    least, greatest = int(ordered[0]), int(highs.max())
    for place, start in enumerate(starts.tolist()):
        low = least if place == 0 else start
        high = greatest if place + 1 == len(starts) else int(starts[place + 1]) - 1
        yield _Cut(low, high, np.flatnonzero((lows <= high) & (highs >= low)))
