"""What users ask for: `grebe.View("by_day", "SELECT day, sum(price) FROM orders GROUP BY day")`."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from grebe.errors import InvalidIndex
from grebe.formats import Column, Reading
from grebe.indexes.content.copies import copy_of
from grebe.indexes.content.standing_in import StandsIn
from grebe.indexes.kind import Arranged, Copy, Kind, Rows
from grebe.indexes.supposed import Sample, Supposed
from grebe.indexes.view.build import arrange
from grebe.indexes.view.definition import Definition
from grebe.indexes.view.suppose import suppose
from grebe.log.entry import IndexSpec
from grebe.log.states import IndexState
from grebe.predicate.text import column_sql
from grebe.store.protocol import Store


@dataclass(frozen=True)
class View(StandsIn):
    """The rows of a query over this table, and maybe others: `query` is its SQL, or a DataFrame.

    Queries that it answers use it by themselves: they need not name it.
    """

    kind: ClassVar[str] = "view"

    name: str
    query: Any
    """SQL or a DataFrame; once Spark has said what it means, a `Definition`."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidIndex("an index needs a name: View(name, query)", detail="NAME")
        if isinstance(self.query, str):
            object.__setattr__(self, "query", self.query.strip().rstrip(";"))
        if not self.query or not (isinstance(self.query, str | Definition) or hasattr(self.query, "_jdf")):
            raise InvalidIndex(f"view {self.name}: give its query as SQL or as a DataFrame", detail="QUERY")

    def __repr__(self) -> str:
        return f"View({self.name!r}, {(self.query.text if isinstance(self.query, Definition) else self.query)!r})"

    @property
    def definition(self) -> Definition | None:
        return self.query if isinstance(self.query, Definition) else None

    def meaning(self, definition: Definition) -> "View":
        return replace(self, query=definition)

    def spec(self, reading: Reading, case_sensitive: bool, time_zone: str = "UTC", ansi: bool = True) -> IndexSpec:
        known = self._known
        if not known.bases[0].reading.agrees_on(reading, sorted(known.reads())):
            raise InvalidIndex(
                f"view {self.name}: columns of its table are gone, or are read otherwise than when it was created; create it anew",
                detail="VIEW_BASE",
            )
        own = [Column(name, kind) for name, kind in known.fields]
        return IndexSpec(
            kind=self.kind,
            columns=tuple(column_sql((one.name,)) for one in known.keys),
            properties={
                "include": [column_sql((one.name,)) for one in known.measures],
                "buckets": 0,
                "lineage": True,
                "where": None,
                "reading": Reading.of("parquet", {}, own, time_zone, local_times=False).to_dict(),
                "definition": known.to_dict(),
            },
        )

    def reads(self, spec: IndexSpec) -> frozenset[str]:
        return self._known.reads()

    def arranged(self, spec: IndexSpec, rows: Rows) -> Arranged:
        return arrange(self._known, rows)

    def supposed(self, spec: IndexSpec, sample: Sample) -> Supposed:
        return suppose(self._known, sample)

    @staticmethod
    def copy_of(index: IndexState, store: Store) -> Copy:
        return replace(copy_of(index, store), definition=_recalled(index.name, index.spec))

    @classmethod
    def from_spec(cls, name: str, spec: IndexSpec) -> Kind:
        return cls(name, _recalled(name, spec))

    @property
    def _known(self) -> Definition:
        if self.definition is None:
            raise InvalidIndex(
                f"view {self.name}: only a session of Spark can say what its query means", detail="QUERY"
            )
        return self.definition


def _recalled(name: str, spec: IndexSpec) -> Definition:
    known: Any = spec.properties.get("definition")
    return Definition.from_dict(name, known if isinstance(known, dict) else {})
