"""The verbs that build content: `grebe create`, `grebe refresh` and `grebe optimize`. They start a Spark.

The options of the kinds come from the fields of their classes, so that a kind of another package has them too.
"""

import dataclasses
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import click

from grebe.cli.output import Output
from grebe.cli.spark_work import progress, spark_for, spark_options
from grebe.cli.tables import names_in, pairs
from grebe.cli.verb import Verb
from grebe.indexes.kind import Kind, KindType
from grebe.indexes.making import fields_of, kind_made
from grebe.indexes.registry import kind_named, kinds
from grebe.log.describe import SHOWN_OF_INDEXES, IndexInfo
from grebe.maintenance.optimize import MODES as OPTIMIZE_MODES
from grebe.maintenance.refresh import MODES
from grebe.session.lake import attach
from grebe.session.lake_table import LakeTable

_ABOUT = {
    "on": "Columns that it is laid out by: a,b.",
    "x": "The column of the x of points, or of the least corner of boxes.",
    "y": "The column of the y of points, or of the least corner of boxes.",
    "x_max": "Of boxes, the column of the greatest x.",
    "y_max": "Of boxes, the column of the greatest y.",
    "include": "Columns that it also holds: c,d.",
    "where": "A condition: only rows of which it is true.",
    "buckets": "So many hash buckets; 0: sorted as a whole.",
    "sketches": "What a skipping index keeps: min_max(a), bloom(b). Or --on a: it chooses.",
    "query": "Of a view, its SQL.",
    "queries": "Of a layout, conditions that queries ask, with semicolons between them: a > 1 AND b = 2; b IN (3, 4).",
    "budget": "Bytes of a sieve for each byte of its column.",
    "curve": "Of a zorder index: hilbert, or z.",
}


def _option(name: str, hint: Any) -> Callable[[Any], Any]:
    types = typing.get_args(hint) or (hint,)
    flag, about = name.replace("_", "-"), _ABOUT.get(name)
    if bool in types:
        return click.option(f"--{flag}/--no-{flag}", name, default=None, help=about)
    if int in types or float in types:
        return click.option(f"--{flag}", name, type=int if int in types else float, help=about)
    return click.option(f"--{flag}", name, help=about)


def kind_options(function: Any) -> Any:
    """One option for each field of any kind."""
    hints = {name: hint for kind in kinds().values() for name, hint in fields_of(kind).items()}
    for name, hint in reversed(hints.items()):
        function = _option(name, hint)(function)
    choice = click.Choice(list(kinds()), case_sensitive=False)
    return click.option("--kind", "kind_name", type=choice, required=True, help="What kind of index.")(function)


def table_options(function: Any) -> Any:
    for add in (
        click.option(
            "--format", "format_name", help="parquet, orc, csv, json, …; found out by itself where it can be."
        ),
        click.option(
            "--read",
            "read",
            multiple=True,
            metavar="NAME=VALUE",
            help="An option of Spark's reader, such as header=true.",
        ),
        click.option("--location", help="Where the indexes lie, if not beside the table."),
    ):
        function = add(function)
    return spark_options(function)


@click.command("create", cls=Verb)
@click.argument("table")
@click.argument("name")
@kind_options
@click.option("--replace", is_flag=True, help="Replace an index of that name.")
@table_options
@click.pass_obj
def create(output: Output, /, name: str, kind_name: str, replace: bool, **asked: Any) -> None:
    """Create the index NAME on TABLE: a path, or a name of Spark's catalog."""
    kind = kind_asked(kind_name, name, asked)
    with opened_in_spark(f"Creating {name}", **asked) as table:
        infos = table.create(kind, replace=replace)
    shown(output, infos)


@click.command("refresh", cls=Verb)
@click.argument("table")
@click.argument("names", nargs=-1)
@click.option(
    "--mode",
    type=click.Choice(MODES),
    default="incremental",
    show_default=True,
    help="full: build anew; quick: only record what changed.",
)
@table_options
@click.pass_obj
def refresh(output: Output, /, names: tuple[str, ...], mode: str, **asked: Any) -> None:
    """Bring the indexes NAMES of TABLE (all, if none is named) up to the table as it is now, in one commit.

    An index that can no longer be refreshed, since a column of it was dropped, does not keep the others from it: it is shown with
    its problem, and the exit code is 1.
    """
    with opened_in_spark("Refreshing", **asked) as table:
        infos = table.refresh(*names, mode=mode)
    shown(output, infos)
    if not infos:
        output.note("No index yet.")
    if any(info.problem for info in infos):
        output.note("Some indexes can no longer be refreshed: delete them, or create them anew with --replace.")
        raise click.exceptions.Exit(1)


@click.command("optimize", cls=Verb)
@click.argument("table")
@click.argument("names", nargs=-1)
@click.option(
    "--mode",
    type=click.Choice(OPTIMIZE_MODES),
    default="quick",
    show_default=True,
    help="quick: merge small runs; full: make one of all.",
)
@table_options
@click.pass_obj
def optimize(output: Output, /, names: tuple[str, ...], mode: str, **asked: Any) -> None:
    """Lay the content of the indexes NAMES of TABLE (all, if none is named) out anew, without looking at the table."""
    with opened_in_spark("Optimizing", **asked) as table:
        infos = table.optimize(*names, mode=mode)
    shown(output, infos)
    if not infos:
        output.note("Nothing to merge.")


def kind_asked(kind_name: str, name: str, asked: dict[str, Any]) -> Kind:
    """What the options of `kind_options` say, which are taken out of those that were `asked`."""
    given = {option: asked.pop(option) for kind in kinds().values() for option in fields_of(kind) if option in asked}
    return _made(kind_named(kind_name), name, given)


def _made(kind: KindType, name: str, given: Mapping[str, Any]) -> Kind:
    fields = fields_of(kind)
    said = {option: value for option, value in given.items() if value is not None}
    for option in said.keys() - fields.keys():
        raise click.UsageError(f"--{option.replace('_', '-')} is no option of the kind {kind.kind}")
    values = {option: _value(value, fields[option]) for option, value in said.items()}
    if "on" in fields and not values.keys() & {"on", "sketches", "x", "queries"}:
        raise click.UsageError(f"the kind {kind.kind} needs more: --on a,b")
    return kind_made(kind, name, values)


def _value(value: Any, hint: Any) -> Any:
    several = Sequence[str] in typing.get_args(hint)
    return names_in(value) if several and isinstance(value, str) else value


@contextmanager
def opened_in_spark(
    what: str,
    table: str,
    format_name: str | None,
    read: tuple[str, ...],
    location: str | None,
    master: str,
    conf: tuple[str, ...],
    plans: bool = False,
) -> Iterator[LakeTable]:
    """`plans`: queries are planned as if indexes existed."""
    with spark_for(master, pairs(conf, "--conf")) as session, progress(session, what):
        opened = attach(session).table if plans else partial(LakeTable, session)
        yield opened(table, format_name, pairs(read, "--read"), location)


def shown(output: Output, infos: Sequence[IndexInfo]) -> None:
    output.rows(SHOWN_OF_INDEXES, [dataclasses.asdict(info) for info in infos])
