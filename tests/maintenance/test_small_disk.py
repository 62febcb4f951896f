"""A disk that is really full: a small file system in memory. One error, the same answers, and the next verb works at once."""

import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import grebe
from grebe.errors import StoreRefused
from grebe.session.lake_table import LakeTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
_ROWS = 60_000


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A disk of half a megabyte."""
    mount, folder = shutil.which("mount"), tmp_path / "small"
    folder.mkdir()
    command = [mount or "mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(folder)]
    if mount is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small disk here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    folder = tmp_path / "t"
    folder.mkdir()
    drawn = random.Random(7)
    texts = [f"{drawn.getrandbits(128):032x}" for _ in range(_ROWS)]
    values = pa.table({"a": [number * 7919 % _ROWS for number in range(_ROWS)], "s": texts})
    pq.write_table(values, folder / "0.parquet")
    return folder


def test_a_build_that_finds_no_room_leaves_the_table_and_the_process_as_they_were(
    spark: "SparkSession", small: Path, table: Path
) -> None:
    indexed = LakeTable(spark, str(table), location=str(small / "index"))
    with pytest.raises(StoreRefused, match="no room left") as refused:
        indexed.create(grebe.Covering("wide", on="s", include=["a"]))
    assert refused.value.code == "STORE_REFUSED_NO_ROOM"
    assert grebe.open(str(table), location=str(small / "index")).get("a", 7, columns=["a"]).num_rows == 1
    assert indexed.vacuum().waiting == 0
    assert not list((small / "index").rglob("*.gix"))
    assert not list((small / "index").rglob("_temporary"))
    assert indexed.create(grebe.Skipping("narrow", grebe.MinMax("a")))[0].files_covered == 1
    assert indexed.verify().ok


@pytest.mark.soak
def test_the_command_line_says_one_error_and_vacuum_frees_what_was_left(small: Path, table: Path) -> None:
    program = [sys.executable, "-c", "from grebe.cli.main import main; main()"]
    where = [str(table), "--location", str(small / "index")]
    made = subprocess.run(
        [*program, "create", where[0], "wide", "--kind", "covering", "--on", "s", "--include", "a", *where[1:]],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 1
    assert [line[:30] for line in made.stderr.splitlines() if line.startswith("error:")] == [
        "error: [STORE_REFUSED_NO_ROOM]"
    ]
    assert "Traceback" not in made.stderr
    assert "\tat " not in made.stderr
    subprocess.run([*program, "vacuum", *where], check=True, capture_output=True)
    assert not list((small / "index").rglob("*.gix"))
