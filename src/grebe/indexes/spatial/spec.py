"""What users ask for: `grebe.Spatial("by_place", x="lon", y="lat")`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from grebe.errors import CorruptIndex, InvalidIndex
from grebe.formats import Reading
from grebe.indexes import columns
from grebe.indexes.columns import Chosen
from grebe.indexes.content import entries
from grebe.indexes.content.copies import copy_of
from grebe.indexes.faults import Fault
from grebe.indexes.kind import Arranged, Copy, Kind, Pruner, Rows
from grebe.indexes.spatial.build import arrange
from grebe.indexes.spatial.checks import faults_of
from grebe.indexes.spatial.describe import describe
from grebe.indexes.spatial.probe import SpatialIndex
from grebe.indexes.spatial.shape import BOXES, ENVELOPE, POINTS, WKB, places_of
from grebe.indexes.spatial.suppose import suppose
from grebe.indexes.supposed import Sample, Supposed
from grebe.log.entry import ContentFile, IndexSpec
from grebe.log.states import IndexState
from grebe.store.protocol import Store

_NUMBERS = ("byte", "short", "integer", "long", "float", "double")
_AXES = ("x", "y", "x_max", "y_max")
_USE = 'Spatial(name, x="lon", y="lat"), with x_max= and y_max= for boxes, or on= a column of WKB'


@dataclass(frozen=True)
class Spatial:
    """Where the rows lie that have a place on a plane: a point (`x`, `y`), a box (`x_max` and `y_max` too), or a geometry in WKB
    (`on`). Two or four columns given as `on` are `x`, `y`, `x_max`, `y_max`. With `include`, a question about these columns needs
    no file of the table."""

    kind: ClassVar[str] = "spatial"
    name: str
    x: str | None = None
    y: str | None = None
    x_max: str | None = None
    y_max: str | None = None
    on: str | Sequence[str] = ()
    include: str | Sequence[str] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidIndex(f"an index needs a name: {_USE}", detail="NAME")
        object.__setattr__(self, "on", columns.names_of(self.on, "on", self.name))
        object.__setattr__(self, "include", columns.names_of(self.include, "include", self.name))
        for axis in _AXES:
            given = getattr(self, axis)
            if given is not None:
                columns.names_of([given], axis, self.name)
        self._spread_on()
        for name in (*self._columns, *self.include):
            columns.path_of(name, self.name)

    def _spread_on(self) -> None:
        """`on` stays a geometry alone."""
        named = [axis for axis in _AXES if getattr(self, axis) is not None]
        if len(self.on) in (2, 4) and not named:
            for axis, name in zip(_AXES, self.on, strict=False):
                object.__setattr__(self, axis, name)
            object.__setattr__(self, "on", ())
        elif tuple(named) not in ((), _AXES[:2], _AXES) or bool(named) == bool(self.on) or len(self.on) > 1:
            raise InvalidIndex(
                f"index {self.name}: columns of points, of boxes, or of a geometry: {_USE}", detail="COLUMNS"
            )
        if self.on and self.include:
            raise InvalidIndex(
                f"index {self.name}: include is for points and boxes; of a geometry the index keeps the envelope only",
                detail="COLUMNS",
            )

    @property
    def _columns(self) -> tuple[str, ...]:
        return tuple(self.on) or tuple(name for axis in _AXES if (name := getattr(self, axis)) is not None)

    def spec(self, reading: Reading, case_sensitive: bool, time_zone: str = "UTC", ansi: bool = True) -> IndexSpec:
        on = columns.choose(self._columns, reading, case_sensitive, self.name)
        include = columns.choose(self.include, reading, case_sensitive, self.name)
        columns.require_no_clash((*on, *include), reading, self.name)
        columns.require_kept(include, self.name)
        form = WKB if self.on else POINTS if len(on) == 2 else BOXES
        _require_places(on, form, self.name)
        return entries.spec_of(self.kind, on, include, reading, {"form": form})

    def reads(self, spec: IndexSpec) -> frozenset[str]:
        return frozenset(column.path[0] for column in places_of(self.name, spec).columns)

    def arranged(self, spec: IndexSpec, rows: Rows) -> Arranged:
        return arrange(self.name, spec, rows)

    def described(self, spec: IndexSpec, folder: str, store: Store) -> tuple[ContentFile, ...]:
        return describe(self.name, spec, folder, store)

    @staticmethod
    def faults_of(index: IndexState, store: Store, deep: bool) -> list[Fault]:
        return faults_of(index, store, deep)

    @staticmethod
    def copy_of(index: IndexState, store: Store) -> Copy | None:
        """The index holds its own columns, so that a query of just these reads nothing else; of a geometry it does not."""
        return None if places_of(index.name, index.spec).form == WKB else copy_of(index, store)

    @staticmethod
    def pruner_of(index: IndexState, store: Store) -> Pruner | None:
        return SpatialIndex.of(index, store)

    def supposed(self, spec: IndexSpec, sample: Sample) -> Supposed:
        return suppose(places_of(self.name, spec), sample)

    @classmethod
    def from_spec(cls, name: str, spec: IndexSpec) -> Kind:
        try:
            return cls(name, on=spec.columns, include=spec.properties["include"])
        except KeyError as lacking:
            raise CorruptIndex(
                f"the log does not say {lacking} of index {name}; create it anew", detail="SPEC"
            ) from lacking


def _require_places(chosen: Sequence[Chosen], form: str, index: str) -> None:
    for column in chosen:
        if form == WKB and column.type != "binary":
            raise InvalidIndex(
                f"index {index}: column {column.name} is {column.type}, and a geometry is WKB in a binary column; two columns of "
                "numbers are x= and y=",
                detail="KEY_TYPE",
            )
        if form != WKB and column.type not in _NUMBERS and not column.type.startswith("decimal("):
            kind = column.type if column.type.isalpha() else "no number"
            raise InvalidIndex(
                f"index {index}: column {column.name} is {kind}; coordinates are numbers. Store them as such, or name "
                "a geometry in WKB: on=",
                detail="KEY_TYPE",
            )
        if form != WKB and column.content in ENVELOPE:
            raise InvalidIndex(
                f"index {index}: {column.name} is a name that Grebe needs for envelopes; rename it",
                detail="RESERVED_NAME",
            )
