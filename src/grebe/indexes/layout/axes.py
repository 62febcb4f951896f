"""Values of one column as whole numbers in Spark's order, by some values that are told apart: so a tree of cuts knows no types.

Of m values in order, NULL is 0, what is less than all of them 1, the first of them 2, what lies between it and the second 3, and so
on up to 2m + 1. So every cut between two such numbers is one of `IS NULL`, `< value` and `<= value`. NaN is the greatest number,
-0.0 is 0.0, and text goes by its bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from grebe.predicate.arrow_types import from_arrow, physical_type, to_physical
from grebe.predicate.types import Type, parse_type

Codes: TypeAlias = npt.NDArray[np.int32]
NULLS = 0
FIRST = 1
"""The least number of what is not NULL."""
_MOST_DIGITS = 18
"""Of decimals that fit into a whole number of 64 bits."""


@dataclass(frozen=True, eq=False, slots=True)
class Axis:
    type: Type
    values: Any
    """All different, in order, in the form that is compared: numbers of numpy, or text, bytes and large decimals of Arrow."""

    @property
    def last(self) -> int:
        """The greatest number."""
        return 2 * len(self.values) + 1

    def codes(self, column: pa.Array | pa.ChunkedArray) -> Codes:
        """Of each value of a column of this type."""
        known = _compared(_one_array(column), self.type)
        valid = known.is_valid().to_numpy(zero_copy_only=False) if known.null_count else None
        found = self._found(known if valid is None else known.drop_null())
        if valid is None:
            return found
        codes = np.zeros(len(known), np.int32)
        codes[valid] = found
        return codes

    def code(self, value: Any) -> int:
        """Of a constant, in the physical form of the type."""
        return int(self.codes_of([value])[0])

    def codes_of(self, constants: Sequence[Any]) -> Codes:
        return self._found(_constants(constants, self.type))

    def only(self, codes: Codes) -> tuple["Axis", Codes]:
        """The axis of just those values that these cuts need (a cut lies below its number), and the same cuts by it."""
        places = np.unique(codes[codes > FIRST] // 2 - 1)
        kept = self.values[places] if isinstance(self.values, np.ndarray) else self.values.take(pa.array(places))
        moved = 2 * np.searchsorted(places, codes // 2 - 1) + 2 + codes % 2
        return Axis(self.type, kept), np.where(codes > FIRST, moved, codes).astype(np.int32)

    def same_cuts(self, other: "Axis", cuts: Codes) -> Codes:
        """Cuts of another axis, all of whose values this one has, as its own."""
        inner = cuts > FIRST
        places = np.where(inner, cuts // 2 - 1, 0)
        if not inner.any():
            return cuts
        if isinstance(other.values, np.ndarray):
            found = np.searchsorted(self.values, other.values[places])
        else:
            found = _halved(self.values, other.values.take(pa.array(places))).astype(np.int64) // 2 - 1
        return np.where(inner, 2 * found + 2 + cuts % 2, cuts).astype(np.int32)

    def plain(self) -> dict[str, Any]:
        """As JSON has it; `axis_of` makes the very same of it."""
        return {"type": str(self.type), "values": [_text(value) for value in self.values.tolist()]}

    def _found(self, values: pa.Array) -> Codes:
        if isinstance(self.values, np.ndarray):
            numbers = _numbers(values, self.type)
            left, right = np.searchsorted(self.values, numbers, "left"), np.searchsorted(self.values, numbers, "right")
            return np.asarray(FIRST + left + right, np.int32)
        encoded = values.dictionary_encode()
        found: Codes = _halved(self.values, encoded.dictionary)[encoded.indices.to_numpy(zero_copy_only=False)]
        return found


def axis_among(column: pa.Array | pa.ChunkedArray, constants: Sequence[Any]) -> Axis:
    """That tells all values of a column apart, and some constants, in the physical form of its type."""
    kind = from_arrow(column.type)
    held = _compared(_one_array(column), kind).drop_null()
    together = pa.concat_arrays([held, _constants(constants, kind)])
    if _is_numeric(kind):
        return Axis(kind, np.unique(_numbers(together, kind)))
    return united([Axis(kind, together)])


def united(axes: Sequence[Axis]) -> Axis:
    """Of all values of several axes of one column."""
    if isinstance(axes[0].values, np.ndarray):
        return Axis(axes[0].type, np.unique(np.concatenate([axis.values for axis in axes])))
    different = pa.concat_arrays([axis.values for axis in axes]).unique()
    return Axis(axes[0].type, different.take(pc.sort_indices(different)))


def axis_of(plain: dict[str, Any]) -> Axis:
    kind = parse_type(plain["type"])
    values = _constants([_value(one, kind) for one in plain["values"]], kind)
    return Axis(kind, _numbers(values, kind) if _is_numeric(kind) else values)


def _is_numeric(kind: Type) -> bool:
    return kind.name not in ("string", "binary") and (not kind.is_decimal or kind.precision <= _MOST_DIGITS)


def _one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _compared(column: pa.Array, kind: Type) -> pa.Array:
    physical = to_physical(column, kind)
    return physical.cast(pa.large_binary()) if kind.name == "string" else physical


def _constants(values: Sequence[Any], kind: Type) -> pa.Array:
    if kind.name == "string":
        return pa.array([one.encode() if isinstance(one, str) else one for one in values], pa.large_binary())
    return pa.array(values, physical_type(kind))


def _numbers(values: pa.Array, kind: Type) -> npt.NDArray[Any]:
    if kind.is_floating:
        return np.asarray(values.to_numpy(zero_copy_only=False), np.float64) + 0.0  # which makes -0.0 a plain zero
    if kind.is_decimal:
        halves = np.frombuffer(values.buffers()[1], np.int64) if len(values) else np.empty(0, np.int64)
        return halves[2 * values.offset :: 2][: len(values)].copy()
    return np.asarray(values.to_numpy(zero_copy_only=False)).astype(np.int64)


def _halved(cuts: pa.Array, values: pa.Array) -> Codes:
    """By halving, all values at once."""
    low, high = np.zeros(len(values), np.int64), np.full(len(values), len(cuts), np.int64)
    for _ in range(len(cuts).bit_length()):
        middle = np.minimum((low + high) // 2, len(cuts) - 1)
        below = pc.less(cuts.take(pa.array(middle)), values).to_numpy(zero_copy_only=False) & (low < high)
        low, high = np.where(below, middle + 1, low), np.where(below, high, np.minimum(middle, high))
    if not len(cuts):
        return np.full(len(values), FIRST, np.int32)
    met = pc.equal(cuts.take(pa.array(np.minimum(low, len(cuts) - 1))), values).to_numpy(zero_copy_only=False)
    return np.asarray(FIRST + 2 * low + (met & (low < len(cuts))), np.int32)


def _text(value: Any) -> Any:
    match value:
        case float():
            return value.hex()
        case bytes():
            return value.hex()
        case Decimal():
            return str(value)
    return value


def _value(plain: Any, kind: Type) -> Any:
    if kind.is_floating:
        return float.fromhex(plain)
    if kind.name in ("string", "binary"):
        return bytes.fromhex(plain)
    if kind.is_decimal:
        return Decimal(plain) if isinstance(plain, str) else Decimal(plain).scaleb(-kind.scale)
    return bool(plain) if kind.name == "boolean" else plain
