"""A session in which Hyperspace's names are at work, with indexes that always seem worth it; afterwards it is as it was."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import grebe
from grebe.compat.hyperspace import Hyperspace
from grebe.compat.hyperspace.settings import PREFIX, SYSTEM_PATH, tell_once
from grebe.planner.choose import choose
from grebe.planner.decision import Decision
from testbed.spark import configured
from tests.spark.served import EAGER, NO_BROADCAST

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def session(spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Iterator[SparkSession]":
    tables = grebe.Lake.tables

    def eagerly(*arguments: Any, **named: Any) -> Decision:
        return choose(*arguments, **named, rates=EAGER)

    def tables_of_this_test(lake: grebe.Lake) -> list[str]:
        """The session has met those of other tests too, with indexes of any name."""
        return [table for table in tables(lake) if table.startswith(tmp_path.as_uri())]

    monkeypatch.setattr("grebe.spark.planning.choose", eagerly)
    monkeypatch.setattr(grebe.Lake, "tables", tables_of_this_test)
    tell_once.cache_clear()
    with configured(spark, NO_BROADCAST):
        yield spark
    for row in spark.sql("SET").collect():
        if row.key.startswith(PREFIX):
            spark.conf.unset(row.key)
    grebe.attach(spark).detach()


@pytest.fixture
def hyperspace(session: "SparkSession", tmp_path: Path) -> Hyperspace:
    session.conf.set(SYSTEM_PATH, str(tmp_path / "indexes"))
    return Hyperspace(session)
