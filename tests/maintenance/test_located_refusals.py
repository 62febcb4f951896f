"""Why rows are not located, by the code: what both readers of a build may disagree about. Nothing here needs a JVM."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from grebe.errors import Unsupported
from grebe.files import FileList
from grebe.formats import Column, Reading
from grebe.indexes.content.entries import require_located_alike
from grebe.indexes.kind import LocatedRows
from grebe.maintenance import located

FILES = FileList.build("file:///t", ["a.csv", "b.csv"], [1, 1], [1, 1])
IDS = np.array([0, 1], np.uint32)


@pytest.mark.parametrize(
    ("ours", "said"),
    [((2, 7, 7), "sees 2 records for 3 in file:///t/b.csv"), ((3, 7, 8), "other values than Spark in")],
)
def test_readers_that_differ_are_told_apart_by_number_and_by_sum(ours: tuple[int, int, int], said: str) -> None:
    same = (1, 5, 5)
    with pytest.raises(Unsupported, match=said) as differ:
        located._require_same({0: same, 1: ours}, {0: same, 1: (3, 7, 7)}, FILES, IDS)
    assert differ.value.code == "UNSUPPORTED_READERS_DIFFER"


def test_what_our_reader_refused_in_a_task_is_told_by_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(0, 1, 5, 5, None), (1, 1, 5, 5, "b.csv has quotes that only Spark can read")]
    monkeypatch.setattr(located, "_summed", lambda *given: SimpleNamespace(collect=lambda: found))
    monkeypatch.setattr(located, "functions", SimpleNamespace(min=str))
    with pytest.raises(Unsupported, match=r"b\.csv has quotes that only Spark can read") as refused:
        located._sums_of_ours(None, ())  # type: ignore[arg-type]  # what it would be asked is given above
    assert refused.value.code == "UNSUPPORTED_READER"


def test_workers_without_the_package_are_told_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.errors import PythonException

    def failing() -> Any:
        raise PythonException("ModuleNotFoundError: No module named 'grebe'")

    monkeypatch.setattr(located, "_summed", lambda *given: SimpleNamespace(collect=failing))
    monkeypatch.setattr(located, "functions", SimpleNamespace(min=str))
    with pytest.raises(Unsupported, match="the package must be installed for them as well") as refused:
        located._sums_of_ours(None, ())  # type: ignore[arg-type]  # what it would be asked is given above
    assert refused.value.code == "UNSUPPORTED_WORKERS"


def test_files_that_lie_outside_of_the_table_are_left_to_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(located, "storage_options", lambda session, uri: {})
    reading = Reading.of("csv", {}, (Column("a", "string"),), "UTC", local_times=True, by_position=True)
    source: Any = SimpleNamespace(uri="s3://b/t", session=None, reading=reading, settling_ms=0)
    files = FileList.build("s3://b/t", ["a.csv", "s3://other/b.csv"], [1, 1], [1, 1])
    with pytest.raises(Unsupported, match="s3://b/t keeps files elsewhere, where Grebe does not read") as refused:
        located.record_reader(source, files, IDS, {"a"})
    assert refused.value.code == "UNSUPPORTED_ELSEWHERE"


def test_rows_that_are_not_located_do_not_join_those_that_are() -> None:
    rows = LocatedRows(None, (), file_level="b.csv has quotes")  # type: ignore[arg-type]  # its rows are not looked at
    with pytest.raises(Unsupported, match=r"index i: b\.csv has quotes; refresh with mode='full'") as refused:
        require_located_alike("i", rows, ("_grebe_offset",))
    assert refused.value.code == "UNSUPPORTED_LOCATORS_CHANGED"
