"""What users ask for: `grebe.Covering("by_customer", on="o_custkey", include=["o_totalprice"])`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from grebe.errors import CorruptIndex, InvalidIndex
from grebe.formats import Reading
from grebe.indexes import where
from grebe.indexes.content import copied
from grebe.indexes.content.shape import shape_of
from grebe.indexes.content.standing_in import StandsIn
from grebe.indexes.covering.build import arrange
from grebe.indexes.covering.suppose import suppose
from grebe.indexes.kind import Arranged, Kind, Rows
from grebe.indexes.supposed import Sample, Supposed
from grebe.log.entry import IndexSpec
from grebe.predicate.tree import Predicate

MOST_BUCKETS = 65_536


@dataclass(frozen=True)
class Covering(StandsIn):
    """A copy of the columns `on` and `include`, laid out by `on`.

    `buckets`: so many hash buckets; 0: sorted as a whole; None: chosen from the data. `where`: only the rows of which this is true.
    Without `lineage` it cannot tell rows of files that are gone, so that it serves only while all files it covers are there.
    """

    kind: ClassVar[str] = "covering"

    name: str
    on: str | Sequence[str]
    include: str | Sequence[str] = ()
    buckets: int | None = None
    lineage: bool = True
    where: str | Predicate | None = None

    def __post_init__(self) -> None:
        copied.require_named("Covering", self.name)
        on, include = copied.columns_named(self.on, self.include, self.name)
        object.__setattr__(self, "on", on)
        object.__setattr__(self, "include", include)
        object.__setattr__(self, "where", where.where_text(self.where, self.name))
        _require_buckets(self.buckets, self.name)
        copied.require_lineage(self.lineage, self.name)

    def spec(self, reading: Reading, case_sensitive: bool, time_zone: str = "UTC", ansi: bool = True) -> IndexSpec:
        own = {"buckets": self.buckets, "lineage": self.lineage}
        condition = where.where_text(self.where, self.name)
        named = copied.columns_named(self.on, self.include, self.name)
        return copied.spec_of(self.kind, self.name, named, condition, own, reading, case_sensitive, time_zone, ansi)

    def reads(self, spec: IndexSpec) -> frozenset[str]:
        return copied.reads_of(self.name, spec)

    def arranged(self, spec: IndexSpec, rows: Rows) -> Arranged:
        return arrange(self.name, spec, rows)

    def supposed(self, spec: IndexSpec, sample: Sample) -> Supposed:
        return suppose(shape_of(self.name, spec), sample)

    @classmethod
    def from_spec(cls, name: str, spec: IndexSpec) -> Kind:
        known = spec.properties
        try:
            return cls(name, spec.columns, known["include"], known["buckets"], known["lineage"], known["where"])
        except KeyError as lacking:
            raise CorruptIndex(
                f"the log does not say {lacking} of index {name}; create it anew", detail="SPEC"
            ) from lacking


def _require_buckets(buckets: Any, index: str) -> None:
    if buckets is None:
        return
    if not isinstance(buckets, int) or isinstance(buckets, bool) or not 0 <= buckets <= MOST_BUCKETS:
        raise InvalidIndex(
            f"index {index}: buckets is a number from 0 (sorted as a whole) to {MOST_BUCKETS:,}, or None to have it chosen",
            detail="BUCKETS",
        )
