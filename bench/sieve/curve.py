"""Sieves of other sizes than the one that is created: made of the same ranges of keys by the same classes, without Spark.

Spark's shuffle would be the same for each of them; what a task does with a range of keys runs here, in a few processes.
"""

import multiprocessing
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from multiprocessing.pool import Pool

import numpy as np
import pyarrow as pa

from bench._session import CORES
from bench.sieve.questions import Column, Kept, Numbers, Question, kept, require_all
from grebe.indexes.kind import FILE_COLUMN
from grebe.indexes.sieving.keys import keys_for
from grebe.indexes.sieving.sieve import Sieve
from grebe.indexes.summary.pieces import KEY, PieceBuilder, opened
from grebe.indexes.summary.shape import PAYLOAD
from grebe.predicate.arrow_types import from_arrow

_ROWS_OF_A_PIECE = 1_250_000


@dataclass(frozen=True)
class Whole:
    """All pieces of a sieve, and the bounds of each file, which its index holds beside them."""

    pieces: Sequence[Sieve]
    lows: Numbers
    highs: Numbers
    bytes: int

    def ask(self, questions: list[Question]) -> Kept:
        counts, seconds = [], []
        for question in questions:
            start = time.perf_counter()
            found = self._files(question)
            seconds.append(time.perf_counter() - start)
            require_all(question, found, "a sieve")
            counts.append(len(found))
        return kept(questions, counts, seconds)

    def _files(self, question: Question) -> set[int]:
        low, high = question.low, question.high
        near = [piece for piece in self.pieces if piece.low <= high and piece.high >= low]
        found = {file for piece in near for file in piece.files([(low, high)]).tolist()}
        return found & set(np.flatnonzero((self.lows <= high) & (self.highs >= low)).tolist())


def processes() -> Pool:
    """To make sieves in."""
    return multiprocessing.get_context("spawn").Pool(CORES)


def sieve(column: Column, budget: float, pool: Pool) -> Whole:
    """With so many bytes for each byte of the column, shared out by pairs of key and file, as the product does."""
    parts = list(_parts(column))
    size = int(budget * 8 * len(column.keys) / len(parts))
    payloads = [one for made in pool.imap(partial(_payloads, size), parts) for one in made]
    return Whole([opened(one, "a piece") for one in payloads], *column.bounds, sum(map(len, payloads)))


def _parts(column: Column) -> Iterator[pa.RecordBatch]:
    """Pairs of one key stay together."""
    order = np.lexsort((column.files, column.keys))
    keys, files = column.keys[order], column.files[order]
    first = np.append(True, (keys[1:] != keys[:-1]) | (files[1:] != files[:-1]))
    keys, files = keys[first], files[first]
    count = max(1, -(-len(column.keys) // _ROWS_OF_A_PIECE))
    firsts = keys[np.linspace(0, len(keys), count, endpoint=False).astype(np.int64)]
    cuts = np.unique(np.append(np.searchsorted(keys, firsts), len(keys)))
    for start, stop in pairwise(cuts.tolist()):
        yield pa.record_batch({KEY: keys[start:stop], FILE_COLUMN: files[start:stop]})


def _payloads(size: int, pairs: pa.RecordBatch) -> list[bytes]:
    keys = keys_for(from_arrow(pa.int64()))
    assert keys is not None
    return [one.as_py() for made in PieceBuilder(0, keys, size)([pairs]) for one in made.column(PAYLOAD)]
