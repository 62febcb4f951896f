"""`grebe demo`: generated tables, an index or two, and what they are good for."""

import tempfile
from importlib.util import find_spec
from pathlib import Path

import click

from grebe.cli.demos import needle, queries, racing
from grebe.cli.demos.report import write_report
from grebe.cli.output import Json, Output, Row
from grebe.cli.spark_work import spark_for
from grebe.cli.verb import Verb


@click.command(cls=Verb)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where to make the tables, which then stay; else they are made aside and removed.",
)
@click.option(
    "--report",
    "place",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("grebe-demo.html"),
    show_default=True,
    help="Where to write a page with pictures of it.",
)
@click.pass_obj
def demo(output: Output, folder: Path | None, place: Path) -> None:
    """Make tables on local disk, let two processes race for the log of one, speed up queries, and look up one row of millions."""
    told: dict[str, list[Row]] = {}
    explained = ""
    tables: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="grebe-demo-") as aside:
        lake = folder or Path(aside)
        told["log"] = racing.race(lake / "orders", lake / "_grebe" / "orders", output)
        _show(output, told["log"])
        if find_spec("pyspark") is None:
            output.note("Indexes are made by Spark: pip install 'grebe[spark,java]', then run this again.")
        else:
            with spark_for("local[*]", queries.SETTINGS) as session:
                compared = queries.compare(session, lake, output)
                told["queries"], tables = compared.rows, compared.indexes
                explained = compared.explained._repr_html_()
                _show(output, told["queries"])
                needle.prepare(session, lake, output)
            told["lookups"] = needle.compare(lake, output)
            _show(output, told["lookups"])
    written = write_report(place, told, explained, tables)
    output.note(f"\nThe same with pictures: {written.resolve()}")
    if isinstance(output, Json):
        output.one({**told, "report": written.resolve()})


def _show(output: Output, rows: list[Row]) -> None:
    if not isinstance(output, Json):
        output.rows(list(rows[0]), rows)
