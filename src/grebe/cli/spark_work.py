"""A Spark for one command, and how far it is."""

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from grebe.cli.interrupts import held_back, interruptible
from grebe.clock import SYSTEM
from grebe.errors import Unsupported
from grebe.spark.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "OFF"}
# What goes wrong is said in a line of our own; `--conf spark.log.level=ERROR` shows what Spark says of it.
_ERRORS_OF_QUERIES = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_LOOK_EVERY = 0.25


@contextmanager
def spark_for(master: str, conf: Mapping[str, str]) -> "Iterator[SparkSession]":
    """A session on its own JVM, ended afterwards; the one that this process has already, if there is one."""
    try:
        from pyspark import SparkConf, SparkContext
        from pyspark.sql import SparkSession
    except ModuleNotFoundError as missing:
        raise Unsupported(
            "this needs Spark: install the extra `grebe[spark]`, and `grebe[java]` where there is no Java",
            detail="NO_SPARK",
        ) from missing

    # PySpark writes every error of a query to stderr as JSON; a command says what went wrong in a line of its own.
    for name in _ERRORS_OF_QUERIES:
        logging.getLogger(name).disabled = True
    there = SparkSession.getActiveSession()
    if there is not None:
        yield there
        return
    os.environ["JAVA_HOME"] = str(find_java().home)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = SparkConf().setAppName("grebe").setMaster(master).setAll([*{**_QUIET, **conf}.items()])
    with held_back() as hold:
        SparkContext.getOrCreate(settings)
        hold()  # which has put a handler of its own in place
        session = SparkSession.builder.getOrCreate()
    try:
        with interruptible(session):
            yield session
    finally:
        session.stop()


@contextmanager
def progress(session: "SparkSession", what: str) -> Iterator[None]:
    """A bar on a terminal: how many of Spark's tasks are done, how many a second, and how long the rest will take."""
    if not sys.stderr.isatty():
        yield
        return
    import rich.console
    import rich.progress

    columns = (
        "{task.description}",
        rich.progress.BarColumn(),
        rich.progress.MofNCompleteColumn(),
        "tasks, {task.fields[rate]},",
        rich.progress.TimeRemainingColumn(compact=True),
        "left",
    )
    with rich.progress.Progress(*columns, console=rich.console.Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None, rate="")

        def look() -> None:
            done, tasks = tasks_of(session)
            if tasks:
                speed = bar.tasks[0].speed
                bar.update(task, completed=done, total=tasks, rate=f"{speed:.1f}/s" if speed else "")

        stop = SYSTEM.every(_LOOK_EVERY, look)
        try:
            yield
        finally:
            stop()


def tasks_of(session: "SparkSession") -> tuple[int, int]:
    """Of the jobs that run now: tasks done, and all tasks."""
    tracker = session.sparkContext.statusTracker()
    jobs = [info for job in tracker.getActiveJobsIds() if (info := tracker.getJobInfo(job)) is not None]
    stages = [found for job in jobs for stage in job.stageIds if (found := tracker.getStageInfo(stage)) is not None]
    return sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)


def spark_options(function: Any) -> Any:
    """What every verb takes that starts a Spark."""
    for add in (
        click.option("--master", default="local[*]", show_default=True, help="Where Spark runs."),
        click.option("--conf", multiple=True, metavar="NAME=VALUE", help="A setting of Spark; may be given again."),
    ):
        function = add(function)
    return function
