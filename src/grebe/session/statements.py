"""Carries out the statements on indexes of a session: what the SQL says, done by the same verbs as in Python."""

import datetime
import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, Protocol

from grebe import telemetry
from grebe.errors import GrebeError, InvalidStatement
from grebe.log.describe import NOT_SHOWN, IndexInfo
from grebe.planner.explain import Explanation
from grebe.predicate.text import column_sql
from grebe.session.lake_table import LakeTable
from grebe.spark.conditions import condition_of
from grebe.sql.parse import parse_statement, table_of
from grebe.sql.statement import (
    CancelIndex,
    CreateIndex,
    DescribeIndex,
    DropIndex,
    ExplainIndexes,
    OptimizeIndexes,
    RefreshIndexes,
    RepairIndexes,
    RestoreIndex,
    ShowHistory,
    ShowIndexes,
    Statement,
    TableName,
    VacuumIndexes,
    VerifyIndexes,
)

_logger = logging.getLogger("grebe")
Row = Mapping[str, Any]


class Lake(Protocol):
    """What statements need of `session.lake.Lake`."""

    def tables(self) -> list[str]: ...
    def table(self, source: str, format: str | None = None) -> LakeTable: ...
    def explain(self, df: str, verbose: bool = False) -> Explanation: ...


def answer(lake: Lake, what: str, text: str) -> str:
    """What the session's parser (`parse`) and its command (`run`) are told, as JSON: see `Statement.java`."""
    from pyspark.errors import PySparkException

    try:
        statement = parse_statement(text)
        if what == "parse":
            return json.dumps({} if statement is None else _read(statement))
        assert statement is not None, "only what was parsed is run"
        columns = [column.split()[0] for column in statement.columns.split(", ")]
        rows = [[row.get(column) for column in columns] for row in carried_out(lake, statement)]
        return json.dumps({"rows": rows}, default=_plain)
    except GrebeError as error:
        said: dict[str, Any] = {"error": str(error), "code": error.code, "catalog": _catalog(table_of(text))}
        return json.dumps(said if error.position is None else said | {"position": error.position})
    except PySparkException as error:
        # What the user's own query or table did wrong, in Spark's words.
        return json.dumps({"error": str(error), "code": condition_of(error)})


def _read(statement: Statement) -> dict[str, Any]:
    return {"schema": statement.columns, "catalog": _catalog(statement.table)}


def _catalog(table: TableName | None) -> str:
    return table.parts[0] if table is not None and len(table.parts) > 1 else ""


def carried_out(lake: Lake, statement: Statement) -> Iterator[Row]:
    """Its effect, and then the rows of its result."""
    match statement:
        case ShowIndexes(table=None):
            yield from _all_shown(lake)
        case ExplainIndexes(query=query, verbose=verbose):
            yield {"plan": str(lake.explain(query, verbose))}
        case _:
            table = _table(lake, statement.table)
            yield from _on_table(table, statement)


def _on_table(table: LakeTable, statement: Statement) -> Iterator[Row]:
    match statement:
        case CreateIndex():
            yield from _created(table, statement)
        case ShowIndexes():
            yield from _shown(table)
        case DescribeIndex(name=name):
            yield from ({"fact": fact, "value": value} for fact, value in _facts(asdict(table.index(name))))
        case ShowHistory():
            yield from map(asdict, table.history())
        case RefreshIndexes(names=names, mode=mode):
            yield from _rows(table, table.refresh(*names, mode=mode))
        case OptimizeIndexes(names=names, mode=mode):
            yield from _rows(table, table.optimize(*names, mode=mode))
        case DropIndex(name=name, if_exists=if_exists):
            yield from _dropped(table, name, if_exists)
        case RestoreIndex(name=name):
            table.restore(name)
            yield from _rows(table, [table.index(name)])
        case VacuumIndexes(name=name, dry_run=dry_run):
            yield asdict(table.vacuum(name, dry_run))
        case CancelIndex(name=name):
            yield from ({"cancelled": verb} for verb in table.cancel(name))
        case VerifyIndexes(deep=deep):
            yield from map(asdict, table.verify(deep).findings)
        case RepairIndexes():
            yield from _rows(table, table.repair())


def _created(table: LakeTable, statement: CreateIndex) -> Iterator[Row]:
    name = statement.index.name
    if statement.if_not_exists and any(info.name == name for info in table.indexes()):
        return
    yield from _rows(table, table.create(statement.index, replace=statement.replace))


def _dropped(table: LakeTable, name: str, if_exists: bool) -> Iterator[Row]:
    if if_exists and all(info.name != name for info in table.indexes()):
        return
    table.delete(name)
    yield from _rows(table, [table.index(name)])


def _all_shown(lake: Lake) -> Iterator[Row]:
    for uri in lake.tables():
        try:
            yield from list(_shown(lake.table(uri)))
        except Exception as problem:  # noqa: BLE001 - one that went, or is out of reach now, must not hide the others
            code = getattr(problem, "code", type(problem).__name__)
            telemetry.event(_logger, logging.WARNING, "table_not_shown", table=uri, code=code)


def _shown(table: LakeTable) -> Iterator[Row]:
    return _rows(table, table.indexes())


def _rows(table: LakeTable, infos: list[IndexInfo]) -> Iterator[Row]:
    return ({**asdict(info), "table": table.uri} for info in infos)


def _table(lake: Lake, name: TableName | None) -> LakeTable:
    """As Spark reads the name: the catalog's table, or the files of format.`path`."""
    assert name is not None, "only statements on a table come here"
    if len(name.parts) == 2 and "/" in name.parts[1]:
        return lake.table(name.parts[1], name.parts[0].lower())
    if "/" in name.parts[-1]:
        raise InvalidStatement("a path needs its format before it: parquet.`path`, delta.`path`", detail="TABLE")
    return lake.table(column_sql(name.parts))


def _facts(facts: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for name, value in facts.items():
        if above and name in NOT_SHOWN:
            continue
        if isinstance(value, Mapping):
            yield from _facts(value, f"{above}{name}.")
        elif value not in (None, (), [], ""):
            yield above + name, _text(value)


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    return value.isoformat() if isinstance(value, datetime.datetime) else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    raise TypeError(f"no JSON form for a {type(value).__name__}")
