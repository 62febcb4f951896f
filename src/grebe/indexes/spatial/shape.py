"""What the log remembers of a spatial index, taken apart: the columns that give a row its place, and what the content calls them.

Every row has a box, from its least corner to its greatest: of a point both are the same two columns, of a geometry they are its
envelope, which the content keeps instead of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from grebe.errors import CorruptIndex
from grebe.formats import Reading
from grebe.indexes.columns import Chosen
from grebe.indexes.content.shape import Shape, shape_of
from grebe.indexes.kind import FILE_COLUMN
from grebe.log.entry import IndexSpec
from grebe.predicate.tree import Path

POINTS, BOXES, WKB = "points", "boxes", "wkb"
ENVELOPE = ("_grebe_xmin", "_grebe_ymin", "_grebe_xmax", "_grebe_ymax")
_CORNERS = {POINTS: 2, BOXES: 4}


@dataclass(frozen=True, slots=True)
class Corner:
    """One coordinate of a corner: how a predicate names it, how the content does, and its type (Spark's, as text)."""

    path: Path
    content: str
    type: str


@dataclass(frozen=True)
class Places:
    form: str
    """POINTS, BOXES or WKB."""
    shape: Shape

    @property
    def reading(self) -> Reading:
        return self.shape.reading

    @property
    def columns(self) -> Sequence[Chosen]:
        return self.shape.columns

    @property
    def locators(self) -> tuple[str, ...]:
        return self.shape.locators

    @cached_property
    def corners(self) -> tuple[Corner, ...]:
        """x and y of the least corner, then, if they are others, those of the greatest."""
        if self.form == WKB:
            return tuple(Corner((name,), name, "double") for name in ENVELOPE)
        return tuple(Corner(one.path, one.content, one.type) for one in self.shape.on)

    @property
    def held(self) -> tuple[str, ...]:
        """Columns of the content that are columns of the table."""
        return () if self.form == WKB else tuple(one.content for one in self.shape.columns)

    @property
    def content(self) -> tuple[str, ...]:
        """All columns of the content, in their order."""
        own = self.held or tuple(one.content for one in self.corners)
        return (*own, FILE_COLUMN, *self.locators)


def places_of(index: str, spec: IndexSpec) -> Places:
    shape, form = shape_of(index, spec), spec.properties.get("form")
    if form not in (POINTS, BOXES, WKB) or len(shape.on) != _CORNERS.get(form, 1):
        raise CorruptIndex(f"what the log says of index {index} does not fit together; create it anew", detail="SPEC")
    return Places(form, shape)
