"""Which short pieces of text occur in each file: for LIKE '%x%', contains, and equality of text.

Text is looked at as its UTF-8 bytes: what contains a text contains all pieces of its bytes. Several columns share one sketch, which
then says only that a piece occurs in one of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from grebe.errors import InvalidIndex
from grebe.indexes.sketches.bits import Filters, Flags, filter_of
from grebe.indexes.sketches.columns import equal_values, subject
from grebe.indexes.sketches.distinct import distinct
from grebe.indexes.sketches.hashes import Hashes, mixed
from grebe.indexes.sketches.protocol import Judge, On
from grebe.predicate.bounds import named
from grebe.predicate.tree import Contains, EndsWith, Predicate, StartsWith
from grebe.predicate.verdicts import Verdicts

_BITS = 10
_TABLE_BYTES = 3
_MANY = 1 << 14
"""Many pieces of so few bytes are counted off in a table; others are sorted."""
_MOST_ASKED = 16
_ENOUGH_PIECES = 64
"""Of a long text not all pieces are looked for."""


@dataclass(frozen=True, slots=True, init=False)
class Ngram:
    """`grebe.Ngram("d")`, or of several columns together: `grebe.Ngram("title", "body")`."""

    sketch: ClassVar[str] = "ngram"

    columns: tuple[str, ...]
    size: int

    def __init__(self, *columns: str, size: int = 3) -> None:
        object.__setattr__(self, "columns", tuple(columns))
        object.__setattr__(self, "size", size)
        if not columns:
            raise InvalidIndex("Ngram needs a column: Ngram('d')", detail="SKETCH")
        if not isinstance(size, int) or not 2 <= size <= 8:
            raise InvalidIndex(f"Ngram: size is the number of bytes of a piece, 2 to 8, not {size!r}", detail="SKETCH")

    def refusal(self, on: Sequence[On]) -> str | None:
        wrong = [one for one in on if one.type.name not in ("string", "binary")]
        return f"{'.'.join(wrong[0].path)} is {wrong[0].type}, and Ngram is for text" if wrong else None

    def fields(self, on: Sequence[On]) -> Mapping[str, str]:
        return {"filter": "binary"}

    def state(self, on: Sequence[On], values: Sequence[pa.Array]) -> Hashes:
        return distinct(np.concatenate([pieces_of(one, self.size) for one in values]))

    def joined(self, states: Sequence[Hashes]) -> Hashes:
        return states[0] if len(states) == 1 else distinct(np.concatenate(states))

    def row(self, on: Sequence[On], state: Hashes) -> Mapping[str, Any]:
        return {"filter": filter_of(mixed(state), _BITS)}

    def judge(self, on: Sequence[On], stored: Mapping[str, pa.Array]) -> Judge:
        return NgramJudge(tuple(on), self.size, Filters.of(stored["filter"], _BITS))

    def helps(self, on: Sequence[On], predicate: Predicate) -> bool:
        texts = _texts(predicate, on)
        return texts is not None and all(len(text) >= self.size for text in texts)


def pieces_of(values: pa.Array, size: int) -> Hashes:
    """Distinct pieces of so many bytes, each as a number."""
    whole = values.drop_null().cast(pa.large_binary())
    data = whole.buffers()[2]
    if data is None or not len(whole):
        return np.empty(0, np.uint64)
    offsets = np.frombuffer(whole.buffers()[1], np.int64)[whole.offset : whole.offset + len(whole) + 1]
    text = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]
    if len(text) < size:
        return np.empty(0, np.uint64)
    starts = len(text) - size + 1
    inside = np.ones(starts, np.bool_)
    # A piece must not begin in one value and end in the next.
    for back in range(1, size):
        ends = offsets[1:-1] - offsets[0] - back
        inside[ends[(ends >= 0) & (ends < starts)]] = False
    kind = np.uint32 if size <= _TABLE_BYTES else np.uint64
    codes: npt.NDArray[Any] = np.zeros(starts, kind)
    for place in range(size):
        codes = (codes << kind(8)) | text[place : place + starts]
    if size > _TABLE_BYTES or starts < _MANY:
        return distinct(codes[inside]).astype(np.uint64)
    table = np.zeros(1 << (8 * size), np.bool_)
    table[codes[inside]] = True
    return np.flatnonzero(table).astype(np.uint64)


def _texts(predicate: Predicate, on: Sequence[On]) -> list[bytes] | None:
    """Texts of which one must be a part of the column's."""
    match predicate:
        case Contains(_, text) | StartsWith(_, text) | EndsWith(_, text):
            return [text.encode()] if subject(predicate) in {one.path for one in on} else None
    for one in on:
        values = equal_values(predicate, one.path, one.type)
        if values is not None:
            texts = [value.encode() if isinstance(value, str) else value for value in values]
            return [text for text in texts if isinstance(text, bytes)] if len(texts) <= _MOST_ASKED else None
    return None


@dataclass(frozen=True, slots=True)
class NgramJudge:
    on: tuple[On, ...]
    size: int
    filters: Filters

    @property
    def nbytes(self) -> int:
        return self.filters.nbytes

    def verdicts(self, predicate: Predicate) -> Verdicts | None:
        texts = _texts(predicate, self.on)
        if texts is None or any(len(text) < self.size for text in texts):
            return None
        possible: Flags = np.zeros(len(self.filters.known), np.bool_)
        for text in texts:
            possible |= self._may_contain(text)
        return named(~possible, np.zeros_like(possible))

    def _may_contain(self, text: bytes) -> Flags:
        possible: Flags = np.ones(len(self.filters.known), np.bool_)
        pieces = mixed(pieces_of(pa.array([text], pa.large_binary()), self.size))
        for piece in pieces[:_ENOUGH_PIECES].tolist():
            possible &= self.filters.may_hold(piece)
            if not possible.any():
                break
        return possible
