"""What the log remembers of an index of summaries, taken apart: sketches, sieves, the reading, and the content's columns."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from grebe.errors import CorruptIndex, CorruptLog, InvalidIndex
from grebe.files.untrusted import FOREIGN
from grebe.formats import Reading
from grebe.formats.spark_types import arrow_type, type_json
from grebe.indexes import columns
from grebe.indexes.columns import Chosen
from grebe.indexes.kind import FILE_COLUMN
from grebe.indexes.sketches.protocol import Made, On, Sketch
from grebe.indexes.sketches.registry import from_data, to_data
from grebe.log.entry import IndexSpec
from grebe.predicate.arrow_types import from_arrow

ROWS, SIEVE, LOW, HIGH, PAYLOAD = "_grebe_rows", "_grebe_sieve", "_grebe_low", "_grebe_high", "_grebe_payload"
_OWN = ((FILE_COLUMN, "integer"), (ROWS, "long"))
_OF_SIEVES = ((SIEVE, "integer"), (LOW, "long"), (HIGH, "long"), (PAYLOAD, "binary"))


MadeOf = TypeVar("MadeOf", bound=Made)


@dataclass(frozen=True, slots=True)
class Held(Generic[MadeOf]):
    """A sketch of certain columns. `number` tells it apart from the others of its index."""

    number: int
    sketch: MadeOf
    on: tuple[On, ...]

    def field(self, name: str) -> str:
        """What the content calls one of its fields."""
        return f"s{self.number}_{name}"

    @property
    def fields(self) -> list[tuple[str, str]]:
        return [(self.field(name), kind) for name, kind in self.sketch.fields(self.on).items()]


@dataclass(frozen=True, slots=True)
class HeldSieve:
    number: int
    column: Chosen
    budget: float
    """Bytes of it for each byte of the column."""

    @property
    def on(self) -> On:
        return on_of(self.column)


@dataclass(frozen=True, slots=True)
class Shape:
    reading: Reading
    columns: tuple[Chosen, ...]
    sketches: tuple[Held[Sketch], ...]
    sieves: tuple[HeldSieve, ...]

    @property
    def fields(self) -> list[tuple[str, str]]:
        """Names and types of the content's columns. A row is about a file, or a piece of a sieve."""
        return [*_OWN, *(field for held in self.sketches for field in held.fields), *_OF_SIEVES]


def on_of(column: Chosen) -> On:
    return On(column.path, from_arrow(arrow_type(type_json(column.type))))


def properties_of(
    sketches: Sequence[Sketch],
    sieves: Sequence[tuple[str, float]],
    reading: Reading,
    case_sensitive: bool,
    index: str,
    others: Sequence[str] = (),
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The columns, and what the log is to remember. Raises `InvalidIndex`."""
    names = [*(name for one in sketches for name in one.columns), *(name for name, _ in sieves), *others]
    chosen = columns.choose(dict.fromkeys(names), reading, case_sensitive, index)
    columns.require_keys(chosen, index)
    spelt = dict(zip(dict.fromkeys(names), chosen, strict=True))
    distinct = tuple({one.name: one for one in chosen}.values())
    columns.require_no_clash(distinct, reading, index)
    for one in sketches:
        refusal = one.refusal([on_of(spelt[name]) for name in one.columns])
        if refusal is not None:
            raise InvalidIndex(f"index {index}: {refusal}", detail="SKETCH")
    kept = columns.restricted(reading, [column.path for column in distinct])
    return tuple(column.name for column in distinct), {
        "sketches": [{**to_data(one), "columns": [spelt[name].name for name in one.columns]} for one in sketches],
        "sieves": [{"column": spelt[name].name, "budget": budget} for name, budget in sieves],
        "where": None,
        "reading": kept.to_dict(),
    }


def shape_of(index: str, spec: IndexSpec) -> Shape:
    known = spec.properties
    try:
        reading = Reading.from_dict(known["reading"])
        chosen = {column.name: column for column in columns.recorded(spec.columns, reading, index)}
        return Shape(
            reading,
            tuple(chosen.values()),
            tuple(_held(known["sketches"], chosen)),
            tuple(HeldSieve(n, chosen[one["column"]], one["budget"]) for n, one in enumerate(known["sieves"])),
        )
    except CorruptIndex:
        raise
    except (*FOREIGN, CorruptLog, InvalidIndex) as problem:
        raise CorruptIndex(
            f"what the log says of index {index} does not fit together ({problem}); create it anew", detail="SPEC"
        ) from problem


def _held(known: Sequence[Mapping[str, Any]], chosen: Mapping[str, Chosen]) -> Iterator[Held[Sketch]]:
    for number, data in enumerate(known):
        yield Held(number, from_data(data), tuple(on_of(chosen[name]) for name in data["columns"]))
