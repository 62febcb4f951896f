"""What the optimizer's rule asks, answered: the plan read, the tables behind it found, the planner asked, its decision as text.

The only state is what was found of tables, and the explanations that somebody waits for; any number of queries may ask at once.
"""

import json
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from grebe import telemetry
from grebe.clock import SYSTEM
from grebe.config import Config
from grebe.errors import GrebeError
from grebe.files import FileIds
from grebe.formats import Column, Reading
from grebe.formats.byte_cache import shared_cache
from grebe.formats.spark_types import type_json
from grebe.indexes.view.definition import by_times, column_of
from grebe.planner.choose import choose
from grebe.planner.decision import Decision
from grebe.planner.inquiry import Inquiry
from grebe.planner.observing import HearsQueries, Seat
from grebe.planner.query import Query, Relation
from grebe.planner.reasons import Code, Reason
from grebe.planner.tables import KnownIndex, KnownTable
from grebe.planner.views import Block
from grebe.predicate.tree import TRUE
from grebe.spark import readings, recording, rewrite
from grebe.spark.read_expressions import one_of, predicate, type_of_json
from grebe.spark.read_plan import SETTINGS, read_plan
from grebe.spark.shim import Shim
from grebe.spark.source import common_root
from grebe.spark.tables import NOTHING_SECONDS, Found, Tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_logger = logging.getLogger("grebe.spark")
# The file index of a catalog's table, after partitions were left out by the query's filters.
_PRUNED = ".PrunedInMemoryFileIndex"
_NO_READING = Reading("", (), ())
_NO_FILES = FileIds.of_ranges(())


Statement = Callable[["SparkSession", str, str], str]


@dataclass(frozen=True)
class Planned:
    """A query that was decided."""

    query: Query
    decision: Decision


