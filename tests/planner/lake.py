"""A lake on paper: tables with sizes, indexes with content, and queries over them, for tests that decide and read nothing."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from grebe.config import Config
from grebe.files import FileIds
from grebe.formats import Reading
from grebe.formats.reading import Column
from grebe.indexes.kind import Copy, Layout, Run
from grebe.planner.choose import choose
from grebe.planner.decision import Decision, StandIn
from grebe.planner.query import Attribute, Key, Node, Query, Relation, Scan, Settings
from grebe.planner.tables import KnownIndex, KnownTable
from grebe.predicate.bind import bind
from grebe.predicate.normalise import normalise
from grebe.predicate.parse import parse
from grebe.predicate.tree import TRUE, Predicate

MB = 1_000_000
SETTINGS = Settings(
    cores=2,
    shuffle_partitions=8,
    broadcast_bytes=10 * 1024 * 1024,
    adaptive=True,
    adaptive_broadcast_bytes=10 * 1024 * 1024,
    bucketing=True,
)
NO_BROADCAST = replace(SETTINGS, broadcast_bytes=-1, adaptive_broadcast_bytes=-1)


@dataclass(frozen=True)
class Source:
    """A table of equally large files."""

    name: str
    columns: Mapping[str, str]
    rows: int
    bytes: int
    files: int = 8
    indexes: tuple[KnownIndex, ...] = ()
    format: str = "parquet"
    options: Mapping[str, str] = field(default_factory=dict)
    partitions: tuple[str, ...] = ()

    @property
    def uri(self) -> str:
        return f"file:///lake/{self.name}"

    @property
    def reading(self) -> Reading:
        columns = [Column(name, kind, partition=name in self.partitions) for name, kind in self.columns.items()]
        return Reading.of(self.format, self.options, columns, "UTC", local_times=False)

    @property
    def known(self) -> KnownTable:
        return KnownTable(self.uri, 7, self.indexes, np.full(self.files, self.bytes // self.files, np.int64))

    def having(self, *indexes: KnownIndex) -> "Source":
        return replace(self, indexes=(*self.indexes, *indexes))

    def predicate(self, text: str) -> Predicate:
        return normalise(bind(parse(text), self.reading.schema)) if text else TRUE


def content(
    sizes: Sequence[int],
    rows: Sequence[int],
    buckets: Sequence[int],
    bounds: Sequence[tuple[Any, Any]] | None = None,
    nulls: Sequence[int | None] | None = None,
    kind: pa.DataType | None = None,
) -> pa.Table:
    ends = bounds or [(None, None)] * len(sizes)
    kind = kind or pa.int64()
    return pa.table(
        {
            "path": [f"data/{number}.gix" for number in range(len(sizes))],
            "size": pa.array(sizes, pa.int64()),
            "rows": pa.array(rows, pa.int64()),
            "bucket": pa.array(buckets, pa.int32()),
            "min": pa.array([low for low, _ in ends], kind),
            "max": pa.array([high for _, high in ends], kind),
            "nulls": pa.array(nulls or [0 if bounds else None] * len(sizes), pa.int64()),
        }
    )


def covering(
    source: Source,
    name: str,
    on: Iterable[str],
    include: Iterable[str] = (),
    *,
    buckets: int = 8,
    hashed: int | None = None,
    bytes: int | None = None,
    runs: int = 1,
    between: tuple[Any, Any] | None = None,
    where: str | None = None,
    lineage: bool = True,
    covered: Iterable[int] | None = None,
    state: str = "ACTIVE",
    set_aside: str = "",
) -> KnownIndex:
    """An index of all files unless said otherwise. `hashed`: by so many columns of `on`, else by all. `between`: bounds of the
    first column; without buckets, cut into 16 ranges."""
    on, include = tuple(on), tuple(include)
    ids = FileIds.of(range(source.files) if covered is None else covered)
    share = len(ids) / source.files
    size = bytes if bytes is not None else int(source.bytes * len(on + include) / len(source.columns))
    kind = source.reading.schema.field(on[0]).type
    per_run = buckets or 16
    count = per_run * runs
    return KnownIndex(
        name,
        "covering",
        state,
        Copy(
            name=name,
            reading=source.reading,
            columns={(column,): column for column in on + include},
            schema="{}",
            layout=Layout(buckets, on[:hashed] if buckets else (), on),
            where=None if where is None else source.predicate(where),
            lineage=lineage,
            rows_numbered=False,
            covered=ids,
            content=content(
                [int(size * share) // count] * count,
                [int(source.rows * share) // count] * count,
                [number % per_run if buckets else -1 for number in range(count)],
                None if between is None else _cut(between, per_run, bool(buckets)) * runs,
                kind=kind,
            ),
            runs=tuple(Run(tuple(range(run * per_run, (run + 1) * per_run))) for run in range(runs)),
            key=f"{source.name}/{name}/{buckets}/{runs}/{size}/{ids!r}/{between}/{where}",
            bounded=on[:1],
        ),
        set_aside,
    )


def _cut(between: tuple[Any, Any], parts: int, bucketed: bool) -> list[tuple[Any, Any]]:
    low, high = between
    if bucketed:
        return [between] * parts
    step = (high - low) / parts
    return [(low + step * part if part else low, low + step * (part + 1)) for part in range(parts)]


class Ask:
    """A query in the making: attributes are numbered as scans are added."""

    def __init__(self, settings: Settings = SETTINGS) -> None:
        self.settings = settings
        self.sources: dict[str, Source] = {}
        self.relations: list[Relation] = []
        self._next = 1

    def scan(self, source: Source, columns: Iterable[str], where: str = "", **facts: Any) -> "Scanned":
        predicate = source.predicate(where)
        attributes = {}
        for column in columns:
            attributes[column] = Attribute(self._next, (column,), source.columns[column])
            self._next += 1
        number = len(self.relations)
        listed = FileIds.of(range(source.files))
        relation = Relation(
            number=number,
            table=source.uri,
            name=source.name,
            reading=source.reading,
            attributes=tuple(attributes.values()),
            required=frozenset(attribute.path for attribute in attributes.values()),
            predicate=predicate,
            listed=listed,
            listed_bytes=source.bytes,
            unregistered_files=0,
            unregistered_bytes=0,
        )
        self.relations.append(replace(relation, **facts))
        self.sources[source.uri] = source
        return Scanned(Scan(number), {name: attribute.id for name, attribute in attributes.items()})

    def fresh(self) -> int:
        self._next += 1
        return self._next - 1

    def query(self, *roots: Node, **hints: Any) -> Query:
        return Query(roots, tuple(self.relations), self.settings, **hints)

    @property
    def tables(self) -> dict[str, KnownTable]:
        return {uri: source.known for uri, source in self.sources.items()}

    def decide(self, *roots: Node, config: Config | None = None, **hints: Any) -> Decision:
        return choose(self.query(*roots, **hints), self.tables, config or Config())


@dataclass(frozen=True)
class Scanned:
    node: Node
    ids: Mapping[str, int]

    def __getitem__(self, column: str) -> Key:
        return self.ids[column]


def picked(decision: Decision) -> dict[str, str]:
    """Relation -> index, with how it is read: `by_key/8s` is as 8 sorted partitions, `/0` as plain files."""
    return {
        f"{choice.name}#{choice.relation}": f"{choice.index}/{choice.buckets}{'s' if choice.ordered else ''}"
        for choice in decision.choices
        if isinstance(choice, StandIn)
    }
