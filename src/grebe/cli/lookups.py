"""The verbs that look something up: `grebe get`, `grebe files` and `grebe find`. They need no Spark and write nothing."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import click

from grebe.cli.output import Json, Output
from grebe.cli.tables import names_in, opened, pairs, table_argument, version_option
from grebe.cli.values import column_of, plain_rows, readings, typed
from grebe.cli.verb import Verb
from grebe.indexes.lookup.spec import Lookup
from grebe.log.states import ACTIVE
from grebe.lookup.answer import Answer
from grebe.predicate.builder import col
from grebe.predicate.text import column_sql
from grebe.predicate.tree import Column, Predicate
from grebe.session.find import Findings
from grebe.session.find import find as find_values
from grebe.session.table import Table

_ROWS_SHOWN = 10


@click.command("get", cls=Verb)
@table_argument
@version_option
@click.argument("column")
@click.argument("values", nargs=-1)
@click.option("--columns", help="Show just these columns: a,b.")
@click.option("--null", is_flag=True, help="Also the rows in which the column is NULL.")
@click.pass_obj
def get(output: Output, /, column: str, values: tuple[str, ...], columns: str | None, null: bool, **asked: Any) -> None:
    """The rows of TABLE in which COLUMN has one of the VALUES. A field of a struct is a.b; bytes are 0x1F00."""
    if not values and not null:
        raise click.UsageError("give a value to look for, or --null")
    table = opened(**asked)
    key = column_of(table.schema, column)
    before = table.counts()
    found = table.scan(_asked_for(key, typed(key, values), null), None if columns is None else _bare(columns))
    took = table.counts().since(before)
    output.records(found.column_names, plain_rows(found))
    output.note(f"{_count(found.num_rows, 'row')}; {_by_index(table, key)}; {_took(took.requests, took.bytes_read)}.")


@click.command("files", cls=Verb)
@table_argument
@version_option
@click.argument("predicate")
@click.pass_obj
def files(output: Output, /, predicate: str, **asked: Any) -> None:
    """The files of TABLE that can hold rows of PREDICATE (SQL of Spark's), and which rows, where an index knows."""
    answer = opened(**asked).files(predicate)
    if isinstance(output, Json):
        output.one(asdict(answer))
        return
    output.rows(["path", "rows"], [{"path": file.path, "rows": _numbers(file.rows)} for file in answer.files])
    output.note(_summary(answer))


@click.command("find", cls=Verb)
@click.argument("values", nargs=-1, required=True)
@click.option("--table", "-t", "tables", multiple=True, required=True, help="Where to look; may be given again.")
@click.option("--columns", help="Look just into these columns: a,b.")
@click.option("--option", "-o", "options", multiple=True, metavar="NAME=VALUE", help="A setting of the store.")
@click.pass_obj
def find(
    output: Output, /, values: tuple[str, ...], tables: tuple[str, ...], columns: str | None, options: tuple[str, ...]
) -> None:
    """Where in the lake any of the VALUES occurs: table, column, file and row. 42 is looked for as text and as a number."""
    meant = [meaning for value in values for meaning in readings(value)]
    names = None if columns is None else names_in(columns)
    found = find_values(meant, tables, names, pairs(options))
    output.rows(["table", "column", "file", "row", "offset", "length"], found.to_table().to_pylist())
    for sentence in _told(found):
        output.note(sentence)


def _asked_for(key: Column, values: list[object], null: bool) -> Predicate:
    column = col(column_sql(key.path))
    wanted = column.isin(values)
    return (wanted | column.is_null() if values else column.is_null()) if null else wanted


def _bare(columns: str) -> list[str]:
    """Names without backticks."""
    terms = (col(name).term for name in names_in(columns))
    return [".".join(term.path) for term in terms if isinstance(term, Column)]


def _by_index(table: Table, key: Column) -> str:
    """How the rows were found, as far as the log tells."""
    name = column_sql(key.path)
    lookups = [info for info in table.indexes() if info.kind == Lookup.kind and info.state == ACTIVE]
    on_it = [info for info in lookups if col(info.columns[0]).term == Column(key.path)]
    if not on_it:
        return f"no index on {name}: all files were read"
    best = min(on_it, key=lambda info: info.files_stale)
    return f"index {best.name}" + (f", stale by {_count(best.files_stale, 'file')}" if best.files_stale else "")


def _numbers(rows: tuple[int, ...] | None) -> str:
    if rows is None:
        return "all"
    shown = ", ".join(map(str, rows[:_ROWS_SHOWN]))
    return shown if len(rows) <= _ROWS_SHOWN else f"{shown}, … ({len(rows):,})"


def _summary(answer: Answer) -> str:
    everything = answer.covered + answer.uncovered
    found = f"{len(answer.files):,} of {_count(everything, 'file')} can hold such rows"
    if answer.index is None:
        return f"{found}; no index helps with this."
    beside = f", {answer.uncovered:,} not covered" if answer.uncovered else ""
    took = _took(answer.requests, answer.bytes)
    return f"{found}: index {answer.index}, {answer.pruned:,} ruled out{beside}; {took}."


def _told(found: Findings) -> list[str]:
    told = [f"Found {_count(len(found), 'time')}."]
    told += [f"Scanned, for want of an index: {what}." for what in _listed(found.scanned)]
    told += [f"Not searched, since it lies in arrays or maps: {what}." for what in _listed(found.skipped)]
    return told


def _listed(columns: Mapping[str, tuple[str, ...]]) -> list[str]:
    return [f"{', '.join(names)} of {table}" for table, names in columns.items() if names]


def _took(requests: int, size: int) -> str:
    return f"{_count(requests, 'request')}, {size:,} bytes"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
