"""The verbs that ask about a query: `grebe explain`, `grebe why-not` and `grebe what-if`. They start a Spark, and run no query."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from grebe.cli.making import kind_asked, kind_options
from grebe.cli.output import Json, Output
from grebe.cli.spark_work import progress, spark_for, spark_options
from grebe.cli.tables import pairs
from grebe.cli.verb import Verb
from grebe.errors import InvalidStatement
from grebe.session.lake import Lake, attach
from grebe.spark.conditions import condition_of

_NOTHING_LEFT = "Every index of its tables is used, or there is none."


@click.command("explain", cls=Verb)
@click.argument("query")
@click.option("--plans", is_flag=True, help="Show Spark's plans without and with indexes too.")
@click.option(
    "--html", "page", type=click.Path(path_type=Path, dir_okay=False), help="Write what a notebook shows to this file."
)
@spark_options
@click.pass_obj
def explain(output: Output, /, query: str, plans: bool, page: Path | None, **asked: Any) -> None:
    """What QUERY uses of which index, why not of others, and what that should save. Tables are named as in Spark:
    parquet.`path`, delta.`path`, or by the catalog. The query is not run."""
    with _asked(**asked) as lake:
        explanation = lake.explain(query, verbose=plans)
    if page is not None:
        page.write_text(f"<!doctype html><meta charset=utf-8>{explanation._repr_html_()}", encoding="utf-8")
    if isinstance(output, Json):
        output.one(explanation.to_dict())
    else:
        output.note(str(explanation))


@click.command("why-not", cls=Verb)
@click.argument("query")
@click.option("--index", help="Only about this index.")
@spark_options
@click.pass_obj
def why_not(output: Output, /, query: str, index: str | None, **asked: Any) -> None:
    """For every index of the tables of QUERY that it does not use: the reason, and what to do about it."""
    with _asked(**asked) as lake:
        reasons = lake.why_not(query, index)
    output.rows(["index", "relation", "code", "sentence"], [reason.to_dict() for reason in reasons])
    if not reasons:
        output.note(_NOTHING_LEFT)


@click.command("what-if", cls=Verb)
@click.argument("sql", metavar="QUERY")
@click.option("--name", help="What to call the index; its kind, if not named.")
@kind_options
@spark_options
@click.pass_obj
def what_if(output: Output, /, sql: str, name: str | None, kind_name: str, **asked: Any) -> None:
    """Whether QUERY would use an index that does not exist, what that would save, how large it would be, and after how many such
    queries it would have paid. Nothing is built or written."""
    kind = kind_asked(kind_name, name or kind_name, asked)
    with _asked(**asked) as lake:
        answer = lake.what_if(sql, [kind])
    if isinstance(output, Json):
        output.one(answer.to_dict())
    else:
        output.note(str(answer))


@contextmanager
def _asked(master: str, conf: tuple[str, ...]) -> Iterator[Lake]:
    with spark_for(master, pairs(conf, "--conf")) as session, progress(session, "Planning"):
        from pyspark.errors import PySparkException  # not before `spark_for`, which says what to do where there is none

        lake = attach(session)
        try:
            yield lake
        except PySparkException as problem:
            said = str(problem).strip().splitlines()[0]
            raise InvalidStatement(
                f"Spark cannot read the query ({condition_of(problem)}): {said}", detail="QUERY"
            ) from problem
