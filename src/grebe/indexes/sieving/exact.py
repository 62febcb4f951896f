"""Exact sieves: runs of neighbouring keys that are in the same files. What lies between two runs is in no file.

How often the set of files changes is what a sieve has to tell, however many keys there are: sorted keys change it once a file. Sets
are compared by the sum of a hash of each file. Should two sets ever share it, their keys become one run with the files of both.
"""

import numpy as np
from numpy.typing import NDArray

from grebe.indexes.sieving.bits import pointers_of, spread
from grebe.indexes.sieving.gaps import NO_GAPS, SECTIONS, filled, gap_sections
from grebe.indexes.sieving.packing import pack, pack_numbers, unpack_numbers
from grebe.indexes.sieving.pairs import Pairs
from grebe.indexes.sieving.stretches import Stretches

_BYTES_A_RUN = 2  # fewer are not reached


def exact_sections(pairs: Pairs, budget: int) -> list[bytes] | None:
    """None where they do not fit."""
    atoms, atom_ends, hashes = _keys(pairs) if pairs.single else _sweep(pairs)
    new = np.flatnonzero(np.concatenate(([True], hashes[1:] != hashes[:-1])))
    if len(new) * _BYTES_A_RUN > budget:
        return None
    starts, ends = atoms[new], atom_ends[np.concatenate((new[1:], [len(atoms)])) - 1]
    first = np.searchsorted(ends, pairs.lows)
    count = np.searchsorted(starts, pairs.highs, "right") - first
    if int(count.sum()) > max(len(pairs.lows), budget * 8):
        return None
    files = len(pairs.ids)
    held = np.unique(spread(first, count) * files + np.repeat(pairs.files, count))
    between = starts - np.append(starts[0], ends[:-1])
    runs = [
        pack_numbers(between),
        pack_numbers(ends - starts),
        pack_numbers(np.bincount(held // files, minlength=len(starts)).astype(np.uint64)),
        pack_numbers((held % files).astype(np.uint64)),
    ]
    room = budget - len(pack(runs))
    if room < len(pack(NO_GAPS)):
        return None
    # What lies between runs is told by their ends.
    inside = hashes[1:] == hashes[:-1]
    return gap_sections(int(starts[0]), atom_ends[:-1][inside], atoms[1:][inside], room) + runs


def exact_stretches(sections: list[bytes], low: int, high: int) -> Stretches:
    first, second, third, fourth = sections[SECTIONS:]
    # Each run has a file, so that their number is told by bytes; runs of one file have as many.
    sizes = unpack_numbers(third)
    between, lengths, files = (unpack_numbers(section, len(sizes)) for section in (first, second, fourth))
    if not len(sizes) == len(between) == len(lengths) or sizes.max(initial=0) > len(files):
        raise ValueError("runs that do not fit together")
    starts = np.uint64(low) + np.cumsum(between) + np.cumsum(lengths) - lengths
    found = Stretches(starts, starts + lengths, pointers_of(sizes.astype(np.int64)), files.astype(np.int64))
    return found.checked().within(*filled(sections[:SECTIONS], low, high))


def _keys(pairs: Pairs) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64]]:
    new = np.flatnonzero(np.concatenate(([True], pairs.lows[1:] != pairs.lows[:-1])))
    return pairs.lows[new], pairs.lows[new], np.add.reduceat(_mixed(pairs.files), new)


def _sweep(pairs: Pairs) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64]]:
    """Stretches with one set of files each, from those where a single file begins and ends."""
    places = np.concatenate((pairs.lows, pairs.highs))
    closing = np.repeat([False, True], len(pairs.lows))
    order = np.lexsort((closing, places))
    places, closing = places[order], closing[order]
    hashes = np.tile(_mixed(pairs.files), 2)[order]
    # Sums wrap around, and come back to what they were.
    sums = np.cumsum(np.where(closing, -hashes, hashes))
    held = np.cumsum(np.where(closing, -1, 1))
    last = np.concatenate(((places[1:] != places[:-1]) | (closing[1:] != closing[:-1]), [False]))
    at = np.flatnonzero(last)
    starts = places[at] + closing[at].astype(np.uint64)
    ends = places[at + 1] - (~closing[at + 1]).astype(np.uint64)
    filled = (held[at] > 0) & (starts <= ends)
    return starts[filled], ends[filled], sums[at][filled]


def _mixed(files: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A hash of each number, after the finalizer of splitmix64."""
    word = (files.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))
