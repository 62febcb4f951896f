"""What users ask for: `grebe.Lookup("by_order", on="o_orderkey")`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from grebe.errors import CorruptIndex, InvalidIndex
from grebe.formats import Reading
from grebe.indexes import columns
from grebe.indexes.content import entries
from grebe.indexes.content.checks import faults_of
from grebe.indexes.content.copies import copy_of
from grebe.indexes.content.directory import describe
from grebe.indexes.content.shape import shape_of
from grebe.indexes.faults import Fault
from grebe.indexes.kind import Arranged, Copy, Kind, Pruner, Rows
from grebe.indexes.lookup.build import arrange
from grebe.indexes.lookup.probe import LookupIndex
from grebe.indexes.lookup.suppose import suppose
from grebe.indexes.supposed import Sample, Supposed
from grebe.log.entry import ContentFile, IndexSpec
from grebe.log.states import IndexState
from grebe.store.protocol import Store


@dataclass(frozen=True)
class Lookup:
    """Where in which file the rows of a key lie, for the columns `on`. With `include`, a query of these columns needs no file."""

    kind: ClassVar[str] = "lookup"

    name: str
    on: str | Sequence[str]
    include: str | Sequence[str] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidIndex("an index needs a name: Lookup(name, on=…)", detail="NAME")
        object.__setattr__(self, "on", columns.names_of(self.on, "on", self.name))
        object.__setattr__(self, "include", columns.names_of(self.include, "include", self.name))
        if not self.on:
            raise InvalidIndex(f"index {self.name}: on names no column", detail="COLUMNS")
        for name in (*self.on, *self.include):
            columns.path_of(name, self.name)

    def spec(self, reading: Reading, case_sensitive: bool, time_zone: str = "UTC", ansi: bool = True) -> IndexSpec:
        on = columns.choose(self.on, reading, case_sensitive, self.name)
        include = columns.choose(self.include, reading, case_sensitive, self.name)
        columns.require_no_clash((*on, *include), reading, self.name)
        columns.require_keys(on, self.name)
        columns.require_kept(include, self.name)
        return entries.spec_of(self.kind, on, include, reading, {})

    def reads(self, spec: IndexSpec) -> frozenset[str]:
        return frozenset(column.path[0] for column in shape_of(self.name, spec).columns)

    def arranged(self, spec: IndexSpec, rows: Rows) -> Arranged:
        return arrange(self.name, spec, rows)

    def described(self, spec: IndexSpec, folder: str, store: Store) -> tuple[ContentFile, ...]:
        return describe(self.name, spec, folder, store)

    @staticmethod
    def faults_of(index: IndexState, store: Store, deep: bool) -> list[Fault]:
        return faults_of(index, store, deep)

    @staticmethod
    def copy_of(index: IndexState, store: Store) -> Copy:
        """The index holds its own columns, so that a query of just these reads nothing else."""
        return copy_of(index, store)

    @staticmethod
    def pruner_of(index: IndexState, store: Store) -> Pruner | None:
        return LookupIndex.of(index, store)

    def supposed(self, spec: IndexSpec, sample: Sample) -> Supposed:
        return suppose(shape_of(self.name, spec), sample)

    @classmethod
    def from_spec(cls, name: str, spec: IndexSpec) -> Kind:
        try:
            return cls(name, spec.columns, spec.properties["include"])
        except KeyError as lacking:
            raise CorruptIndex(
                f"the log does not say {lacking} of index {name}; create it anew", detail="SPEC"
            ) from lacking
