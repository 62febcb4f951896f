"""What users ask for: `grebe.Skipping("skip", grebe.MinMax("a"), grebe.Bloom("c"))`, or `grebe.Skipping("skip", on="a")`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from grebe.errors import CorruptIndex, InvalidIndex
from grebe.formats import Reading
from grebe.indexes import columns
from grebe.indexes.kind import Arranged, Kind, Rows
from grebe.indexes.sketches.protocol import Sketch
from grebe.indexes.sketches.registry import from_data, sketch_named, to_data
from grebe.indexes.skipping.choice import choose
from grebe.indexes.summary.kinds import Summary
from grebe.indexes.summary.shape import properties_of
from grebe.log.entry import IndexSpec
from grebe.predicate.text import column_sql

ALL = "*"
_WRITTEN = re.compile(r"\s*(\w+)\s*\(([^()]*)\)\s*(?:,|$)")


@dataclass(frozen=True, init=False)
class Skipping(Summary):
    """Which files can hold rows of a predicate, by what is kept of each of them: these sketches, or (`on`) whatever prunes these
    columns well and costs least."""

    kind: ClassVar[str] = "skipping"

    name: str
    sketches: Sequence[Sketch]
    on: str | Sequence[str] | None

    def __init__(
        self,
        name: str,
        *given: Sketch | str,
        sketches: str | Sequence[Sketch | str] = (),
        on: str | Sequence[str] | None = None,
    ) -> None:
        if not isinstance(name, str) or not name:
            raise InvalidIndex("an index needs a name: Skipping(name, MinMax('a'))", detail="NAME")
        listed = [*given, *([sketches] if isinstance(sketches, str) else sketches)]
        made = tuple(one for item in listed for one in _sketches(item, name))
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "sketches", made)
        object.__setattr__(self, "on", None if on is None else columns.names_of(on, "on", name))
        if not made and not self.on:
            raise InvalidIndex(
                f"index {name}: name sketches, such as MinMax('a'), or columns to choose them for: on='a' (on='*': all)",
                detail="SKETCH",
            )
        for column in (*(one for sketch in made for one in sketch.columns), *(self.on or ())):
            if column != ALL:
                columns.path_of(column, name)

    def spec(self, reading: Reading, case_sensitive: bool, time_zone: str = "UTC", ansi: bool = True) -> IndexSpec:
        on = self._columns(reading)
        names, properties = properties_of(self.sketches, (), reading, case_sensitive, self.name, on)
        if on:
            spelt = columns.choose(on, reading, case_sensitive, self.name)
            given = {"on": [column.name for column in spelt], "all": ALL in (self.on or ())}
            properties |= {**given, "given": properties["sketches"], "sketches": []}
        return IndexSpec(self.kind, names, {"on": [], **properties})

    def _columns(self, reading: Reading) -> tuple[str, ...]:
        """Those to choose sketches for."""
        named = tuple(self.on or ())
        if ALL not in named:
            return named
        every = tuple(column_sql((column.name,)) for column in reading.columns if columns.is_scalar(column.type))
        if not every:
            raise InvalidIndex(f"index {self.name}: no column of the table can be indexed on", detail="COLUMNS")
        return every

    def arranged(self, spec: IndexSpec, rows: Rows) -> Arranged:
        known = spec.properties
        if not known["on"] or known["sketches"]:
            return super().arranged(spec, rows)
        reading = Reading.from_dict(known["reading"])
        choice = choose(columns.recorded(known["on"], reading, self.name), known["all"], rows)
        found = {
            "sketches": [*known["given"], *map(to_data, choice.sketches)],
            "sieves": [{"column": column, "budget": budget} for column, budget in choice.sieves],
            "chosen": list(choice.why),
        }
        made = super().arranged(replace(spec, properties={**known, **found}), rows)
        return replace(made, properties={**made.properties, **found})

    @classmethod
    def from_spec(cls, name: str, spec: IndexSpec) -> Kind:
        try:
            known = spec.properties
            if known["on"]:
                return cls(name, *map(from_data, known["given"]), on=ALL if known["all"] else known["on"])
            return cls(name, *map(from_data, known["sketches"]))
        except KeyError as lacking:
            raise CorruptIndex(
                f"the log does not say {lacking} of index {name}; create it anew", detail="SPEC"
            ) from lacking


def _sketches(given: object, index: str) -> list[Sketch]:
    """A sketch, or text such as `min_max(a), bloom(c)`."""
    if not isinstance(given, str):
        if not hasattr(given, "sketch"):
            raise InvalidIndex(
                f"index {index}: Skipping takes sketches such as MinMax('a'), not {type(given).__name__}",
                detail="SKETCH",
            )
        return [given]  # type: ignore[list-item]  # it has what a sketch has
    found = []
    place = 0
    for match in _WRITTEN.finditer(given):
        if match.start() != place:
            break
        place = match.end()
        arguments = [name.strip() for name in match[2].split(",")]
        try:
            found.append(sketch_named(match[1])(*arguments))
        except TypeError as wrong:
            raise InvalidIndex(f"index {index}: {match[0].strip()!r}: {wrong}", detail="SKETCH") from wrong
    if place != len(given) or not found:
        raise InvalidIndex(
            f"index {index}: {given!r} names no sketches; write min_max(a), bloom(c), …", detail="SKETCH"
        )
    return found
