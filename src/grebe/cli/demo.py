"""`grebe demo`: generated tables, an index or two, and what they are good for."""

import tempfile
from importlib.util import find_spec
from pathlib import Path

import click

from grebe.cli.demos import needle, queries, racing
from grebe.cli.output import Json, Output, Row
from grebe.cli.spark_work import spark_for
from grebe.cli.verb import Verb


@click.command(cls=Verb)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where to make the tables, which then stay; else they are made aside and removed.",
)
@click.pass_obj
def demo(output: Output, folder: Path | None) -> None:
    """Make tables on local disk, let two processes race for the log of one, speed up queries, and look up one row of millions."""
    told: dict[str, list[Row]] = {}
    with tempfile.TemporaryDirectory(prefix="grebe-demo-") as aside:
        lake = folder or Path(aside)
        told["log"] = racing.race(lake / "orders", lake / "_grebe" / "orders", output)
        _show(output, told["log"])
        if find_spec("pyspark") is None:
            output.note("Indexes are made by Spark: pip install 'grebe[spark,java]', then run this again.")
        else:
            with spark_for("local[*]", queries.SETTINGS) as session:
                told["queries"] = queries.compare(session, lake, output)
                _show(output, told["queries"])
                needle.prepare(session, lake, output)
            told["lookups"] = needle.compare(lake, output)
            _show(output, told["lookups"])
    if isinstance(output, Json):
        output.one(told)


def _show(output: Output, rows: list[Row]) -> None:
    if not isinstance(output, Json):
        output.rows(list(rows[0]), rows)