class Planning:
    def __init__(self, shim: Shim, tables: Tables, config: Config) -> None:
        self.tables = tables
        self._shim = shim
        self.config = config
        self.inquiry = Inquiry(shared_cache(config.cache_bytes), self._damaged)
        self._cores = int(shim.context.defaultParallelism)
        self._awaited: dict[str, list[Planned]] = {}
        self._supposed: dict[str, Mapping[str, Found]] = {}
        """By token, tables as they are to be taken for (by their roots) while a query is planned that is not to be changed."""
        self._hears: HearsQueries | None = None
        self.seats: dict[str, Seat] = {}
        """The tables of queries that were heard of, by the places of their logs."""
        self._lock = threading.Lock()
        shim.bridge.setSettings(shim.java_list([*readings.SETTINGS, *SETTINGS]))

    def configure(self, config: Config) -> None:
        if config.cache_bytes != self.config.cache_bytes:
            self.inquiry = Inquiry(shared_cache(config.cache_bytes), self._damaged)
        self.config = config
        self._shim.bridge.setVerified(config.verify_index_data)
        self.tables.configure(config)

    def record(self, hears: HearsQueries | None) -> None:
        """Who is told of every query that has run; None: nobody."""
        self._hears = hears
        self._shim.bridge.setRecording(hears is not None)

    def answer(self, question: str, statement: Statement) -> str:
        """The text that `Rewriting` carries out; empty: leave the plan as it is. `statement` answers for statements on indexes."""
        number, _, text = question.partition(" ")
        if number == "lost":
            self.tables.lost(text)
            return ""
        asked = json.loads(text)
        if "statement" in asked:
            return statement(self._session_of(int(number)), asked["what"], asked["statement"])
        if "values" in asked:
            return self._by_keys(json.loads(asked["lookup"]), asked["values"])
        if "ran" in asked:
            self._ran(asked)
            return ""
        since = SYSTEM.monotonic()
        found: dict[int, Found] = {}
        query = read_plan(
            asked, lambda i, described: self._relation(int(number), i, described, asked, found), self._cores
        )
        tables = {one.table.uri: one.table for one in found.values()}
        if _have_views(tables.values()):
            query = self._with_blocks(int(number), query, tables.values(), asked)
        if not tables and not asked["token"]:
            return ""
        with telemetry.planning(_logger, list(tables), since) as told:
            decision = choose(query, tables, self.config, why=bool(asked["token"]), inquiry=self.inquiry)
            told.add(used=decision.used)
        as_of = tuple(dict.fromkeys(relation.as_of for relation in query.relations if relation.as_of))
        decision = replace(decision, as_of=as_of) if as_of else decision
        self._tell(asked["token"], Planned(query, decision))
        if asked["token"] in self._supposed:
            return ""
        return rewrite.to_text(decision, query, {one.table.uri: one.snapshot for one in found.values()})

    def _ran(self, told: Mapping[str, Any]) -> None:
        ran = recording.ran(told, self.tables.seat, self._cores)
        if ran is not None and self._hears is not None:
            self.seats.update((seat.place, seat) for seat in ran.seats if seat is not recording.NOWHERE)
            self._hears(ran)

    def _with_blocks(
        self, question: int, query: Query, tables: Iterable[KnownTable], asked: Mapping[str, Any]
    ) -> Query:
        """The query with all that views have to know of it."""
        blocks = json.loads(self._shim.bridge.blocks(question))
        views = [index.copy.definition for table in tables for index in table.indexes if index.copy is not None]
        joined = {base.uri for view in views if view is not None for base in view.bases[1:]}
        found = [one.number for one in query.relations if {one.table, one.root} & joined]
        relations = list(query.relations)
        columns = {
            attribute: (column_of(relations[number].table or relations[number].root, name), type_of_json(kind))
            for number, described in enumerate(asked["relations"])
            for attribute, name, kind in described["output"]
        }
        for number in found:
            if relations[number].table is None:
                relations[number] = _read(relations[number], asked["relations"][number], asked["settings"])
        return replace(
            query,
            relations=tuple(relations),
            blocks=tuple(
                Block.of(place, block, [predicate(each, columns) for each in block["predicates"]])
                for place, block in enumerate(blocks)
            ),
            digests={number: self._digest(question, number) for number in found},
        )

    def _digest(self, question: int, relation: int) -> str:
        digest = str(self._shim.bridge.digest(question, relation))
        return by_times(digest) if self.config.identity == "times" else digest

    def _session_of(self, question: int) -> "SparkSession":
        from pyspark.sql import SparkSession

        return SparkSession(self._shim.context, self._shim.bridge.sessionOf(question))

    def _by_keys(self, lookup: Mapping[str, Any], values: list[str | bool]) -> str:
        """Which files hold none of the keys that a join has found. Whatever version of the index knows a file knows it right."""
        found = self.tables.of_snapshot(lookup["table"], lookup["snapshot"])
        index = found.table.index(lookup["index"], lookup["replaced_at"]) if found else None
        if found is None or index is None or index.pruner is None:
            return ""
        predicate = one_of(tuple(lookup["path"]), lookup["type"], values)
        if predicate is None:
            return ""
        hits = self.inquiry.hits(found.table, index, predicate)
        entries = None if hits is None else self.inquiry.entries(found.table, index, predicate, hits)
        if entries is None:
            return ""
        having = FileIds.of(entries.files) & index.pruner.covered
        parts = self.inquiry.parts(found.table, index, entries, having)
        return rewrite.restriction_text(index.pruner.covered - having, parts)

    def _damaged(self, table: KnownTable, index: KnownIndex, problem: GrebeError) -> None:
        self.tables.set_aside(table.uri, index.name, problem.code, index.replaced_at)

    def await_under(self, token: str) -> None:
        with self._lock:
            self._awaited[token] = []

    def suppose(self, token: str, tables: Mapping[str, Found] | None) -> None:
        """None: no more."""
        if tables is None:
            self._supposed.pop(token, None)
        else:
            self._supposed[token] = tables

    def collected(self, token: str) -> list[Planned]:
        with self._lock:
            return self._awaited.pop(token)

    def _tell(self, token: str | None, planned: Planned) -> None:
        with self._lock:
            if token in self._awaited:
                self._awaited[token].append(planned)

    def _relation(
        self,
        question: int,
        number: int,
        described: Mapping[str, Any],
        asked: Mapping[str, Any],
        found: dict[int, Found],
    ) -> Relation:
        name = described.get("table") or described["roots"][0]
        relation = Relation(
            number,
            None,
            name,
            _NO_READING,
            (),
            frozenset(),
            TRUE,
            _NO_FILES,
            0,
            0,
            described["bytes"],
            root=described["roots"][0],
        )
        if not readings.is_ours(described):
            return replace(relation, obstacle=_obstacle(Code.UNSUPPORTED_RELATION, name, what=described["format"]))
        supposed = self._supposed.get(asked["token"] or "")
        table = (
            self.tables.find(described["roots"]) if supposed is None else supposed.get(common_root(described["roots"]))
        )
        if table is None and supposed is not None:
            return relation
        if table is None or not (table.table.indexes or supposed):
            self._shim.bridge.nothingAt(question, number, int(NOTHING_SECONDS * 1000))
            return relation
        found[number] = table
        try:
            reading = readings.reading_of(described, readings.with_defaults(asked["settings"]))
        except GrebeError as problem:
            obstacle = _obstacle(Code.UNSUPPORTED_RELATION, name, what=problem.code)
            return replace(relation, table=table.table.uri, obstacle=obstacle)
        lake = readings.lake_of(described)
        seen = table.state.seen if self.config.consistency == "snapshot" else None
        files = described.get("matched", {})
        if (files.get("snapshot"), files.get("registered")) != (table.snapshot, table.registered):
            files = json.loads(self._shim.bridge.match(question, number, table.snapshot))
        made = replace(
            relation,
            table=table.table.uri,
            reading=_unpruned(reading, table),
            listed=_ids(files["ids"]),
            listed_bytes=files["bytes"],
            unregistered_files=files["others"],
            unregistered_bytes=files["other_bytes"],
            deleted=_ids(files["deleted"]),
            obstacle=_in_the_way(name, described, reading, asked["flags"], files),
            # A lake format has left out files by itself.
            whole=lake is None
            and described["roots"] == [table.table.uri]
            and not described["files_class"].endswith(_PRUNED),
            by_parts=lake is None and not _asks_for_blocks(described, asked["flags"]),
        )
        if seen is None:
            return made
        if lake is not None:
            told = (
                f"{name}: as it is now; of a lake table the query names the version, here VERSION AS OF {seen.version}"
            )
            return replace(made, as_of=told)
        if files["changed"]:
            # What these held then cannot be read any more, and to leave them out would drop rows.
            told = f"{name}: as it is now, because {files['changed']:,} of its files changed since the last refresh of all indexes"
            return replace(made, as_of=told)
        if files["displaced"]:
            # No index ever held these rows with the values that they have now.
            told = f"{name}: as it is now, for the catalog gives some partitions other values than their folders spell"
            return replace(made, as_of=told)
        return _as_of(made, table.table, seen.files)


