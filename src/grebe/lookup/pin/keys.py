"""Where in pinned rows the values of one column lie, by halving."""

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from grebe.predicate.arrow_types import from_arrow, physical_type, to_physical
from grebe.predicate.tree import And, Column, Compare, In, Literal, Path, Predicate
from grebe.predicate.types import Type

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Keys:
    """`values` are in order, without NULLs; `rows` says in which row each lies (None: in the row of the same number)."""

    column: Path
    type: Type
    values: Any  # an array of numpy, or of Arrow where numpy has no such type
    rows: npt.NDArray[np.int32] | None

    @property
    def nbytes(self) -> int:
        return int(self.values.nbytes) + (0 if self.rows is None else self.rows.nbytes)

    def asked(self, predicate: Predicate) -> list[Any] | None:
        """The values of which a row must have one, if the predicate says so."""
        for part in predicate.predicates if isinstance(predicate, And) else (predicate,):
            match part:
                case Compare("=" | "<=>", Column(path), Literal() as value) if path == self.column:
                    items: Sequence[Any] = (value,)
                case In(Column(path), values) if path == self.column:
                    items = values
                case _:
                    continue
            if all(isinstance(item, Literal) and item.type == self.type for item in items):
                known = [item.value for item in items if item.value is not None]
                if known or isinstance(part, In):
                    return known
        return None

    def rows_of(self, wanted: list[Any]) -> Numbers:
        """Ascending, each once."""
        starts, stops = self._between(wanted)
        if len(starts) == 1:
            found = np.arange(starts[0], stops[0])
        else:
            pairs = np.unique(np.stack((starts, stops)), axis=1)
            found = np.concatenate([np.arange(a, b) for a, b in pairs.T.tolist()] or [np.empty(0, np.int64)])
        return found if self.rows is None else np.sort(self.rows[found]).astype(np.int64)

    def _between(self, wanted: list[Any]) -> tuple[Numbers, Numbers]:
        if isinstance(self.values, np.ndarray):
            sought = pa.array(wanted, physical_type(self.type)).to_numpy(zero_copy_only=False)
            if self.type.is_floating:
                sought = sought + sought.dtype.type(0)
            return np.searchsorted(self.values, sought, "left"), np.searchsorted(self.values, sought, "right")
        places = range(len(self.values))
        starts = [bisect.bisect_left(places, value, key=self._value) for value in wanted]
        stops = [
            bisect.bisect_right(places, value, start, key=self._value)
            for value, start in zip(wanted, starts, strict=True)
        ]
        return np.array(starts, np.int64), np.array(stops, np.int64)

    def _value(self, place: int) -> Any:
        return self.values[place].as_py()


def has_keys(kind: Type) -> bool:
    return kind.is_numeric or kind.is_datetime or kind.name in ("string", "binary")


def keys_of(column: Path, values: pa.Array, in_order: bool) -> Keys:
    """Of the values of all rows; `in_order`: that is how they lie already."""
    kind = from_arrow(values.type)
    physical = to_physical(values, kind)
    rows = None
    if in_order:
        physical = physical[: len(physical) - physical.null_count]
    else:
        order = pc.sort_indices(physical)[: len(physical) - physical.null_count]
        rows, physical = order.to_numpy().astype(np.int32), physical.take(order)
    plain = pa.types.is_integer(physical.type) or pa.types.is_floating(physical.type)
    ordered = physical.to_numpy(zero_copy_only=False) if plain else physical
    if kind.is_floating:
        # -0.0 and 0.0 are one value, and NaN is above all others, as numpy orders it.
        ordered = ordered + ordered.dtype.type(0)
    return Keys(column, kind, ordered, rows)
