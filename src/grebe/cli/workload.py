"""`grebe workload`: what was recorded of the queries on a table."""

from typing import Any

import click

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
@click.option("--clear", is_flag=True, help="Forget them all.")
@click.pass_obj
def workload(output: Output, /, limit: int | None, single: bool, clear: bool, **asked: Any) -> None:
    """The recorded queries on TABLE by their shape, that which took most of the time first.

    Queries are recorded where the setting `record_workload` is true."""
    table = opened(**asked)
    if clear:
        output.one({"removed": table.forget_workload()})
        return
    queries = table.workload()
    if single:
        output.rows(_QUERIES, queries.slice(max(queries.num_rows - (limit or queries.num_rows), 0)).to_pylist())
    else:
        shapes = by_shape(queries)[:limit]
        output.rows(_SHAPES, shapes)
    if not queries.num_rows:
        output.note("No query was recorded: set record_workload = true where queries run.")
