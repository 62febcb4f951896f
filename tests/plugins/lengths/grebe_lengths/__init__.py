"""A sketch of another package: how long the texts of a column are, for equality."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from grebe.indexes.sketches.protocol import On
from grebe.predicate.tree import Column, Compare, Literal, Predicate
from grebe.predicate.verdicts import Verdict, Verdicts


@dataclass(frozen=True, slots=True)
class Lengths:
    sketch: ClassVar[str] = "lengths"

    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def refusal(self, on: Sequence[On]) -> str | None:
        return None if on[0].type.name == "string" else "Lengths is for text"

    def fields(self, on: Sequence[On]) -> Mapping[str, str]:
        return {"longest": "integer"}

    def state(self, on: Sequence[On], values: Sequence[pa.Array]) -> int:
        return int(pc.max(pc.binary_length(values[0])).as_py() or 0)

    def joined(self, states: Sequence[int]) -> int:
        return max(states)

    def row(self, on: Sequence[On], state: int) -> Mapping[str, Any]:
        return {"longest": state}

    def judge(self, on: Sequence[On], stored: Mapping[str, pa.Array]) -> "LengthsJudge":
        return LengthsJudge(on[0], stored["longest"].fill_null(2**31 - 1).to_numpy(zero_copy_only=False))

    def helps(self, on: Sequence[On], predicate: Predicate) -> bool:
        return _length(on[0], predicate) is not None


def _length(on: On, predicate: Predicate) -> int | None:
    match predicate:
        case Compare("=", Column(path), Literal(str(text))) if path == on.path:
            return len(text.encode())
    return None


@dataclass(frozen=True)
class LengthsJudge:
    on: On
    longest: Any

    @property
    def nbytes(self) -> int:
        return int(self.longest.nbytes)

    def verdicts(self, predicate: Predicate) -> Verdicts | None:
        length = _length(self.on, predicate)
        if length is None:
            return None
        return np.where(self.longest < length, Verdict.CANNOT_MATCH, Verdict.MUST_READ).astype(np.int8)
