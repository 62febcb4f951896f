"""What is guessed of a table before it is read, and how what Spark raises is told."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grebe.errors import GrebeError, SourceChanged, StoreRefused, UnreadableFile
from grebe.files import FileList
from grebe.formats import Reading
from grebe.indexes.kind import FILE_COLUMN, Facts
from grebe.maintenance.facts import facts_of
from grebe.maintenance.failures import spark_errors
from grebe.sources import open_source
from grebe.store.local import LocalStore


def facts(folder: Path) -> tuple[Facts, FileList, Reading]:
    source = open_source(str(folder))
    files = source.files()
    return facts_of(files, source.reading(files), LocalStore(folder)), files, source.reading(files)


def test_footers_of_some_files_tell_of_all(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    for number in range(30):
        rows = 5_000
        home = [{"zip": int(n)} for n in random.integers(0, 10**9, rows)]
        table = pa.table({"id": random.integers(0, 2**60, rows), "flag": [True] * rows, "home": home})
        pq.write_table(table, tmp_path / f"{number}.parquet", compression="zstd")
    found, files, _ = facts(tmp_path)
    assert found.measured
    assert found.rows == pytest.approx(150_000, rel=0.05)
    assert found.bytes_of([("id",), ("home",), ("flag",)]) == pytest.approx(files.total_bytes, rel=0.1)
    assert found.bytes_of([("home", "zip")]) == found.bytes_of([("home",)]) > 10 * found.bytes_of([("flag",)])
    assert found.bytes_of([(FILE_COLUMN,)]) > 0


def test_text_is_guessed_by_its_size(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("\n".join(f"{n},{n * 7},name {n}" for n in range(100_000)), encoding="utf-8")
    found, _, reading = facts(tmp_path)
    assert not found.measured
    assert 100_000 / 4 < found.rows < 100_000 * 4
    assert found.bytes_of([(column.name,) for column in reading.columns]) > 100_000


def test_files_that_cannot_be_read_are_guessed_too(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "a.parquet")
    _, files, reading = facts(tmp_path)
    (tmp_path / "a.parquet").write_bytes(b"x" * files.total_bytes)
    assert not facts_of(files, reading, LocalStore(tmp_path)).measured
    assert facts_of(FileList.empty(files.root), reading, LocalStore(tmp_path)) == Facts(0)


class SparkFailure(Exception):
    """As PySpark's own look."""

    __module__ = "pyspark.errors.exceptions.captured"

    def getCondition(self) -> str:
        return "SOME_CONDITION"


@pytest.mark.parametrize(
    ("text", "kind", "code"),
    [
        ("Job aborted: java.io.FileNotFoundException: /lake/t/a.parquet", SourceChanged, "SOURCE_CHANGED_FILE_GONE"),
        (
            "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file a.parquet",
            UnreadableFile,
            "UNREADABLE_FILE_SPARK",
        ),
        (
            "org.apache.hadoop.security.AccessControlException: Permission denied: user=ann",
            StoreRefused,
            "STORE_REFUSED_PERMISSION",
        ),
        ("java.io.IOException: No space left on device", StoreRefused, "STORE_REFUSED_NO_ROOM"),
        ("[DIVIDE_BY_ZERO] the value 4711", GrebeError, "GREBE_ERROR_SPARK"),
    ],
)
def test_what_spark_raises_becomes_an_error_of_ours_without_values(
    text: str, kind: type[GrebeError], code: str
) -> None:
    with (
        pytest.raises(GrebeError, match="building index i failed in Spark") as told,
        spark_errors("building index i", "s3://b/x"),
    ):
        raise SparkFailure(text)
    assert type(told.value) is kind
    assert told.value.code == code
    assert "SOME_CONDITION" in str(told.value)
    assert "4711" not in str(told.value)
    assert isinstance(told.value.__cause__, SparkFailure)


def test_faults_of_ours_stay_what_they_are() -> None:
    for problem in (ValueError("a fault"), SourceChanged("changed")):
        with pytest.raises(type(problem)) as told, spark_errors("building", "x"):
            raise problem
        assert told.value is problem
