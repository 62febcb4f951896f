"""A build that another process cancels stops soon, not only when it wants to commit."""

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import grebe
from grebe.config import Config
from grebe.errors import GrebeError, WrongState
from grebe.log.commit import Log
from grebe.maintenance import build
from grebe.session.lake_table import LakeTable
from grebe.spark.content import write_content
from grebe.store.local import LocalStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core]
FOR_MINUTES = "java_method('java.lang.Thread', 'sleep', 100L) IS NOT NULL OR id IS NOT NULL"
"""Of every row, but that takes its time."""


def test_a_cancel_by_another_process_stops_the_jobs_of_a_build(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.range(0, 10_000, 1, 2).write.parquet(str(tmp_path / "t"))
    table = LakeTable(spark, str(tmp_path / "t"), config=Config(heartbeat_seconds=0.8))
    table.create(grebe.Lookup("there", on="id"))
    problems: list[BaseException] = []

    def slowly(frame: "DataFrame", *rest: Any) -> None:
        write_content(frame.where(FOR_MINUTES), *rest)

    def create() -> None:
        try:
            table.create(grebe.Covering("slow", on="id"))
        except GrebeError as problem:
            problems.append(problem)

    monkeypatch.setattr(build, "write_content", slowly)
    building = threading.Thread(target=create)
    building.start()
    folder = tmp_path / "_grebe" / "t" / "data" / "slow"
    while not any(folder.rglob("_temporary")):  # it is writing
        assert building.is_alive(), problems
        time.sleep(0.05)
    program = "from grebe.cli.main import main; main()"
    subprocess.run([sys.executable, "-c", program, "cancel", str(tmp_path / "t"), "slow"], check=True, timeout=60)
    building.join(60)
    assert not building.is_alive(), "its jobs were not stopped"
    (problem,) = problems
    assert isinstance(problem, WrongState)
    assert problem.code == "WRONG_STATE_OPERATION_ENDED"
    log = Log(LocalStore(tmp_path / "_grebe" / "t")).open()
    assert not log.state.operations
    assert set(log.state.indexes) == {"there"}
    monkeypatch.undo()
    assert table.create(grebe.Covering("slow", on="id"))[0].rows == 10_000
