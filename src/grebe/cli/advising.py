"""The verbs that learn from queries: `grebe recommend`, which builds nothing, and `grebe organise`. They start a Spark."""

from pathlib import Path
from typing import Any

import click

from grebe.advisor.organise.in_place import OrganisedInPlace
from grebe.advisor.organise.organising import Organised
from grebe.advisor.recommend.recommending import OBJECTIVES
from grebe.cli.making import opened_in_spark, table_options
from grebe.cli.output import Json, Output
from grebe.cli.spark_work import progress, spark_for, spark_options
from grebe.cli.tables import pairs
from grebe.cli.verb import Verb
from grebe.session.lake import attach


@click.command("recommend", cls=Verb)
@click.argument("tables", nargs=-1)
@click.option(
    "--queries",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="A file of SQL with semicolons between the queries, in the place of those that were recorded.",
)
@click.option("--events", help="An event log of Spark's, or a folder of them, in the place of recorded queries.")
@click.option("--budget", help="Bytes for all of them: 10GB, or a share of the tables: 20%.")
@click.option("--most", type=int, help="So many indexes at the most.")
@click.option("--build-seconds", type=float, help="Seconds for building them all.")
@click.option("--objective", type=click.Choice(OBJECTIVES), default=OBJECTIVES[0], show_default=True)
@spark_options
@click.pass_obj
def recommend(
    output: Output,
    /,
    tables: tuple[str, ...],
    queries: Path | None,
    events: str | None,
    master: str,
    conf: tuple[str, ...],
    **asked: Any,
) -> None:
    """The indexes that would help most, best first, with what they would take and save: for the recorded queries on TABLES, or for
    those of a file. Nothing is built or written."""
    if (queries is None) + (events is None) + (not tables) != 2:
        raise click.UsageError("name tables whose queries were recorded, or give --queries, or --events")
    with spark_for(master, pairs(conf, "--conf")) as session, progress(session, "Planning"):
        lake = attach(session)
        for table in tables:
            lake.met(table)
        found = lake.recommend(_texts(queries) if queries is not None else events, **asked)
    if isinstance(output, Json):
        output.rows(list(found[0].to_dict()) if found else [], [one.to_dict() for one in found])
    else:
        output.note(str(found))


@click.command("organise", cls=Verb)
@click.argument("table")
@click.option("--budget", help="Bytes for the layout: 10GB, or a share of the table: 20%.")
@click.option("--name", default="layout", show_default=True, help="Of the index that it makes or changes.")
@click.option(
    "--share", type=float, default=0.4, show_default=True, help="Of a layout that is there, what may be written anew."
)
@click.option("--dry-run", is_flag=True, help="Only say what it would do.")
@click.option(
    "--in-place", is_flag=True, help="No copy: rewrite TABLE itself, of Delta or Iceberg. Only said without --yes."
)
@click.option("--yes", is_flag=True, help="With --in-place: do it.")
@table_options
@click.pass_obj
def organise(
    output: Output,
    /,
    budget: str | None,
    name: str,
    share: float,
    dry_run: bool,
    in_place: bool,
    yes: bool,
    **asked: Any,
) -> None:
    """Lay a copy of TABLE out as its recorded queries ask for it, or, where there is such a layout, change what helps them most."""
    if yes and not in_place:
        raise click.UsageError("--yes is for --in-place, which rewrites the table itself")
    told: Organised | OrganisedInPlace
    with opened_in_spark("Organising", **asked) as table:
        if in_place:
            told = table.organise(budget, in_place=True, dry_run=dry_run or not yes)
        else:
            told = table.organise(budget, name=name, share=share, dry_run=dry_run)
    if isinstance(output, Json):
        output.one(told.to_dict())
    else:
        output.note(str(told))


@click.command("auto", cls=Verb)
@click.argument("table")
@click.option("--budget", help="Bytes for all its indexes together: 10GB, or a share of the table: 20%.")
@click.option("--yes", is_flag=True, help="Do it; without this it is only said.")
@table_options
@click.pass_obj
def auto(output: Output, /, budget: str | None, yes: bool, **asked: Any) -> None:
    """Look after the indexes of TABLE: drop those of its own that do not pay, refresh, lay out anew, and build what the recorded
    queries would have paid for by now. To be run every now and then, from anywhere."""
    with opened_in_spark("Tending", plans=True, **asked) as table:
        told = table.auto(budget, dry_run=not yes)
    if isinstance(output, Json):
        output.one(told.to_dict())
    else:
        output.note(str(told))


def _texts(file: Path) -> list[str]:
    return [text.strip() for text in file.read_text(encoding="utf-8").split(";") if text.strip()]
