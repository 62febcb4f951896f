"""What users ask for: `grebe.Covering("by_customer", on="o_custkey", include=["o_totalprice"])`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from grebe.errors import CorruptIndex, InvalidIndex
from grebe.formats import Reading
from grebe.indexes import columns, where
from grebe.indexes.columns import Chosen
from grebe.indexes.content.checks import faults_of
from grebe.indexes.content.copies import copy_of
from grebe.indexes.content.directory import describe
from grebe.indexes.content.shape import shape_of
from grebe.indexes.covering.build import arrange
from grebe.indexes.faults import Fault
from grebe.indexes.kind import Arranged, Copy, Kind, Pruner, Rows
from grebe.log.entry import ContentFile, IndexSpec
from grebe.log.states import IndexState
from grebe.predicate.text import to_sql
from grebe.predicate.tree import Predicate, columns_of
from grebe.store.protocol import Store

MOST_BUCKETS = 65_536


@dataclass(frozen=True)
class Covering:
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
        if not isinstance(self.name, str) or not self.name:
            raise InvalidIndex("an index needs a name: Covering(name, on=…)", detail="NAME")
        object.__setattr__(self, "on", columns.names_of(self.on, "on", self.name))
        object.__setattr__(self, "include", columns.names_of(self.include, "include", self.name))
        object.__setattr__(self, "where", where.where_text(self.where, self.name))
        if not self.on:
            raise InvalidIndex(f"index {self.name}: on names no column", detail="COLUMNS")
        for name in (*self.on, *self.include):
            columns.path_of(name, self.name)
        _require_buckets(self.buckets, self.name)
        if not isinstance(self.lineage, bool):
            raise InvalidIndex(f"index {self.name}: lineage is True or False", detail="LINEAGE")

    def spec(self, reading: Reading, case_sensitive: bool, time_zone: str = "UTC", ansi: bool = True) -> IndexSpec:
        on = columns.choose(self.on, reading, case_sensitive, self.name)
        include = columns.choose(self.include, reading, case_sensitive, self.name)
        columns.require_no_clash((*on, *include), reading, self.name)
        columns.require_keys(on, self.name)
        columns.require_kept(include, self.name)
        condition = self._condition(reading, case_sensitive, time_zone, ansi)
        used = [column.path for column in (*on, *include)]
        kept = columns.restricted(reading, used if condition is None else [*used, *columns_of(condition)])
        return IndexSpec(
            kind=self.kind,
            columns=_names(on),
            properties={
                "include": list(_names(include)),
                "buckets": self.buckets,
                "lineage": self.lineage,
                "where": None if condition is None else to_sql(condition),
                "reading": kept.to_dict(),
            },
        )

    def reads(self, spec: IndexSpec) -> frozenset[str]:
        shape = shape_of(self.name, spec)
        condition = columns_of(where.recalled(shape.where, shape.reading)) if shape.where is not None else ()
        return frozenset(path[0] for path in (*(column.path for column in shape.columns), *condition))

    def arranged(self, spec: IndexSpec, rows: Rows) -> Arranged:
        return arrange(self.name, spec, rows)

    def described(self, spec: IndexSpec, folder: str, store: Store) -> tuple[ContentFile, ...]:
        return describe(self.name, spec, folder, store)

    @staticmethod
    def faults_of(index: IndexState, store: Store, deep: bool) -> list[Fault]:
        return faults_of(index, store, deep)

    @staticmethod
    def copy_of(index: IndexState, store: Store) -> Copy:
        return copy_of(index, store)

    @staticmethod
    def pruner_of(index: IndexState, store: Store) -> Pruner | None:
        return None

    @classmethod
    def from_spec(cls, name: str, spec: IndexSpec) -> Kind:
        known = spec.properties
        try:
            return cls(name, spec.columns, known["include"], known["buckets"], known["lineage"], known["where"])
        except KeyError as lacking:
            raise CorruptIndex(
                f"the log does not say {lacking} of index {name}; create it anew", detail="SPEC"
            ) from lacking

    def _condition(self, reading: Reading, case_sensitive: bool, time_zone: str, ansi: bool) -> Predicate | None:
        text = where.where_text(self.where, self.name)
        if text is None:
            return None
        return where.understood(text, reading, case_sensitive, time_zone, ansi, self.name)


def _names(chosen: Sequence[Chosen]) -> tuple[str, ...]:
    return tuple(column.name for column in chosen)


def _require_buckets(buckets: Any, index: str) -> None:
    if buckets is None:
        return
    if not isinstance(buckets, int) or isinstance(buckets, bool) or not 0 <= buckets <= MOST_BUCKETS:
        raise InvalidIndex(
            f"index {index}: buckets is a number from 0 (sorted as a whole) to {MOST_BUCKETS:,}, or None to have it chosen",
            detail="BUCKETS",
        )
