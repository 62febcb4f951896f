"""What is looked at to choose sketches: of each file some values, and then all keys that lie in a few stretches of the key space.

Rows picked at random would tell nothing of a sieve: it lives from what neighbouring keys have in common.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from grebe.indexes.sieving.keys import Keys
from grebe.indexes.sketches.columns import stored_type
from grebe.indexes.sketches.hashes import hashes_of
from grebe.indexes.sketches.protocol import OfOneColumn, On

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Some:
    """Distinct values with the least hashes: a fair sample of them, which also tells how many there are."""

    values: pa.Array
    hashes: npt.NDArray[np.uint64]
    distinct: int


@dataclass(frozen=True, slots=True)
class SomeValues(OfOneColumn):
    """Never stored, only looked at."""

    sketch: ClassVar[str] = "some_values"

    column: str
    most: int

    def fields(self, on: Sequence[On]) -> Mapping[str, str]:
        return {
            "values": f'{{"containsNull":true,"elementType":"{stored_type(on[0].type)}","type":"array"}}',
            "distinct": "long",
        }

    def state(self, on: Sequence[On], values: Sequence[pa.Array]) -> Some:
        known = values[0].drop_null()
        return self._least(known, hashes_of(known))

    def _least(self, values: pa.Array, hashes: npt.NDArray[np.uint64]) -> Some:
        distinct, places = np.unique(hashes, return_index=True)
        kept = places[: self.most]
        return Some(values.take(pa.array(kept)), distinct[: self.most], len(distinct))

    def joined(self, states: Sequence[Some]) -> Some:
        if len(states) == 1:
            return states[0]
        least = self._least(
            pa.concat_arrays([state.values for state in states]), np.concatenate([state.hashes for state in states])
        )
        if least.distinct < self.most:
            return least
        # So many lie below the greatest of the kept hashes: the rest likewise.
        guessed = int((self.most - 1) / max(1e-18, float(least.hashes[-1]) / 2.0**64))
        return Some(least.values, least.hashes, max(guessed, *(state.distinct for state in states)))

    def row(self, on: Sequence[On], state: Some) -> Mapping[str, Any]:
        return {"values": state.values.to_pylist(), "distinct": state.distinct}


@dataclass(frozen=True, slots=True)
class KeysWithin(OfOneColumn):
    """All keys of a file that lie in certain stretches, with their rows. Never stored either."""

    sketch: ClassVar[str] = "keys_within"

    column: str
    keys: Keys
    starts: tuple[int, ...]
    stops: tuple[int, ...]
    """Both belong to a stretch; stretches are in order and lie apart."""

    def fields(self, on: Sequence[On]) -> Mapping[str, str]:
        return {"codes": "binary", "counts": "binary"}

    def state(self, on: Sequence[On], values: Sequence[pa.Array]) -> tuple[Codes, Codes]:
        codes = self.keys.codes(values[0].drop_null())
        stretch = np.searchsorted(np.array(self.starts, np.int64), codes, "right") - 1
        inside = (stretch >= 0) & (codes <= np.array(self.stops, np.int64)[stretch])
        found, counts = np.unique(codes[inside], return_counts=True)
        return found, counts.astype(np.int64)

    def joined(self, states: Sequence[tuple[Codes, Codes]]) -> tuple[Codes, Codes]:
        if len(states) == 1:
            return states[0]
        codes, places = np.unique(np.concatenate([state[0] for state in states]), return_inverse=True)
        counts = np.concatenate([state[1] for state in states])
        return codes, np.bincount(places, counts, len(codes)).astype(np.int64)

    def row(self, on: Sequence[On], state: tuple[Codes, Codes]) -> Mapping[str, Any]:
        return {"codes": state[0].tobytes(), "counts": state[1].tobytes()}
