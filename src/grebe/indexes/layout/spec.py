"""What users ask for: `grebe.Layout("for_dashboards", queries=["day >= DATE '2024-01-01' AND lon BETWEEN 7 AND 8", …])`."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from grebe.errors import CorruptIndex, InvalidIndex
from grebe.formats import Reading
from grebe.indexes import columns, where
from grebe.indexes.content import copied
from grebe.indexes.content.shape import shape_of
from grebe.indexes.content.standing_in import StandsIn
from grebe.indexes.kind import Arranged, Kind, Rows
from grebe.indexes.layout.build import arrange
from grebe.indexes.layout.logged import Logged, asked_of, logged, understood
from grebe.indexes.layout.suppose import suppose
from grebe.indexes.supposed import Sample, Supposed
from grebe.log.entry import IndexSpec
from grebe.predicate.text import column_sql
from grebe.predicate.tree import Path, Predicate

MOST_COLUMNS = 32
_OneQuery = str | Predicate | tuple[str | Predicate, float]


@dataclass(frozen=True)
class Layout(StandsIn):
    """A copy of some columns, its rows laid out so that the logged queries, and those like them, read little of it.

    `queries`: predicates, each alone or with its weight; text may hold several, with semicolons between them. `on`: the columns
    that rows are laid out by, unless they are those that queries compare with constants. `include`: others to keep, unless it is
    all. `where` and `lineage` are as of any copy.
    """

    kind: ClassVar[str] = "layout"

    name: str
    queries: str | Predicate | Sequence[_OneQuery]
    on: str | Sequence[str] | None = None
    include: str | Sequence[str] | None = None
    lineage: bool = True
    where: str | Predicate | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidIndex("an index needs a name: Layout(name, queries=[…])", detail="NAME")
        object.__setattr__(self, "queries", logged(self.queries, self.name))
        for what in ("on", "include"):
            given = getattr(self, what)
            if given is not None:
                names = columns.names_of(given, what, self.name)
                for one in names:
                    columns.path_of(one, self.name)
                object.__setattr__(self, what, names or None if what == "on" else names)
        object.__setattr__(self, "where", where.where_text(self.where, self.name))
        copied.require_lineage(self.lineage, self.name)

    def spec(self, reading: Reading, case_sensitive: bool, time_zone: str = "UTC", ansi: bool = True) -> IndexSpec:
        copied.require_own_names(reading, self.name)
        queries = understood(logged(self.queries, self.name), reading, case_sensitive, time_zone, ansi, self.name)
        on = self._on(queries, reading, case_sensitive)
        named = ([column_sql(path) for path in on], self._include(on, reading))
        own = {"queries": [list(one) for one in asked_of(queries, on)], "buckets": 0, "lineage": self.lineage}
        condition = where.where_text(self.where, self.name)
        return copied.spec_of(self.kind, self.name, named, condition, own, reading, case_sensitive, time_zone, ansi)

    def _on(self, queries: Sequence[Logged], reading: Reading, case_sensitive: bool) -> list[Path]:
        if self.on is not None:
            chosen = columns.choose(columns.names_of(self.on, "on", self.name), reading, case_sensitive, self.name)
            if len(chosen) > MOST_COLUMNS:
                raise InvalidIndex(
                    f"index {self.name}: on names {len(chosen)} columns, more than {MOST_COLUMNS}; name those that most queries "
                    "ask for, and include the others",
                    detail="COLUMNS",
                )
            return [one.path for one in chosen]
        asked: Counter[Path] = Counter()
        for query in queries:
            for path in query.compared:
                asked[path] += query.weight  # type: ignore[assignment]  # a counter of weights
        if not asked:
            raise InvalidIndex(
                f"index {self.name}: no query compares a column with a constant, so that there is nothing to lay rows out by",
                detail="QUERIES",
            )
        return sorted(asked, key=lambda path: (-asked[path], path))[:MOST_COLUMNS]

    def _include(self, on: Sequence[Path], reading: Reading) -> Sequence[str]:
        if self.include is not None:
            return columns.names_of(self.include, "include", self.name)
        return [column_sql((one.name,)) for one in reading.columns if (one.name,) not in on and columns.is_kept(one)]

    def reads(self, spec: IndexSpec) -> frozenset[str]:
        return copied.reads_of(self.name, spec)

    def arranged(self, spec: IndexSpec, rows: Rows) -> Arranged:
        return arrange(self.name, spec, rows)

    def supposed(self, spec: IndexSpec, sample: Sample) -> Supposed:
        return suppose(spec, shape_of(self.name, spec), sample)

    @classmethod
    def from_spec(cls, name: str, spec: IndexSpec) -> Kind:
        known = spec.properties
        try:
            queries = [(text, weight) for text, weight in known["queries"]]
            return cls(name, queries, spec.columns, known["include"], known["lineage"], known["where"])
        except (KeyError, TypeError, ValueError) as lacking:
            raise CorruptIndex(
                f"the log does not say {lacking} of index {name}; create it anew", detail="SPEC"
            ) from lacking
