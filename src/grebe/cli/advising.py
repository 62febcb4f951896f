"""The verbs that give advice: `grebe recommend`. They start a Spark, and build nothing."""

from pathlib import Path
from typing import Any

import click

from grebe.advisor.recommend.recommending import OBJECTIVES
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


def _texts(file: Path) -> list[str]:
    return [text.strip() for text in file.read_text(encoding="utf-8").split(";") if text.strip()]
