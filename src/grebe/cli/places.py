"""The verbs that ask where things lie: `grebe within` and `grebe nearest`. They need no Spark and write nothing."""

from typing import Any

import click
import pyarrow as pa

from grebe.cli.output import Output
from grebe.cli.tables import names_in, opened, table_argument, version_option
from grebe.cli.values import plain_rows
from grebe.cli.verb import Verb
from grebe.store.counting import Counts

_columns = click.option("--columns", help="Show just these columns: a,b.")
_on = click.option("--on", help="The columns of places, where no index says: lon,lat; four of boxes; one of WKB.")


@click.command("within", cls=Verb)
@table_argument
@version_option
@click.argument("xmin", type=float)
@click.argument("ymin", type=float)
@click.argument("xmax", type=float)
@click.argument("ymax", type=float)
@_columns
@_on
@click.pass_obj
def within(
    output: Output,
    /,
    xmin: float,
    ymin: float,
    xmax: float,
    ymax: float,
    columns: str | None,
    on: str | None,
    **asked: Any,
) -> None:
    """The rows of TABLE that lie in the box, its bounds included. With XMIN above XMAX it crosses the antimeridian."""
    table = opened(**asked)
    before = table.counts()
    found = table.within((xmin, ymin, xmax, ymax), _names(columns), on=_names(on))
    _show(output, found, table.counts().since(before))


@click.command("nearest", cls=Verb)
@table_argument
@version_option
@click.argument("x", type=float)
@click.argument("y", type=float)
@click.option("-k", "count", type=click.IntRange(min=0), default=10, show_default=True, help="So many rows.")
@_columns
@_on
@click.pass_obj
def nearest(
    output: Output, /, x: float, y: float, count: int, columns: str | None, on: str | None, **asked: Any
) -> None:
    """The rows of TABLE nearest to the point X Y, nearest first: by planar distance."""
    table = opened(**asked)
    before = table.counts()
    found = table.nearest(x, y, count, _names(columns), on=_names(on))
    _show(output, found, table.counts().since(before))


def _names(text: str | None) -> list[str] | None:
    return None if text is None else names_in(text)


def _show(output: Output, found: pa.Table, took: Counts) -> None:
    output.records(found.column_names, plain_rows(found))
    rows = f"{found.num_rows:,} row{'' if found.num_rows == 1 else 's'}"
    output.note(f"{rows}; {took.requests:,} requests, {took.bytes_read:,} bytes.")
