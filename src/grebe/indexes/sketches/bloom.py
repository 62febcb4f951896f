"""Which values a column may have in each file: for = and IN of columns whose values lie anywhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from grebe.errors import InvalidIndex
from grebe.indexes.sketches.bits import Filters, Flags, filter_of
from grebe.indexes.sketches.columns import equal_values
from grebe.indexes.sketches.distinct import distinct
from grebe.indexes.sketches.hashes import Hashes, hashes_of
from grebe.indexes.sketches.protocol import Judge, OfOneColumn, On
from grebe.predicate.arrow_types import physical_type
from grebe.predicate.bounds import named
from grebe.predicate.tree import Predicate
from grebe.predicate.verdicts import Verdicts

_MOST_ASKED = 64
"""An IN of more values is taken to hit every file anyhow."""


@dataclass(frozen=True, slots=True)
class Bloom(OfOneColumn):
    """`grebe.Bloom("c")`: with 10 bits for each distinct value of a file about one file in a hundred is kept in vain."""

    sketch: ClassVar[str] = "bloom"

    column: str
    bits: int = 10

    def __post_init__(self) -> None:
        if not isinstance(self.bits, int) or not 1 <= self.bits <= 64:
            raise InvalidIndex(
                f"Bloom({self.column!r}): bits is the number of bits a value, 1 to 64, not {self.bits!r}",
                detail="SKETCH",
            )

    def fields(self, on: Sequence[On]) -> Mapping[str, str]:
        return {"filter": "binary"}

    def state(self, on: Sequence[On], values: Sequence[pa.Array]) -> Hashes:
        return distinct(hashes_of(values[0].drop_null()))

    def joined(self, states: Sequence[Hashes]) -> Hashes:
        return states[0] if len(states) == 1 else distinct(np.concatenate(states))

    def row(self, on: Sequence[On], state: Hashes) -> Mapping[str, Any]:
        return {"filter": filter_of(state, self.bits)}

    def judge(self, on: Sequence[On], stored: Mapping[str, pa.Array]) -> Judge:
        return BloomJudge(on[0], Filters.of(stored["filter"], self.bits))

    def helps(self, on: Sequence[On], predicate: Predicate) -> bool:
        values = equal_values(predicate, on[0].path, on[0].type)
        return values is not None and len(values) <= _MOST_ASKED


@dataclass(frozen=True, slots=True)
class BloomJudge:
    on: On
    filters: Filters

    @property
    def nbytes(self) -> int:
        return self.filters.nbytes

    def verdicts(self, predicate: Predicate) -> Verdicts | None:
        values = equal_values(predicate, self.on.path, self.on.type)
        if values is None or len(values) > _MOST_ASKED:
            return None
        hashes = hashes_of(pa.array(values, physical_type(self.on.type))).tolist()
        possible: Flags = np.zeros(len(self.filters.known), np.bool_)
        for one in hashes:
            possible |= self.filters.may_hold(one)
        return named(~possible, np.zeros_like(possible))
