"""`grebe watch`: rounds at intervals, failures that do not end it, and Ctrl-C that does."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import grebe
from grebe.cli import watch as watching
from grebe.cli.main import main
from grebe.session.lake_table import LakeTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def watch(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["watch", *arguments])


def rounds(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def rows(first: int, count: int) -> pa.Table:
    return pa.table({"id": pa.array(range(first, first + count), pa.int64())})


class Clock:
    """Sleeping takes no time; what happens in it is up to the test."""

    def __init__(self, *happens: Any) -> None:
        self.slept: list[float] = []
        self._happens = list(happens)
        self._now = 0.0

    def monotonic(self) -> float:
        return self._now

    def now_ms(self) -> int:
        return int(self._now * 1000)

    def sleep(self, seconds: float) -> None:
        self._now += seconds
        if seconds:
            self.slept.append(seconds)
            self._happens.pop(0)()


@pytest.fixture
def table(spark: "SparkSession", tmp_path: Path) -> str:
    (tmp_path / "t").mkdir()
    pq.write_table(rows(0, 100), tmp_path / "t" / "0.parquet")
    LakeTable(spark, str(tmp_path / "t")).create(grebe.Lookup("by_id", on="id"))
    return str(tmp_path / "t")


@pytest.mark.spark
def test_every_round_refreshes_and_is_one_line(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def more() -> None:
        pq.write_table(rows(100, 50), Path(table) / "1.parquet")

    clock = Clock(more, lambda: None)
    monkeypatch.setattr(watching, "SYSTEM", clock)
    result = watch(table, "--every", "5m", "--times", "3", "--json")
    assert result.exit_code == 0, result.output
    told = rounds(result)
    assert [(one["round"], one["indexes"][0]["rows"], one["error"]) for one in told] == [
        (1, 100, None),
        (2, 150, None),
        (3, 150, None),
    ]
    assert told[2]["indexes"] == [{"name": "by_id", "rows": 150, "files_covered": 2, "files_stale": 0, "problem": ""}]
    assert clock.slept == [300, 300]
    (line,) = watch(table, "by_id", "--times", "1", "--mode", "quick").stdout.splitlines()
    assert line.startswith("round 1, ")
    assert line.endswith("by_id: 150 rows of 2 files")


@pytest.mark.spark
def test_a_round_that_fails_is_told_of_and_the_next_tries_again(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def damage() -> None:
        (Path(table) / "1.parquet").write_bytes(b"no parquet")

    def mend() -> None:
        pq.write_table(rows(100, 50), Path(table) / "1.parquet")

    monkeypatch.setattr(watching, "SYSTEM", Clock(damage, mend))
    first, failed, mended = rounds(watch(table, "--every", "30", "--times", "3", "--json"))
    assert first["error"] is None
    assert failed["error"]["code"] == "UNREADABLE_FILE_SPARK"
    assert failed["indexes"] == []
    assert mended["error"] is None
    assert mended["indexes"][0]["rows"] == 150
    monkeypatch.setattr(watching, "SYSTEM", Clock(damage))
    result = watch(table, "--times", "2")
    assert result.exit_code == 1, "the last round failed"
    assert result.stdout.splitlines()[1].startswith("round 2, 0.0 s: failed: [UNREADABLE_FILE_SPARK]")


@pytest.mark.spark
def test_ctrl_c_ends_it_with_0(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(watching, "SYSTEM", Clock(interrupt))
    result = watch(table)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[1:] == ["Stopped."]


@pytest.mark.spark
@pytest.mark.soak
def test_a_real_ctrl_c_ends_a_process_with_its_spark(table: str) -> None:
    program = "from grebe.cli.main import main; main()"
    command = [sys.executable, "-c", program, "watch", table, "--every", "1h", "--json", "--master", "local[1]"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["round"] == 1
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(60) == 0


@pytest.mark.spark
def test_a_table_that_is_not_there_ends_it_at_once(spark: "SparkSession", tmp_path: Path) -> None:
    result = watch(str(tmp_path / "nothing"), "--times", "1")
    assert result.exit_code == 1
    assert "TABLE_NOT_FOUND" in result.stderr


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30", 30), ("30s", 30), ("5m", 300), ("1.5h", 5_400), ("1D", 86_400), (" 2 h ", 7_200), ("0.5s", 0.5)],
)
def test_time_spans(text: str, seconds: float) -> None:
    assert watching.Span().convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "0", "0m", "-5m", "5 weeks", "m", "nan", "1e3", "٣m"])
def test_what_is_no_time_span_is_wrong_use(text: str) -> None:
    with pytest.raises(click.BadParameter, match="no time span"):
        watching.Span().convert(text, None, None)
    assert watch("t", f"--every={text}").exit_code == 2