def _have_views(tables: Iterable[KnownTable]) -> bool:
    return any(index.copy is not None and index.copy.definition for table in tables for index in table.indexes)


def _read(relation: Relation, described: Mapping[str, Any], settings: Mapping[str, str]) -> Relation:
    """One of a table without a log, as it is read."""
    try:
        reading = readings.reading_of(described, readings.with_defaults(settings))
    except GrebeError as problem:
        return replace(relation, obstacle=_obstacle(Code.UNSUPPORTED_RELATION, relation.name, what=problem.code))
    return replace(relation, reading=reading)


def _as_of(relation: Relation, table: KnownTable, seen: FileIds) -> Relation:
    """Only the files of a snapshot."""
    listed = relation.listed & seen
    younger = len(relation.listed) - len(listed) + relation.unregistered_files
    return replace(
        relation,
        listed=listed,
        listed_bytes=table.bytes_of(listed),
        unregistered_files=0,
        unregistered_bytes=0,
        beyond=relation.listed - seen,
        as_of=f"{relation.name}: as of the last refresh of all indexes, without {younger:,} younger files",
    )


def _asks_for_blocks(described: Mapping[str, Any], flags: list[str]) -> bool:
    """Tell whether the query asks where the part of a file begins or ends that a task reads: ours are others than Spark's."""
    known = {*_names(described["data_schema"]), *_names(described["partition_schema"])}
    metadata = {number for number, column, _ in described["output"] if column not in known}
    asked = (path for number, *path in described["uses"] if number in metadata)
    return "input_file_block" in flags or any(not path or path[0].startswith("file_block") for path in asked)


def _in_the_way(
    name: str, described: Mapping[str, Any], reading: Reading, flags: list[str], files: Mapping[str, Any]
) -> Reason | None:
    columns = {column.name for column in reading.columns}
    if readings.lake_of(described) is None:
        columns = {*_names(described["data_schema"]), *_names(described["partition_schema"])}
    metadata = any(column not in columns for _, column, _ in described["output"])
    if metadata or "input_file" in flags:
        return _obstacle(Code.USES_FILE_METADATA, name)
    if "nondeterministic" in flags:
        return _obstacle(Code.UNSUPPORTED_RELATION, name, what="an expression that depends on where rows lie")
    if files["elsewhere"]:
        return _obstacle(Code.UNSUPPORTED_RELATION, name, what="timestamps of partitions in another time zone")
    return _obstacle(Code.UNSUPPORTED_RELATION, name, what="the same file twice") if files["twice"] else None


def _names(schema: str) -> list[str]:
    return [field["name"] for field in json.loads(schema)["fields"]]


def _obstacle(code: str, name: str, **arguments: Any) -> Reason:
    return Reason(code, "", arguments, name)


def _ids(ranges: str) -> FileIds:
    pairs = (part.split("-") for part in ranges.split(",") if part)
    return FileIds.of_ranges((int(first), int(last) + 1) for first, last in pairs)


def _unpruned(reading: Reading, table: Found) -> Reading:
    """Spark leaves out fields of structs that a plan does not use; the column is the same all the same."""
    recorded = {}
    if table.state.table and table.state.table.reading:
        recorded = {column.name: column for column in Reading.from_dict(table.state.table.reading).columns}
    columns = tuple(
        recorded[column.name] if _is_part(column, recorded.get(column.name)) else column for column in reading.columns
    )
    return replace(reading, columns=columns)


def _is_part(column: Column, whole: Column | None) -> bool:
    return (
        whole is not None
        and column.type != whole.type
        and column.default == whole.default
        and _part(type_json(column.type), type_json(whole.type))
    )


def _part(some: Any, whole: Any) -> bool:
    if not (isinstance(some, dict) and isinstance(whole, dict) and some["type"] == whole["type"]):
        return bool(some == whole)
    if some["type"] != "struct":
        return bool(some == whole)
    fields = {field["name"]: field["type"] for field in whole["fields"]}
    return all(field["name"] in fields and _part(field["type"], fields[field["name"]]) for field in some["fields"])
