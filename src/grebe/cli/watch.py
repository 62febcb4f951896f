"""`grebe watch`: refreshes the indexes of a table again and again, in one Spark."""

import re
import sys
from typing import Any

import click

from grebe.cli.making import table_options
from grebe.cli.output import Json, Output
from grebe.cli.spark_work import progress, spark_for
from grebe.cli.tables import pairs
from grebe.cli.verb import Verb
from grebe.clock import SYSTEM
from grebe.errors import GrebeError
from grebe.log.describe import IndexInfo
from grebe.maintenance.refresh import MODES
from grebe.session.lake_table import LakeTable

_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d)?", re.ASCII | re.IGNORECASE)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_TOLD = ("name", "rows", "files_covered", "files_stale", "problem")


class Span(click.ParamType):  # type: ignore[type-arg]  # older releases of click take none
    """A time span such as 30s, 5m, 1.5h or 1d; a number alone is seconds."""

    name = "span"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = _SPAN.fullmatch(str(value).strip())
        seconds = float(found[1]) * _SECONDS[(found[2] or "s").lower()] if found else 0.0
        if not seconds:
            self.fail(f"{value!r} is no time span above 0, such as 30s, 5m, 2h or 1d", param, ctx)
        return seconds


@click.command("watch", cls=Verb)
@click.argument("table")
@click.argument("names", nargs=-1)
@click.option(
    "--every", type=Span(), default="5m", show_default=True, help="From one round to the next: 30s, 5m, 2h, 1d."
)
@click.option("--times", type=click.IntRange(min=1), help="So many rounds; without it, until Ctrl-C.")
@click.option(
    "--mode", type=click.Choice(MODES), default="incremental", show_default=True, help="As of `grebe refresh`."
)
@table_options
@click.pass_obj
def watch(
    output: Output,
    /,
    table: str,
    names: tuple[str, ...],
    every: float,
    times: int | None,
    mode: str,
    format_name: str | None,
    read: tuple[str, ...],
    location: str | None,
    master: str,
    conf: tuple[str, ...],
) -> None:
    """Refresh the indexes NAMES of TABLE (all, if none is named) every so often, and say so: one line a round.

    A round that fails is told of, and the next tries again; the exit code is 1 if the last one failed, or could not refresh every
    index.
    """
    fresh = True
    try:
        with spark_for(master, pairs(conf, "--conf")) as session:
            watched = LakeTable(session, table, format_name, pairs(read, "--read"), location)
            number, due = 0, SYSTEM.monotonic()
            while times is None or number < times:
                SYSTEM.sleep(max(0.0, due - SYSTEM.monotonic()))
                number, due = number + 1, SYSTEM.monotonic() + every
                with progress(session, "Refreshing"):  # a bar of one round: what is said of it comes after it
                    infos, problem = _refreshed(watched, names, mode)
                _tell(output, number, every - (due - SYSTEM.monotonic()), infos, problem)
                fresh = problem is None and not any(info.problem for info in infos)
    except KeyboardInterrupt:
        output.note("Stopped.")
        return
    if not fresh:
        raise click.exceptions.Exit(1)


def _refreshed(table: LakeTable, names: tuple[str, ...], mode: str) -> tuple[list[IndexInfo], GrebeError | None]:
    try:
        return table.refresh(*names, mode=mode), None
    except GrebeError as problem:
        return [], problem


def _tell(output: Output, number: int, seconds: float, infos: list[IndexInfo], problem: GrebeError | None) -> None:
    if isinstance(output, Json):
        error = None if problem is None else {"code": problem.code, "message": str(problem)}
        told = [{fact: getattr(info, fact) for fact in _TOLD} for info in infos]
        output.one(
            {"round": number, "at_ms": SYSTEM.now_ms(), "seconds": round(seconds, 3), "indexes": told, "error": error}
        )
    else:
        output.note(f"round {number}, {seconds:.1f} s: {_said(infos) if problem is None else f'failed: {problem}'}")
    sys.stdout.flush()  # whoever reads a pipe wants each round when it is done


def _said(infos: list[IndexInfo]) -> str:
    done = ", ".join(f"{i.name}: {i.rows:,} rows of {i.files_covered:,} files" for i in infos if not i.problem)
    failed = "; ".join(f"{i.name} cannot be refreshed: {i.problem}" for i in infos if i.problem)
    return "; ".join(one for one in (done, failed) if one) or "no index yet"
