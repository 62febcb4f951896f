"""Structures tried on a sample of keys: how many files each keeps for a value and for a range of neighbouring values, and how large
it would be for the whole column."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from grebe.indexes.sieving.build import build
from grebe.indexes.sieving.sieve import Sieve

Codes = npt.NDArray[np.int64]
BUDGETS = (0.0025, 0.005, 0.01, 0.015)
"""Shares of the column's bytes that a sieve is tried with."""
_POINTS, _RANGES = 400, 200
_NEIGHBOURS = 200
"""Distinct keys of a range."""
_SEED = 42

Ranges = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Sampled:
    """All (key, file) pairs of some stretches, in the order of keys."""

    stretch: Codes
    codes: Codes
    files: npt.NDArray[np.uint32]
    counts: Codes


@dataclass(frozen=True, slots=True)
class Kept:
    """Mean numbers of files, and the bytes for each byte of the column."""

    point: float
    range: float
    share: float


@dataclass(frozen=True, slots=True)
class Questions:
    points: Ranges
    ranges: Ranges
    truth: Kept


def questions(sample: Sampled) -> Questions:
    """Values that occur, and ranges of neighbouring ones, with the files that really hold them."""
    chooser = np.random.default_rng(_SEED)
    stretches = np.unique(sample.stretch)
    points, ranges, of_points, of_ranges = Ranges(), Ranges(), list[int](), list[int]()
    for stretch in stretches.tolist():
        own = sample.stretch == stretch
        codes, files = sample.codes[own], sample.files[own]
        distinct, starts = np.unique(codes, return_index=True)
        ends = np.append(starts[1:], len(codes))
        for place in chooser.integers(0, len(distinct), -(-_POINTS // len(stretches))).tolist():
            points.append((int(distinct[place]), int(distinct[place])))
            of_points.append(len(np.unique(files[starts[place] : ends[place]])))
        for place in chooser.integers(0, max(1, len(distinct) - _NEIGHBOURS), -(-_RANGES // len(stretches))).tolist():
            last = min(place + _NEIGHBOURS, len(distinct)) - 1
            ranges.append((int(distinct[place]), int(distinct[last])))
            of_ranges.append(len(np.unique(files[starts[place] : ends[last]])))
    return Questions(points, ranges, Kept(float(np.mean(of_points)), float(np.mean(of_ranges)), 0.0))


def asked(questions: Questions, files: Callable[[tuple[int, int]], int], share: float) -> Kept:
    """Of a structure that tells how many files it keeps for a range."""
    means = [float(np.mean([files(one) for one in some])) for some in (questions.points, questions.ranges)]
    return Kept(means[0], means[1], share)


def sieves(sample: Sampled, questions: Questions, width: float) -> Iterator[tuple[float, Kept]]:
    """Sieves of each budget, until one needs no more. `width`: bytes of a value."""
    before, rows = -1, int(sample.counts.sum())
    for budget in BUDGETS:
        made: list[Sieve] = []
        size = 0
        # As in building: bytes by rows, shared out by pairs.
        each = budget * width * rows / max(1, len(sample.codes))
        for stretch in np.unique(sample.stretch).tolist():
            own = sample.stretch == stretch
            codes = sample.codes[own]
            one = build(codes, codes, sample.files[own], int(each * len(codes)))
            if one is not None:
                made.append(one)
                size += len(one.to_bytes())
        if size == before:
            return
        before = size
        yield budget, asked(questions, partial(_kept, made), size / max(1.0, rows * width))


def _kept(pieces: Sequence[Sieve], ends: tuple[int, int]) -> int:
    return sum(len(piece.files([ends])) for piece in pieces if piece.low <= ends[1] and piece.high >= ends[0])
