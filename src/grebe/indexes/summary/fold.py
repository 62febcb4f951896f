"""The sketches of files, made in Spark's tasks: of some rows a state, of the states of a file its row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from grebe.formats import Column
from grebe.formats.parquet_statistics import Footer
from grebe.formats.spark_types import arrow_type, type_json
from grebe.indexes.kind import FILE_COLUMN
from grebe.indexes.sketches.columns import physical
from grebe.indexes.sketches.protocol import FromStatistics, On
from grebe.indexes.summary.shape import ROWS, Held
from grebe.predicate.tree import Path


@dataclass(frozen=True, slots=True)
class State:
    rows: int
    sketches: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class SketchFold:
    """`indexes.kind.FileFold`."""

    held: tuple[Held[Any], ...]

    @property
    def fields(self) -> list[tuple[str, str]]:
        return [(FILE_COLUMN, "integer"), (ROWS, "long"), *(field for held in self.held for field in held.fields)]

    def state(self, rows: pa.RecordBatch) -> State:
        arrays: dict[Path, pa.Array] = {}
        for one in (on for held in self.held for on in held.on):
            if one.path not in arrays:
                arrays[one.path] = _column(rows, one)
        made = (held.sketch.state(held.on, [arrays[one.path] for one in held.on]) for held in self.held)
        return State(rows.num_rows, tuple(made))

    def told(self, footer: Footer, columns: Mapping[str, Column]) -> State | None:
        states = []
        for held in self.held:
            sketch, path = held.sketch, held.on[0].path
            if not isinstance(sketch, FromStatistics) or len(path) > 1 or columns[path[0]].partition:
                return None
            known = footer.statistics(columns[path[0]])
            if known is None:
                return None
            states.append(sketch.told(held.on, known, footer.rows))
        return State(footer.rows, tuple(states))

    def joined(self, states: Sequence[State]) -> State:
        if len(states) == 1:
            return states[0]
        parts = (
            held.sketch.joined([state.sketches[place] for state in states]) for place, held in enumerate(self.held)
        )
        return State(sum(state.rows for state in states), tuple(parts))

    def rows(self, files: Sequence[int], states: Sequence[State]) -> pa.RecordBatch:
        """One row a file."""
        columns: dict[str, list[Any]] = {name: [] for name, _ in self.fields}
        columns[FILE_COLUMN] = list(files)
        columns[ROWS] = [state.rows for state in states]
        for place, held in enumerate(self.held):
            for state in states:
                row = held.sketch.row(held.on, state.sketches[place])
                for name in held.sketch.fields(held.on):
                    columns[held.field(name)].append(row[name])
        arrays = [pa.array(columns[name], arrow_type(type_json(kind))) for name, kind in self.fields]
        return pa.record_batch(arrays, names=[name for name, _ in self.fields])


def _column(rows: pa.RecordBatch, on: On) -> pa.Array:
    values = rows.column(on.path[0])
    for name in on.path[1:]:
        values = pc.struct_field(values, name)
    return physical(values, on.type)
