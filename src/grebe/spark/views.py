"""What a query that is to be stored means: its tables, conditions and columns, as Spark's optimizer understands them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from grebe.clock import SYSTEM, Clock
from grebe.errors import GrebeError, InvalidIndex, InvalidStatement, SourceChanged, TableNotFound, Unsupported
from grebe.files import canonical_uri
from grebe.formats.spark_types import type_text
from grebe.indexes.view.definition import (
    ROWS,
    Base,
    Condition,
    Definition,
    Function,
    Key,
    Measure,
    column_of,
    same_files,
)
from grebe.indexes.view.nodes import Refused
from grebe.indexes.view.trees import is_attempt, text_of
from grebe.indexes.where import unsure_casts
from grebe.predicate.normalise import normalise
from grebe.predicate.text import to_sql
from grebe.predicate.tree import opaque_terms
from grebe.sources.globs import is_glob
from grebe.sources.roots import allowed_roots, is_allowed
from grebe.spark import readings
from grebe.spark.conditions import condition_of
from grebe.spark.queries import frame_of_query, require_query
from grebe.spark.read_expressions import predicate, type_of_json
from grebe.spark.shim import Shim, load
from grebe.spark.view_check import require_same

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Seconds within which two changes of a file may leave its time as it is.
_SETTLING_LOCAL, _SETTLING = 0.02, 2.0
_ZONE, _ANSI = "spark.sql.session.timeZone", "spark.sql.ansi.enabled"
# The path of a base is that of one folder, whatever signs it has.
_LITERALLY = {"__globPaths__": "false"}
_DEFAULT = '"EXISTS_DEFAULT"'
_SUMS = {"Sum": "sum", "Min": "min", "Max": "max"}
_NUMBERS = ("byte", "short", "integer", "long", "float", "double", "decimal")
_SELF_DESCRIBING = ("parquet", "orc", "avro")
_UNKEPT_KEYS = ("float", "double", "array", "map", "struct", "interval", "variant", "collate", "geo")


def definition_of(session: "SparkSession", query: "str | DataFrame", table: str, index: str) -> Definition:
    """Raises `InvalidIndex` for a query that no view can store. `table`: the one that the view is created on."""
    shim = load(session)
    frame = _frame(session, query, index)
    said = json.loads(shim.bridge.stored(frame._jdf, table))
    if said["opaque"]:
        raise InvalidIndex(
            f"view {index}: {said['opaque'][0]} may give something else tomorrow, or only its author knows what; a view "
            "stores what every query would find",
            detail="VIEW_NOT_STABLE",
        )
    if said["lossy"]:
        raise InvalidIndex(
            f"view {index}: its query has a constant that is {said['lossy'][0]}, which a view cannot store exactly; take it from a "
            "table, or leave it out",
            detail="VIEW_CONSTANT",
        )
    if "node" in said:
        raise InvalidIndex(
            f"view {index}: its query has a {said['node']}, and a view stores tables that are joined by inner joins, filtered, "
            "projected and grouped once",
            detail="VIEW_SHAPE",
        )
    bases = _bases(session, shim, said["relations"], table, index)
    definition = _Meant(index, said, bases, _settings(session)).definition(query if isinstance(query, str) else "")
    require_same(session, frame, said, definition, table, index)
    return definition


def _settings(session: "SparkSession") -> dict[str, str]:
    return {
        name: str(session.conf.get(name)).lower() if name == _ANSI else str(session.conf.get(name))
        for name in (_ZONE, _ANSI)
    }


def with_files(session: "SparkSession", definition: Definition, clock: Clock = SYSTEM) -> Definition:
    """With the tables beside the first as they are now. Raises `Unsupported` in a session whose words mean something else."""
    now = _settings(session)
    zoned = definition.has_local_times or any(definition.settings[_ZONE] in text_of(tree) for tree in definition.trees)
    different = [name for name in (_ZONE, _ANSI) if now[name] != definition.settings[name] and (zoned or name == _ANSI)]
    if different:
        raise Unsupported(
            f"the view was made under {different[0]} = {definition.settings[different[0]]}, and means something else under "
            f"{now[different[0]]}; set that as it was, or create the view anew",
            detail="VIEW_SESSION",
        )
    if len(definition.bases) == 1:
        return definition
    before = _files(session, definition)
    clock.sleep(max(_SETTLING_LOCAL if one.uri.startswith("file:") else _SETTLING for one in definition.bases[1:]))
    if _files(session, definition) != before:
        raise _changing(definition)
    others = [replace(one, files=files) for one, files in zip(definition.bases[1:], before, strict=True)]
    return replace(definition, bases=(definition.bases[0], *others))


def require_allowed_bases(definition: Definition, table: str, allowed: Sequence[str]) -> None:
    """Raise `Unsupported` if the view joins a table that does not lie beside its own one, in the same bucket or name service, or
    below a root that the setting `allowed_roots` names: a definition is read from a log, and to read a table is to copy its
    rows. So it is for a table whose URI is a glob to Hadoop, since a glob may mean any folder."""
    beside = table.rpartition("/")[0]
    lake = beside if beside.partition("://")[2] else table
    roots = allowed_roots(allowed)
    for one in definition.bases:
        if one.uri != table and not is_allowed(one.uri, lake, roots):
            raise Unsupported(
                f"the view joins {one.uri}, which lies neither beside {table} nor below a folder that the setting allowed_roots "
                "names; nothing there was read. Name its folder in allowed_roots if it is one of yours, or delete the view",
                detail="OUTSIDE_ROOTS",
            )
        if one.uri != table and is_glob(one.uri):
            raise Unsupported(
                f"the view joins {one.uri}, and a view joins no table with one of {{}}[]*?\\ in its path, which Hadoop takes for a "
                "pattern of other paths; nothing there was read. Join a table with another path, or delete the view",
                detail="OUTSIDE_ROOTS",
            )


def require_unchanged(session: "SparkSession", definition: Definition) -> None:
    """Raises `SourceChanged` if a table beside the first is not as the definition says."""
    for now, recorded in zip(_files(session, definition), definition.bases[1:], strict=True):
        if not same_files(now, recorded.files):
            raise _changing(definition)


def _changing(definition: Definition) -> SourceChanged:
    return SourceChanged(
        f"one of the tables that the view joins changed meanwhile: {', '.join(one.uri for one in definition.bases[1:])}; nothing "
        "was changed. Try again when it is not being written",
        detail="WHILE_BUILDING",
    )


def _files(session: "SparkSession", definition: Definition) -> list[str]:
    from pyspark.errors import PySparkException

    shim = load(session)
    found = []
    for number, one in enumerate(definition.bases[1:], 1):
        try:
            frame = frame_of_base(session, one)
            changed = _changed(session, one, definition.reads(number))
        except PySparkException as problem:
            raise TableNotFound(
                f"{one.uri}, which the view joins, cannot be read ({condition_of(problem)}); drop the view, or bring it back",
                detail="VIEW_TABLE",
            ) from problem
        if changed:
            raise InvalidIndex(
                f"{', '.join(changed)} of {one.uri}, which the view joins, is gone or has another type; create the view anew",
                detail="VIEW_BASE",
            )
        found.append(str(shim.bridge.digest(frame._jdf)))
    return found


def _changed(session: "SparkSession", base: Base, names: frozenset[str]) -> list[str]:
    """Columns that files which say so themselves have otherwise by now."""
    if base.reading.format not in _SELF_DESCRIBING:
        return []
    there = {
        field.name: type_text(field.dataType.jsonValue())
        for field in session.read.format(base.reading.format).options(**_LITERALLY).load(base.uri).schema
    }
    return [one.name for one in base.reading.columns if one.name in names and there.get(one.name) != one.type]


def frame_of_base(session: "SparkSession", base: Base) -> "DataFrame":
    return readings.reader_for(session, base.reading).options(**_LITERALLY).load(base.uri)


def _frame(session: "SparkSession", query: "str | DataFrame", index: str) -> "DataFrame":
    from pyspark.errors import PySparkException

    try:
        if isinstance(query, str):
            return frame_of_query(session, query)
        require_query(session, query)
    except PySparkException as problem:
        raise InvalidIndex(
            f"view {index}: Spark cannot read its query ({condition_of(problem)})", detail="VIEW_QUERY"
        ) from problem
    except InvalidStatement as problem:
        raise InvalidIndex(f"view {index}: {problem}", detail="VIEW_QUERY") from problem
    return query


def _bases(
    session: "SparkSession", shim: Shim, relations: Sequence[Mapping[str, Any]], table: str, index: str
) -> tuple[Base, ...]:
    settings = readings.with_defaults(
        json.loads(shim.bridge.values(session._jsparkSession, shim.java_list([*readings.SETTINGS])))
    )
    found = [_base(one, settings, index) for one in relations]
    uris = [one.uri for one in found]
    if table not in uris:
        raise InvalidIndex(
            f"view {index} does not read {table}, the table that it is created on; create it on one of: {', '.join(uris)}",
            detail="VIEW_OTHER_TABLE",
        )
    if len(set(uris)) < len(uris):
        raise InvalidIndex(f"view {index} reads a table twice, which a view cannot yet store", detail="VIEW_SHAPE")
    for one, described in zip(found, relations, strict=True):
        if one.uri != table and readings.lake_of(described) is not None:
            raise Unsupported(
                f"view {index}: {one.uri} is a lake table; create the view on that one, and let it join tables of plain files",
                detail="VIEW_TABLES",
            )
        if one.uri != table and _DEFAULT in described["data_schema"]:
            raise Unsupported(
                f"view {index}: {one.uri} has columns with a default for files that lack them, which a view does not know of "
                "tables that it joins; write those files anew, or create the view on that table",
                detail="VIEW_DEFAULTS",
            )
    return tuple(found)


def _base(described: Mapping[str, Any], settings: Mapping[str, str], index: str) -> Base:
    try:
        reading = readings.reading_of(described, settings)
    except GrebeError as problem:
        raise InvalidIndex(
            f"view {index}: {described['roots'][0]} cannot be read by an index ({problem.code})", detail="VIEW_TABLE"
        ) from problem
    return Base(canonical_uri(described["roots"][0]), reading)


@dataclass
class _Meant:
    index: str
    said: Mapping[str, Any]
    bases: tuple[Base, ...]
    settings: Mapping[str, str]
    measures: dict[str, Measure] = field(default_factory=dict)
    """By their SQL."""
    functions: list[Function] = field(default_factory=list)

    def definition(self, text: str) -> Definition:
        block = self.said["block"]
        grouped = block["groups"] is not None
        names = self._names(block)
        keys = [self._key(one, names.get(text_of(one["tree"])), f"k{i}") for i, one in enumerate(self.said["keys"])]
        if grouped:
            self._kept("count(1)", "long", ROWS, "sum")
            for one in self.said["measures"]:
                more = self._measure(one)
                keys += [key for key in more if text_of(key.tree) not in {text_of(other.tree) for other in keys}]
            keys = keys or [Key("everything", ["Literal(1)", '"integer"'], "1", "integer")]
        where = [
            Condition(tree, sql, self._holds(asked))
            for tree, sql, asked in zip(block["conjuncts"], self.said["where"], block["predicates"], strict=True)
        ]
        return self._checked(
            Definition(
                text,
                self.bases,
                tuple(where),
                tuple(_distinct(keys)),
                grouped,
                tuple(self.measures.values()),
                tuple(self.functions),
                self.settings,
            )
        )

    def _checked(self, definition: Definition) -> Definition:
        """Whatever is read from a log is checked in the same way, so that no view is made that could not be read again."""
        try:
            definition.check()
        except Refused as refused:
            raise InvalidIndex(
                f"view {self.index}: {refused} has no place in a view; a view is stored, and rebuilt by others, so that it may use "
                "only functions that are known to give the same everywhere (docs/guides/views.md lists them)",
                detail="VIEW_FUNCTION",
            ) from refused
        return definition

    def _holds(self, asked: list[Any]) -> str:
        columns = {
            attribute: (column_of(base.uri, name), type_of_json(kind))
            for base, described in zip(self.bases, self.said["relations"], strict=True)
            for attribute, name, kind in described["output"]
        }
        known = normalise(predicate(asked, columns))
        return "" if opaque_terms(known) or any(unsure_casts(known)) else to_sql(known)

    def _names(self, block: Mapping[str, Any]) -> dict[str, str]:
        """What the query calls its columns."""
        return {text_of(tree): name for name, tree in block["outputs"]}

    def _key(self, one: Mapping[str, Any], name: str | None, otherwise: str) -> Key:
        kind = type_text(json.loads(one["type"]))
        if any(word in kind for word in _UNKEPT_KEYS) and self.said["block"]["groups"] is not None:
            raise InvalidIndex(
                f"view {self.index} groups by {one['sql']}, which is {kind}; a view groups by whole numbers, decimals, "
                "texts, dates, times and booleans",
                detail="VIEW_KEY_TYPE",
            )
        if kind.startswith("{"):  # as JSON, which only nested types need
            raise InvalidIndex(
                f"view {self.index} holds {one['sql']}, which is {kind}; a view holds single values: name fields of structs, and "
                "leave arrays and maps out",
                detail="VIEW_KEY_TYPE",
            )
        return Key(name or otherwise, one["tree"], one["sql"], kind)

    def _measure(self, one: Mapping[str, Any]) -> list[Key]:
        """Keeps what the aggregate is made of again. Gives columns that have to be keys for its sake."""
        name, arguments = one["function"], one["arguments"]
        kind = type_text(json.loads(one["type"]))
        sql = ", ".join(argument["sql"] for argument in arguments)
        if one["filtered"]:
            raise InvalidIndex(
                f"view {self.index}: an aggregate with FILTER is not stored; add its condition to GROUP BY",
                detail="VIEW_AGGREGATE",
            )
        if one["distinct"] or name == "HyperLogLogPlusPlus":
            return [self._key(argument, None, f"d{len(self.functions)}_{i}") for i, argument in enumerate(arguments)]
        if is_attempt(one["tree"]):
            raise InvalidIndex(
                f"view {self.index}: try_{_SUMS.get(name, 'avg')} is not stored: a group that does not fit is lost among others",
                detail="VIEW_AGGREGATE",
            )
        of = type_text(json.loads(arguments[0]["type"])) if arguments else ""
        if name == "Count":
            self._made(one, "count", self._kept(f"count({sql})", "long", "", "sum"))
        elif name in ("Min", "Max"):
            self._made(one, _SUMS[name], self._kept(f"{_SUMS[name]}({sql})", kind, "", _SUMS[name]))
        elif name == "Sum" and of.startswith(_NUMBERS):
            self._made(one, "sum", self._kept(_summed(sql, kind), kind, "", "sum"))
        elif name == "Average" and of.startswith(_NUMBERS):
            total = self._kept(f"sum(CAST({sql} AS DOUBLE))", "double", "", "sum")
            if of.startswith("decimal"):
                total = self._kept(_summed(sql, _widened(of)), _widened(of), "", "sum")
            self._made(one, "average", total, self._kept(f"count({sql})", "long", "", "sum"))
        else:
            raise InvalidIndex(
                f"view {self.index}: {name.lower()} is not stored; a view stores sum, count, min, max, avg and count(DISTINCT …)",
                detail="VIEW_AGGREGATE",
            )
        return []

    def _kept(self, sql: str, kind: str, name: str, merge: str) -> str:
        made = self.measures.setdefault(sql, Measure(name or f"measure_{len(self.measures)}", merge, sql, kind))
        return made.name

    def _made(self, one: Mapping[str, Any], what: str, *measures: str) -> None:
        self.functions.append(Function(one["tree"], what, measures))


def _distinct(keys: Sequence[Key]) -> list[Key]:
    """None twice, and no name twice, in whatever case."""
    found: dict[str, Key] = {}
    names: set[str] = set()
    for place, key in enumerate(keys):
        if text_of(key.tree) in found:
            continue
        name = key.name if key.name.lower() not in names and not key.name.startswith("_grebe") else f"k{place}_"
        names.add(name.lower())
        found[text_of(key.tree)] = Key(name, key.tree, key.sql, key.type)
    return list(found.values())


def _summed(sql: str, kind: str) -> str:
    """A sum that does not fit is NULL outside of ANSI mode, and would be lost among others."""
    if not kind.startswith("decimal(38"):
        return f"sum({sql})"
    lost = f"CAST(raise_error('a sum does not fit {kind}') AS {kind})"
    return f"CASE WHEN count({sql}) > 0 AND sum({sql}) IS NULL THEN {lost} ELSE sum({sql}) END"


def _widened(decimal: str) -> str:
    """As Spark sums it up."""
    precision, scale = decimal.removeprefix("decimal(").removesuffix(")").split(",")
    return f"decimal({min(38, int(precision) + 10)},{scale})"
