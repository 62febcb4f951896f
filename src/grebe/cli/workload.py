"""`grebe workload` and `grebe predictions`: what was recorded of the queries on a table, and of its builds."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from grebe.advisor.measured.predictions import FIELDS, NOTHING
from grebe.advisor.workload.columns import FIELDS as COLUMNS
from grebe.advisor.workload.reading import by_shape
from grebe.cli.output import Output
from grebe.cli.tables import opened, table_argument
from grebe.cli.verb import Verb

_SHAPES = ["shape", "queries", "percent", "milliseconds", "bytes", "indexes"]
_QUERIES = ["at", "origin", "call", "tables", "predicates", "columns", "files", "bytes", "milliseconds", "indexes"]


@click.command("workload", cls=Verb)
@table_argument
@click.option("--limit", type=click.IntRange(min=1), help="Only so many shapes; of single queries the newest.")
@click.option("--queries", "single", is_flag=True, help="Every query by itself.")
@click.option("--columns", is_flag=True, help="In their place what a sample tells of the columns.")
@click.option("--clear", is_flag=True, help="Forget them all.")
@click.pass_obj
def workload(output: Output, /, limit: int | None, single: bool, columns: bool, clear: bool, **asked: Any) -> None:
    """The recorded queries on TABLE by their shape, that which took most of the time first.

    Queries are recorded where the setting `record_workload` is true."""
    table = opened(**asked)
    if clear:
        output.one({"removed": table.forget_workload()})
        return
    if columns:
        output.rows(COLUMNS, [asdict(one) for one in table.statistics()])
        return
    queries = table.workload()
    if single:
        output.rows(_QUERIES, queries.slice(max(queries.num_rows - (limit or queries.num_rows), 0)).to_pylist())
    else:
        shapes = by_shape(queries)[:limit]
        output.rows(_SHAPES, shapes)
    if not queries.num_rows:
        output.note("No query was recorded: set record_workload = true where queries run.")


@click.command("predictions", cls=Verb)
@table_argument
@click.option("--svg", type=click.Path(path_type=Path, dir_okay=False), help="Write the picture to this file, too.")
@click.pass_obj
def predictions(output: Output, /, svg: Path | None, **asked: Any) -> None:
    """What was predicted of TABLE's indexes (bytes, seconds to build) and of queries that used one, beside what was measured."""
    found = opened(**asked).predictions()
    output.rows(list(FIELDS), [one.to_dict() for one in found])
    if svg is not None:
        svg.write_text(found.picture(), encoding="utf-8")
    if not found:
        output.note(NOTHING)
