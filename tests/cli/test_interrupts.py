"""Ctrl-C: one line, exit code 130, the operation rolled back, and Spark as good as before."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import grebe
from grebe.cli.interrupts import held_back, interruptible
from grebe.cli.verb import Verb, Verbs
from grebe.indexes.classic import functions
from grebe.session.lake_table import LakeTable
from tests.maintenance.disturbed import Disturbed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def rolled_back(table: str) -> list[str]:
    changes = (change for entry in grebe.open(table).history() for change in entry.changes)
    return [change.partition(": ")[2] for change in changes if change.startswith("rolled back")]


def test_a_verb_that_is_interrupted_says_one_line_and_exits_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command("wait", cls=Verb)
    def wait() -> None:
        ctrl_c()

    group = Verbs(verbs={})
    monkeypatch.setattr(group, "get_command", lambda context, name: wait)
    result = CliRunner().invoke(group, ["wait"])
    assert result.exit_code == 130
    assert result.stdout == ""
    assert result.stderr == "error: cancelled by the user\n"


def test_an_interrupt_is_kept_back_and_raised_once_the_block_has_ended() -> None:
    before, steps = signal.getsignal(signal.SIGINT), []

    def work(interrupts: int) -> None:
        with held_back() as hold:
            for _ in range(interrupts):
                ctrl_c()
            signal.signal(signal.SIGINT, before)
            hold()
            steps.append(interrupts)

    work(0)
    for interrupts in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            work(interrupts)
    assert steps == [0, 1]
    assert signal.getsignal(signal.SIGINT) == before


@pytest.mark.spark
@pytest.mark.parametrize("share", [0.3, 0.7])
def test_a_real_ctrl_c_while_java_starts_leaves_no_java(tmp_path: Path, share: float) -> None:
    spark_starts = 4.0
    folder = tmp_path / "t"
    folder.mkdir()
    pq.write_table(pa.table({"s": ["a", "b"]}), folder / "0.parquet")
    program = "from grebe.cli.main import main; main()"
    asked = ["create", str(folder), "by_s", "--kind", "lookup", "--on", "s", "--master", "local[1]"]
    with subprocess.Popen(
        [sys.executable, "-c", program, *asked],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        while not (java := _java_of(process.pid)):
            assert process.poll() is None
            time.sleep(0.02)
        time.sleep(share * spark_starts)
        os.killpg(process.pid, signal.SIGINT)
        said = process.communicate(timeout=120)[1]  # which ends only when Java has let go of the pipes
    assert process.returncode == 130
    assert said.splitlines()[-1] == "error: cancelled by the user"
    assert "Traceback" not in said
    assert not any(Path(f"/proc/{one}").exists() and _is_alive(one) for one in java)


def _java_of(session: int) -> list[int]:
    """The processes of a session that are a Java, or are becoming one."""
    found = subprocess.run(["ps", "-o", "pid=,comm=", "-s", str(session)], capture_output=True, text=True, check=False)
    return [int(line.split()[0]) for line in found.stdout.splitlines() if line.split()[1] == "java"]


def _is_alive(process: int) -> bool:
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.spark
def test_an_interrupted_build_is_rolled_back_and_the_history_says_by_whom(
    spark: "SparkSession", tmp_path: Path
) -> None:
    folder = tmp_path / "t"
    spark.range(100).write.parquet(str(folder))
    table = LakeTable(spark, str(folder))
    with pytest.raises(KeyboardInterrupt), interruptible(spark):
        table.create(Disturbed("i", on="id", written=ctrl_c))
    assert rolled_back(str(folder)) == ["cancelled by the user"]
    assert table.create(grebe.Covering("i", on="id"))[0].rows == 100
    assert signal.getsignal(signal.SIGINT) is not None


@pytest.mark.spark
def test_a_running_job_is_cancelled_and_the_session_goes_on(
    spark: "SparkSession", tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    slowly = spark.range(4_000).select(functions.expr("java_method('java.lang.Thread', 'sleep', 20L)"))

    def interrupt() -> None:
        while not spark.sparkContext.statusTracker().getActiveJobsIds():
            time.sleep(0.05)
        ctrl_c()

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt), interruptible(spark):
        slowly.collect()
    thread.join()
    assert spark.range(3).count() == 3
    assert "Error while sending or receiving" not in capfd.readouterr().err


@pytest.mark.spark
@pytest.mark.soak
def test_a_real_ctrl_c_in_create_leaves_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    texts = [f"value {number * 7919 % 1_000_003}" for number in range(1_000_000)]
    for number in range(4):
        pq.write_table(pa.table({"s": texts}), folder / f"{number}.parquet")
    program = "from grebe.cli.main import main; main()"
    asked = ["create", str(folder), "by_s", "--kind", "lookup", "--on", "s", "--master", "local[1]"]
    command = [sys.executable, "-c", program, *asked]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        while not any((tmp_path / "_grebe").rglob("_temporary")):
            assert process.poll() is None
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does, to its Java as well
        said = process.communicate(timeout=120)[1]
    assert process.returncode == 130
    assert said.splitlines()[-1] == "error: cancelled by the user"
    assert "Traceback" not in said
    assert "\tat " not in said
    assert " ERROR " not in said
    assert rolled_back(str(folder)) == ["cancelled by the user"]
