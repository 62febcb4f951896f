"""`grebe verify` and `grebe repair`: whether indexes are as they should be, and making them so.

To look at bytes takes no Spark; to derive rows anew does.
"""

from dataclasses import asdict
from typing import Any

import click

from grebe.cli.making import opened_in_spark, shown, table_options
from grebe.cli.output import Json, Output
from grebe.cli.tables import opened
from grebe.cli.verb import Verb
from grebe.indexes.faults import Report


@click.command("verify", cls=Verb)
@click.argument("table")
@click.option("--deep", is_flag=True, help="Read every byte of them.")
@click.option(
    "--spark", is_flag=True, help="With --deep: derive their rows anew from the table, in a Spark, and compare."
)
@click.option("--option", "-o", "options", multiple=True, metavar="NAME=VALUE", help="A setting of the store.")
@table_options
@click.pass_obj
def verify(output: Output, /, deep: bool, spark: bool, options: tuple[str, ...], **asked: Any) -> None:
    """Whether the log and the files of the indexes of TABLE are as they were written. Exit code 1 if something is not."""
    if spark:
        with opened_in_spark("Verifying", **asked) as table:
            report = table.verify(deep)
    else:
        report = opened(asked["table"], asked["format_name"], asked["location"], options).verify(deep)
    _tell(output, report)
    if not report.ok:
        raise click.exceptions.Exit(1)


def _tell(output: Output, report: Report) -> None:
    findings = [asdict(fault) for fault in report.findings]
    if isinstance(output, Json):
        told = {"leftovers": list(report.leftovers), "unchecked": list(report.unchecked)}
        output.one({"ok": report.ok, "findings": findings, **told})
        return
    if findings:
        output.rows(["index", "path", "code", "sentence"], findings)
        output.note("Answers are right all the same: a damaged index is not used. `grebe repair` mends it.")
    else:
        output.note("No faults were found.")
    if report.leftovers:
        output.note(f"Left by operations that died, for `grebe vacuum` to remove: {len(report.leftovers):,} objects.")
    for sentence in report.unchecked:
        output.note(sentence)


@click.command("repair", cls=Verb)
@click.argument("table")
@click.option("--deep/--no-deep", default=True, help="Derive rows anew to find what is wrong, or look at bytes only.")
@table_options
@click.pass_obj
def repair(output: Output, /, deep: bool, **asked: Any) -> None:
    """Mend what is wrong with the indexes of TABLE, in one commit. Only what is broken is derived anew."""
    with opened_in_spark("Repairing", **asked) as table:
        infos = table.repair(deep)
    shown(output, infos)
    if not infos:
        output.note("Nothing to mend.")
