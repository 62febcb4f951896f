"""The verbs that look at one table: `grebe list` and `grebe history`. They need no Spark and write nothing."""

import re
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import click

from grebe.cli.output import Output
from grebe.cli.verb import Verb
from grebe.log.describe import SHOWN_OF_INDEXES
from grebe.session.table import Table
from grebe.session.table import open as open_table

_NAME = re.compile(r"(?:`(?:[^`]|``)*`|[^,`])+")
"""Names are separated by commas, except in backticks."""


def table_argument(function: Callable[..., Any]) -> Callable[..., Any]:
    """What every verb on a table takes."""
    for add in (
        click.argument("table"),
        click.option(
            "--format", "format_name", help="parquet, orc, csv, json, …; found out by itself where it can be."
        ),
        click.option("--location", help="Where the indexes lie, if not beside the table."),
        click.option("--option", "-o", "options", multiple=True, metavar="NAME=VALUE", help="A setting of the store."),
    ):
        function = add(function)
    return function


def version_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """What verbs take that can look at an older version of a lake table."""
    number = "Of Delta Lake a number, of Iceberg a snapshot, tag or branch, of Hudi an instant."
    for add in (
        click.option("--version", help=f"The table at this version. {number}"),
        click.option("--timestamp", help="The table as it was at this time: 2026-01-31T12:00:00, in UTC."),
    ):
        function = add(function)
    return function


@click.command("list", cls=Verb)
@table_argument
@version_option
@click.pass_obj
def list_indexes(output: Output, /, **asked: Any) -> None:
    """The indexes of TABLE: what each covers, and what is under way."""
    infos = opened(**asked).indexes()
    output.rows(SHOWN_OF_INDEXES, [asdict(info) for info in infos])
    if not infos:
        output.note("No index yet.")


@click.command("history", cls=Verb)
@table_argument
@click.option("--limit", type=click.IntRange(min=1), help="Only the newest so many entries.")
@click.pass_obj
def history(output: Output, /, limit: int | None, **asked: Any) -> None:
    """What happened to TABLE and its indexes: one line a commit, newest last."""
    entries = opened(**asked).history(limit)
    output.rows(["number", "at", "action", "writer", "changes"], [asdict(entry) for entry in entries])
    if not entries:
        output.note("No log: nothing has been indexed yet.")


def opened(
    table: str,
    format_name: str | None,
    location: str | None,
    options: tuple[str, ...],
    version: str | None = None,
    timestamp: str | None = None,
) -> Table:
    return open_table(table, format_name, location, version, timestamp, pairs(options))


def names_in(text: str) -> list[str]:
    """Names of columns, separated by commas."""
    return [part.strip() for part in _NAME.findall(text)]


def pairs(options: tuple[str, ...], hint: str = "--option") -> dict[str, str]:
    for option in options:
        if "=" not in option:
            # The text itself may be a secret that was mistyped.
            raise click.BadParameter("give it as NAME=VALUE", param_hint=hint)
    return dict(option.split("=", 1) for option in options)
