"""All values of a column in each file, where they are few: exact for every predicate about that column.

Asked, the lists lie the other way round: each value that occurs anywhere once, in order, and with it the files that have it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from grebe.errors import GrebeError, InvalidIndex
from grebe.indexes.sketches.columns import physical, stored_type
from grebe.indexes.sketches.protocol import Judge, OfOneColumn, On
from grebe.predicate.about import renamed
from grebe.predicate.arrow_types import physical_type
from grebe.predicate.bounds import named
from grebe.predicate.evaluate import evaluate
from grebe.predicate.tree import Predicate, columns_of, opaque_terms
from grebe.predicate.types import Type
from grebe.predicate.verdicts import Verdicts

_LONGEST = 1024
"""A file with a longer value has no list."""
_VALUE = "value"


@dataclass(frozen=True, slots=True)
class Values:
    """Distinct values of some rows, None where there are too many; and whether there is a NULL."""

    known: pa.Array | None
    null: bool


@dataclass(frozen=True, slots=True)
class ValueList(OfOneColumn):
    """`grebe.ValueList("b")`: a file with more than `most` values has no list, and is always read."""

    sketch: ClassVar[str] = "value_list"

    column: str
    most: int = 256

    def __post_init__(self) -> None:
        if not isinstance(self.most, int) or self.most < 1:
            raise InvalidIndex(
                f"ValueList({self.column!r}): most is the number of values a file, not {self.most!r}", detail="SKETCH"
            )

    def fields(self, on: Sequence[On]) -> Mapping[str, str]:
        element = f'"{stored_type(on[0].type)}"'
        return {"values": f'{{"containsNull":true,"elementType":{element},"type":"array"}}', "null": "boolean"}

    def state(self, on: Sequence[On], values: Sequence[pa.Array]) -> Values:
        return self._some(values[0].drop_null(), values[0].null_count > 0)

    def _some(self, values: pa.Array, null: bool) -> Values:
        distinct = _distinct(values)
        listed = len(distinct) <= self.most and _can_be_listed(distinct)
        return Values(distinct if listed else None, null)

    def joined(self, states: Sequence[Values]) -> Values:
        null = any(state.null for state in states)
        parts = [state.known for state in states if state.known is not None]
        return self._some(pa.concat_arrays(parts), null) if len(parts) == len(states) else Values(None, null)

    def row(self, on: Sequence[On], state: Values) -> Mapping[str, Any]:
        return {"values": None if state.known is None else state.known.to_pylist(), "null": state.null}

    def judge(self, on: Sequence[On], stored: Mapping[str, pa.Array]) -> Judge:
        return ValueLists.of(on[0], stored)

    def helps(self, on: Sequence[On], predicate: Predicate) -> bool:
        return columns_of(predicate) == {on[0].path} and not opaque_terms(predicate)


def _distinct(values: pa.Array) -> pa.Array:
    if pa.types.is_floating(values.type):
        # -0.0 is 0.0, and all NaN are one.
        numbers = values.to_numpy(zero_copy_only=False) + 0.0
        return pa.array(np.unique(numbers), values.type, from_pandas=False)
    return pc.unique(values)


def _can_be_listed(values: pa.Array) -> bool:
    """No value is too long, and text is UTF-8: Spark keeps in it whatever bytes it was given."""
    if not pa.types.is_large_string(values.type) and not pa.types.is_large_binary(values.type):
        return True
    if (pc.max(pc.binary_length(values)).as_py() or 0) > _LONGEST:
        return False
    try:
        values.cast(pa.large_binary()).cast(values.type)
    except pa.ArrowInvalid:
        return False
    return True


@dataclass(frozen=True, slots=True)
class ValueLists:
    """Of all files. `codes` are places in `values`, those of one file together, as `starts` tells."""

    on: On
    values: pa.Array
    codes: npt.NDArray[np.int32]
    files: npt.NDArray[np.int32]
    """The file of each code."""
    counts: npt.NDArray[np.int64]
    """Values of each file."""
    known: npt.NDArray[np.bool_]
    null: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, on: On, stored: Mapping[str, pa.Array]) -> "ValueLists":
        lists = stored["values"]
        known = lists.is_valid().to_numpy(zero_copy_only=False)
        counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False).astype(np.int64)
        encoded = _encoded(physical(pc.list_flatten(lists), on.type), on.type)
        files = np.repeat(np.arange(len(lists), dtype=np.int32), counts)
        null = pc.fill_null(stored["null"], True).to_numpy(zero_copy_only=False)
        return cls(on, encoded.dictionary, encoded.indices.to_numpy().astype(np.int32), files, counts, known, null)

    @property
    def nbytes(self) -> int:
        return int(self.values.nbytes + self.codes.nbytes + self.files.nbytes + 10 * len(self.known))

    def verdicts(self, predicate: Predicate) -> Verdicts | None:
        if columns_of(predicate) != {self.on.path} or opaque_terms(predicate):
            return None
        try:
            of_values = self._truth(predicate, self.values)
            of_null = bool(self._truth(predicate, pa.nulls(1, self.values.type))[0])
        except GrebeError:  # a cast that fails for some value: what is not understood prunes nothing
            return None
        matching = np.bincount(self.files[of_values[self.codes]], minlength=len(self.known))
        possible = ~self.known | (matching > 0) | (self.null & of_null)
        surely = self.known & (matching == self.counts) & (~self.null | of_null)
        return named(~possible, surely & ((self.counts > 0) | self.null))

    def _truth(self, predicate: Predicate, values: pa.Array) -> npt.NDArray[np.bool_]:
        flat = renamed(predicate, {self.on.path: _VALUE})
        batch = pa.record_batch([_as_column(values, self.on.type)], names=[_VALUE])
        return np.asarray(pc.fill_null(evaluate(batch, flat), False).to_numpy(zero_copy_only=False), np.bool_)


def _encoded(values: pa.Array, kind: Type) -> pa.DictionaryArray:
    if kind.is_floating:
        numbers, codes = np.unique(values.to_numpy(zero_copy_only=False), return_inverse=True)
        return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(numbers, values.type))
    return values.dictionary_encode()


def _as_column(values: pa.Array, kind: Type) -> pa.Array:
    """The physical form as the type that it stands for."""
    if kind.name == "date":
        return values.view(pa.date32())
    if kind.name == "timestamp":
        return values.view(pa.timestamp("us", "UTC"))
    return values.view(pa.timestamp("us")) if kind.name == "timestamp_ntz" else values.cast(physical_type(kind))
