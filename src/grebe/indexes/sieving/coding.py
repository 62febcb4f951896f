"""The bytes of a tree of blocks: from the root down, which files of a block are in its lower half, its upper half, or both.

A block's files are among those of the block around it, and few choices are left for each, so that a set costs a few bits where
a list of files would cost bytes. Levels follow one another from the root down, blocks of a level in the order of keys; a block with
one file is never parted and takes nothing. A block of two to five files is one byte: 0 if it is not parted, else one more than the
choices as digits to base three. A larger one is a byte that says whether it is parted, and its choices lie five a byte elsewhere.
The bytes of blocks with equally many files are compressed together, as they are alike.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grebe.indexes.sieving.bits import bit_length, pointers_of, spread

BOTH, LOWER, UPPER = 0, 1, 2
_JOINT = 5  # choices that fit one byte
_POWERS = 3 ** np.arange(_JOINT, dtype=np.int64)
_HIGHEST_LEVEL = 64
_STREAMS = _JOINT + 1  # one for each number of files from two on, one for larger blocks, one for their choices


@dataclass(frozen=True, slots=True)
class Leaves:
    """Disjoint blocks in order, and the files of each, sorted."""

    starts: NDArray[np.uint64]
    levels: NDArray[np.uint8]
    pointers: NDArray[np.int64]
    files: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Level:
    """Blocks of one level in order. Choices of blocks that are not parted mean nothing."""

    places: NDArray[np.uint64]
    parted: NDArray[np.bool_]
    sizes: NDArray[np.int64]
    files: NDArray[np.int64]
    choices: NDArray[np.int64]


def root_level(leaves: Leaves) -> int:
    if len(leaves.starts) == 1:
        return int(leaves.levels[0])
    return int(bit_length(leaves.starts[:1] ^ leaves.starts[-1:])[0])


def encode(leaves: Leaves, count: int) -> list[bytes]:
    """`count` is the number of files of all leaves."""
    streams: list[list[NDArray[np.uint8]]] = [[] for _ in range(_STREAMS)]
    choices: list[NDArray[np.int64]] = []
    for level in reversed(list(_levels(leaves, count))):
        for size in range(2, _JOINT + 1):
            alike = level.sizes == size
            digits = level.choices[np.repeat(alike, level.sizes)].reshape(-1, size)
            codes = np.where(level.parted[alike], 1 + digits @ _POWERS[:size], 0)
            streams[size - 2].append(codes.astype(np.uint8))
        large = level.sizes > _JOINT
        streams[_JOINT - 1].append(level.parted[large].astype(np.uint8))
        choices.append(level.choices[np.repeat(large & level.parted, level.sizes)])
    streams[_JOINT].append(_five_a_byte(np.concatenate(choices)))
    return [np.concatenate(stream).tobytes() for stream in streams]


def _levels(leaves: Leaves, count: int) -> Iterator[_Level]:
    """From the leaves up to the root: the files of a block are those of its halves."""
    none = np.zeros(0, np.int64)
    above = _Level(none.astype(np.uint64), none.astype(np.bool_), none, none, none)
    sizes = np.diff(leaves.pointers)
    root = root_level(leaves)
    for level in range(int(leaves.levels.min()), root + 1):
        mine = np.flatnonzero(leaves.levels == level)
        held = leaves.files[spread(leaves.pointers[mine], sizes[mine])]
        ends = _Level(_shifted(leaves.starts[mine], level), np.zeros(len(mine), np.bool_), sizes[mine], held, held * 0)
        here = _woven(above, ends)
        yield here
        if level < root:
            above = _around(here, count)


def _woven(one: _Level, other: _Level) -> _Level:
    if not len(one.places) or not len(other.places):
        return one if len(one.places) else other
    places = np.concatenate((one.places, other.places))
    sizes = np.concatenate((one.sizes, other.sizes))
    order = np.argsort(places)
    entries = spread(pointers_of(sizes)[order], sizes[order])
    return _Level(
        places[order],
        np.concatenate((one.parted, other.parted))[order],
        sizes[order],
        np.concatenate((one.files, other.files))[entries],
        np.concatenate((one.choices, other.choices))[entries],
    )


def _around(level: _Level, count: int) -> _Level:
    """The blocks that hold those of a level as halves."""
    outer = level.places >> np.uint64(1)
    new = np.concatenate(([True], outer[1:] != outer[:-1]))
    number = np.cumsum(new) - 1
    upper = (level.places & np.uint64(1)).astype(np.int64)
    entries = (np.repeat(number, level.sizes) * count + level.files) * 2 + np.repeat(upper, level.sizes)
    entries.sort()
    held = entries >> 1
    twice = np.concatenate((held[1:] == held[:-1], [False]))
    once = np.concatenate(([True], ~twice[:-1]))
    choices = np.where(twice, BOTH, LOWER + (entries & 1))[once]
    held = held[once]
    sizes = np.bincount(held // count, minlength=int(number[-1]) + 1)
    return _Level(outer[new], np.ones(len(sizes), np.bool_), sizes, held % count, choices)


def decode(streams: list[bytes], root: int, first: int, count: int) -> Leaves:
    """`first` is any key of the root block, `count` the number of files in it. Raises `ValueError` for bytes that were never
    encoded."""
    if root > _HIGHEST_LEVEL or len(streams) != _STREAMS:
        raise ValueError(f"a tree of {root} levels and {len(streams)} streams")
    codes = [np.frombuffer(stream, np.uint8) for stream in streams]
    choices = _one_each(codes[_JOINT])
    read = [0] * (_STREAMS + 1)
    places = np.array([first], np.uint64) >> np.uint64(min(root, 63)) if root < 64 else np.zeros(1, np.uint64)
    sizes, files = np.array([count]), np.arange(count)
    found: list[Leaves] = []
    for level in range(root, -1, -1):
        parted = np.zeros(len(places), np.bool_)
        chosen = np.zeros(len(files), np.int64)
        for stream in range(_JOINT):
            size = stream + 2
            alike = sizes == size if size <= _JOINT else sizes > _JOINT
            wanted = int(alike.sum())
            taken = _next(codes[stream], read[stream], wanted)
            read[stream] += wanted
            parted[alike] = taken > 0
            if size <= _JOINT:
                digits = (taken.astype(np.int64) - 1)[:, None] // _POWERS[:size] % 3
                chosen[np.repeat(alike, sizes)] = digits.ravel()
            else:
                own = np.repeat(alike & parted, sizes)
                wanted = int(own.sum())
                chosen[own] = _next(choices, read[_STREAMS], wanted)
                read[_STREAMS] += wanted
        ended = np.repeat(~parted, sizes)
        starts = _restored(places[~parted], level)
        found.append(Leaves(starts, np.full(len(starts), level, np.uint8), pointers_of(sizes[~parted]), files[ended]))
        if not parted.any():
            return _joined(found)
        places, sizes, files = _halves(places[parted], sizes[parted], files[~ended], chosen[~ended])
    raise ValueError("a tree that does not end")


def _next(values: NDArray[Any], start: int, count: int) -> NDArray[Any]:
    if start + count > len(values):
        raise ValueError("a tree beyond its bytes")
    return values[start : start + count]


def _halves(
    places: NDArray[np.uint64], sizes: NDArray[np.int64], files: NDArray[np.int64], choices: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]:
    number = np.repeat(np.arange(len(places)), sizes)
    lower, upper = choices != UPPER, choices != LOWER
    half = np.concatenate((2 * number[lower], 2 * number[upper] + 1))
    order = np.argsort(half, kind="stable")
    filled = np.bincount(half, minlength=2 * len(places))
    both = np.stack((places << np.uint64(1), (places << np.uint64(1)) | np.uint64(1)), 1).ravel()
    return both[filled > 0], filled[filled > 0], np.concatenate((files[lower], files[upper]))[order]


def _joined(parts: list[Leaves]) -> Leaves:
    starts = np.concatenate([part.starts for part in parts])
    sizes = np.concatenate([np.diff(part.pointers) for part in parts])
    files = np.concatenate([part.files for part in parts])
    order = np.argsort(starts)
    entries = spread(pointers_of(sizes)[order], sizes[order])
    levels = np.concatenate([part.levels for part in parts])
    return Leaves(starts[order], levels[order], pointers_of(sizes[order]), files[entries])


def _shifted(starts: NDArray[np.uint64], level: int) -> NDArray[np.uint64]:
    return starts >> np.uint64(level) if level < 64 else np.zeros_like(starts)


def _restored(places: NDArray[np.uint64], level: int) -> NDArray[np.uint64]:
    return places << np.uint64(level) if level < 64 else np.zeros_like(places)


def _five_a_byte(choices: NDArray[np.int64]) -> NDArray[np.uint8]:
    padded = np.zeros(-(-len(choices) // _JOINT) * _JOINT, np.int64)
    padded[: len(choices)] = choices
    return (padded.reshape(-1, _JOINT) @ _POWERS).astype(np.uint8)


def _one_each(packed: NDArray[np.uint8]) -> NDArray[np.int64]:
    return (packed.astype(np.int64)[:, None] // _POWERS % 3).ravel()
