"""Sorting as a whole without reading everything twice: cuts from a sample of the key, and rows sent to partitions by them.

Spark's own range partitioning runs the whole plan once more just to sample it. Here the sample reads the key column alone, and each
row's partition is computed by a tree of comparisons. Spark partitions by the hash of a number, so each partition is named by a
number whose hash lands there.

A value that fills several partitions by itself is cut in the sample as often; its rows are spread over those partitions by the hash
of their other columns (the same in every attempt of a task), so that no partition gets all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from grebe.indexes.classic import functions

if TYPE_CHECKING:
    from pyspark.sql import Column

_SEED = 42
_BATCH = 1 << 16


@dataclass(frozen=True, slots=True)
class Cut:
    """Partitions `first` … `last` begin with this value (text, see `build`; None: NULL, which comes before all values)."""

    value: str | None
    first: int
    last: int


def cuts_of(sample: Sequence[str | None], partitions: int) -> tuple[Cut, ...]:
    """Where to cut, by a sample in the order of the key. Fewer partitions are used where the sample has too few values."""
    if not sample or partitions < 2:
        return ()
    starts = [(sample[len(sample) * number // partitions], number) for number in range(1, partitions)]
    cuts = []
    for value, group in groupby(starts, key=lambda start: start[0]):
        numbers = [number for _, number in group]
        cuts.append(Cut(value, numbers[0], numbers[-1]))
    return tuple(cuts)


def spreads(cuts: Sequence[Cut]) -> bool:
    """Whether rows of one value go to several partitions."""
    return any(cut.first < cut.last or cut.value is None for cut in cuts)


def partition_of(
    key: "Column", cuts: Sequence[Cut], constants: Sequence["Column"], others: Sequence["Column"], partitions: int
) -> "Column":
    """What to partition by. `constants` are the values of the cuts, `others` what tells rows of one key apart."""
    numbers = [int(number) for number in numbers_landing_in(partitions)]

    def spread(first: int, last: int) -> "Column":
        if first == last:
            return functions.lit(numbers[first])
        choice = functions.pmod(functions.hash(*others), functions.lit(last - first + 1))
        places = functions.array(*(functions.lit(number) for number in numbers[first : last + 1]))
        return functions.element_at(places, choice + functions.lit(1))

    def below(low: int, high: int) -> "Column":
        """Of the cuts `low` … `high - 1`, the last one that is not above the key; the partition before the first, if none is."""
        if low == high:
            if low == 0:
                return functions.lit(numbers[0])
            cut = cuts[low - 1]
            rest = functions.lit(numbers[cut.last])
            if cut.value is None or cut.first == cut.last:
                return rest
            return functions.when(key == constants[low - 1], spread(cut.first, cut.last)).otherwise(rest)
        middle = (low + high) // 2
        return functions.when(key >= constants[middle], below(middle + 1, high)).otherwise(below(low, middle))

    nulls = cuts[0].last if cuts and cuts[0].value is None else 0
    of_values = below(1 if nulls else 0, len(cuts))
    return functions.when(key.isNull(), spread(0, nulls)).otherwise(of_values)


def numbers_landing_in(partitions: int) -> npt.NDArray[np.int64]:
    """For each partition a small number whose hash, as Spark partitions by it, is that partition."""
    found = np.full(partitions, -1, np.int64)
    start = 0
    while (found < 0).any():
        numbers = np.arange(start, start + _BATCH, dtype=np.int64)
        landing = spark_hash(numbers.astype(np.int32)) % partitions
        places, first = np.unique(landing, return_index=True)
        new = found[places] < 0
        found[places[new]] = numbers[first[new]]
        start += _BATCH
    return found


def spark_hash(numbers: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Spark's `hash(int)`: Murmur3 with seed 42."""
    word = numbers.view(np.uint32) * np.uint32(0xCC9E2D51)
    word = _rotated(word, 15) * np.uint32(0x1B873593)
    state = _rotated(np.uint32(_SEED) ^ word, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    state ^= np.uint32(4)
    state = (state ^ state >> np.uint32(16)) * np.uint32(0x85EBCA6B)
    state = (state ^ state >> np.uint32(13)) * np.uint32(0xC2B2AE35)
    return (state ^ state >> np.uint32(16)).view(np.int32)


def _rotated(words: npt.NDArray[np.uint32], by: int) -> npt.NDArray[np.uint32]:
    return words << np.uint32(by) | words >> np.uint32(32 - by)
