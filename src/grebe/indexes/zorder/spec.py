"""What users ask for: `grebe.ZOrder("by_place", on=["lon", "lat"], include=["fare"])`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from grebe.errors import CorruptIndex, InvalidIndex
from grebe.formats import Reading
from grebe.indexes import where
from grebe.indexes.content import copied
from grebe.indexes.content.shape import shape_of
from grebe.indexes.content.standing_in import StandsIn
from grebe.indexes.kind import Arranged, Kind, Rows
from grebe.indexes.supposed import Sample, Supposed, along
from grebe.indexes.zorder.build import arrange
from grebe.indexes.zorder.curve import CURVES
from grebe.log.entry import IndexSpec
from grebe.predicate.tree import Predicate

MOST_COLUMNS = 8


@dataclass(frozen=True)
class ZOrder(StandsIn):
    """A copy of the columns `on` and `include`, its rows along a curve through all columns `on`: for ranges of any of them.

    `curve`: `hilbert`, or `z`. `where`: only the rows of which this is true. Without `lineage` it cannot tell rows of files that
    are gone, so that it serves only while all files it covers are there.
    """

    kind: ClassVar[str] = "zorder"

    name: str
    on: str | Sequence[str]
    include: str | Sequence[str] = ()
    curve: str = CURVES[0]
    lineage: bool = True
    where: str | Predicate | None = None

    def __post_init__(self) -> None:
        copied.require_named("ZOrder", self.name)
        on, include = copied.columns_named(self.on, self.include, self.name)
        object.__setattr__(self, "on", on)
        object.__setattr__(self, "include", include)
        object.__setattr__(self, "where", where.where_text(self.where, self.name))
        if len(on) > MOST_COLUMNS:
            raise InvalidIndex(
                f"index {self.name}: on names {len(on)} columns; along a curve through more than {MOST_COLUMNS} none of them would "
                "be near each other. Name those that most queries ask for, and include the others",
                detail="COLUMNS",
            )
        if self.curve not in CURVES:
            raise InvalidIndex(
                f"index {self.name}: curve is one of {', '.join(CURVES)}, not {self.curve!r}", detail="CURVE"
            )
        copied.require_lineage(self.lineage, self.name)

    def spec(self, reading: Reading, case_sensitive: bool, time_zone: str = "UTC", ansi: bool = True) -> IndexSpec:
        copied.require_own_names(reading, self.name)
        own = {"buckets": 0, "curve": self.curve, "lineage": self.lineage}
        condition = where.where_text(self.where, self.name)
        named = copied.columns_named(self.on, self.include, self.name)
        return copied.spec_of(self.kind, self.name, named, condition, own, reading, case_sensitive, time_zone, ansi)

    def reads(self, spec: IndexSpec) -> frozenset[str]:
        return copied.reads_of(self.name, spec)

    def arranged(self, spec: IndexSpec, rows: Rows) -> Arranged:
        return arrange(self.name, spec, rows)

    def supposed(self, spec: IndexSpec, sample: Sample) -> Supposed:
        shape = shape_of(self.name, spec)
        return along(sample, shape.on, shape.columns, f"along a {self.curve} curve through {len(shape.on)} columns")

    @classmethod
    def from_spec(cls, name: str, spec: IndexSpec) -> Kind:
        known = spec.properties
        try:
            return cls(name, spec.columns, known["include"], known["curve"], known["lineage"], known["where"])
        except KeyError as lacking:
            raise CorruptIndex(
                f"the log does not say {lacking} of index {name}; create it anew", detail="SPEC"
            ) from lacking
