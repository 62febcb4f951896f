"""The sketches that are there: our own in one tuple, and those that packages announce in the entry point group `grebe.sketches`."""

import dataclasses
from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from grebe.errors import CorruptIndex, InvalidConfig, InvalidIndex
from grebe.indexes.sketches.bloom import Bloom
from grebe.indexes.sketches.intervals import Intervals
from grebe.indexes.sketches.min_max import MinMax, NullCount
from grebe.indexes.sketches.ngram import Ngram
from grebe.indexes.sketches.protocol import Sketch
from grebe.indexes.sketches.value_list import ValueList

GROUP = "grebe.sketches"
OWN: tuple[type[Sketch], ...] = (MinMax, NullCount, Intervals, ValueList, Bloom, Ngram)
_MEMBERS = ("sketch", "refusal", "fields", "state", "joined", "row", "judge", "helps")


@cache
def sketches() -> Mapping[str, type[Sketch]]:
    """All sketches by their names in the log."""
    found: dict[str, type[Sketch]] = {one.sketch: one for one in OWN}
    for point in entry_points(group=GROUP):
        try:
            made: type[Sketch] = point.load()
        except (ImportError, AttributeError) as error:
            raise InvalidConfig(
                f"the sketch {point.name!r} cannot be loaded from {point.value}: {error}", detail="PLUG_IN"
            ) from error
        lacking = [member for member in _MEMBERS if not hasattr(made, member)]
        if lacking:
            raise InvalidConfig(
                f"the sketch {point.name!r} at {point.value} lacks {', '.join(lacking)}", detail="PLUG_IN"
            )
        if made.sketch in found:
            raise InvalidConfig(f"two packages bring a sketch {made.sketch!r}; uninstall one", detail="PLUG_IN")
        found[made.sketch] = made
    return found


def sketch_named(name: str) -> type[Sketch]:
    """By its name in the log, in SQL and on the command line: `min_max`, in any case."""
    found = sketches().get(name.lower())
    if found is None:
        raise InvalidIndex(
            f"no sketch {name!r} is known here; there are: {', '.join(sketches())}. Another package may have brought it",
            detail="SKETCH",
        )
    return found


def to_data(sketch: Sketch) -> dict[str, Any]:
    """What the log remembers of it."""
    options = {one.name: getattr(sketch, one.name) for one in dataclasses.fields(sketch)}  # type: ignore[arg-type]  # a dataclass
    own = {name: value for name, value in options.items() if name not in ("column", "columns")}
    return {"sketch": sketch.sketch, "columns": list(sketch.columns), **own}


def from_data(data: Mapping[str, Any]) -> Sketch:
    try:
        options = {name: value for name, value in data.items() if name not in ("sketch", "columns")}
        return sketch_named(data["sketch"])(*data["columns"], **options)
    except (KeyError, TypeError) as problem:
        raise CorruptIndex(f"the log names a sketch that does not fit together ({problem})", detail="SPEC") from problem
