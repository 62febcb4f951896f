"""A read that gets no clear answer is repeated; the outcome "unknown" of a single request never reaches a user."""

import errno
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import grebe
from grebe.errors import GrebeError, StoreUnreachable
from grebe.store import opening
from grebe.store.local import LocalStore
from grebe.store.opening import open_table_store
from grebe.store.protocol import OutcomeUnknown


@pytest.fixture
def table(tmp_path: Path) -> Path:
    folder = tmp_path / "t"
    folder.mkdir()
    pq.write_table(pa.table({"a": list(range(100))}), folder / "0.parquet")
    return folder


class Failing:
    """The disk fails at so many reads."""

    def __init__(self, patch: pytest.MonkeyPatch, times: float) -> None:
        self.left = times
        self._read = os.pread
        patch.setattr(os, "pread", self.read)

    def read(self, handle: int, length: int, start: int) -> bytes:
        if self.left > 0:
            self.left -= 1
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return self._read(handle, length, start)


def test_a_disk_that_fails_now_and_then_is_read_all_the_same(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = Failing(monkeypatch, 3)
    assert grebe.open(str(table)).get("a", 7).num_rows == 1
    assert failing.left == 0


def test_a_disk_that_goes_on_failing_is_out_of_reach(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "_PATIENCE", 0.05)
    Failing(monkeypatch, float("inf"))
    with pytest.raises(GrebeError) as failed:
        grebe.open(str(table)).scan("a = 7")
    assert failed.value.code == "STORE_UNREACHABLE"
    assert "OUTCOME_UNKNOWN" not in str(failed.value)


def test_a_listing_that_goes_on_failing_is_out_of_reach(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "_PATIENCE", 0.05)

    def fail(self: LocalStore, prefix: str = "", start_after: str = "") -> None:
        raise OutcomeUnknown("no answer")

    monkeypatch.setattr(LocalStore, "list", fail)
    with pytest.raises(StoreUnreachable):
        list(open_table_store(str(table)).list())
