"""ORC without Spark: a row is fetched by few bytes in few requests, whatever the compression, and damage is told."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.orc
import pytest

from grebe.errors import UnreadableFile, Unsupported
from grebe.formats import DataFile
from grebe.formats.orc import ORC
from grebe.formats.protocol import NoMemory
from grebe.store.local import LocalStore
from grebe.store.protocol import ObjectInfo
from tests.formats.reading_back import all_rows, data_file, plain, reading_of

ROWS = 40_000
TABLE = pa.table(
    {
        "a": np.random.default_rng(1).random(ROWS),
        "n": pa.array([{"x": row, "y": [row, None]} for row in range(ROWS)]),
        "text": [f"text {row % 1000}" for row in range(ROWS)],
        "b": np.random.default_rng(2).random(ROWS),
    }
)
CODECS = ("uncompressed", "zlib", "snappy", "lz4", "zstd")
FEW = (ROWS - 1, 3, ROWS // 2)


class Asked(LocalStore):
    """Remembers what was asked for, call by call."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.calls: list[list[tuple[int, int]]] = []

    def get_ranges(
        self, path: str, ranges: Sequence[tuple[int, int]], expected: ObjectInfo | None = None
    ) -> list[bytes]:
        self.calls.append(list(ranges))
        return super().get_ranges(path, ranges, expected)


class Remembered(NoMemory):
    known: Any = None

    def recall(self, file: DataFile, read: Callable[[], Any], size: Callable[[Any], int]) -> Any:
        if self.known is None:
            self.known = read()
            assert size(self.known) >= len(self.known.tail)
        return self.known


def write(path: Path, codec: str) -> None:
    pa.orc.write_table(
        TABLE, path, compression=codec, stripe_size=100_000, compression_block_size=65_536, batch_size=500
    )


def locators(*rows: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(rows)], schema=ORC.locator.schema)


@pytest.mark.parametrize("codec", CODECS)
def test_a_fetch_reads_the_wanted_columns_of_the_stripes_that_hold_the_rows(tmp_path: Path, codec: str) -> None:
    write(tmp_path / "t.orc", codec)
    assert pa.orc.ORCFile(tmp_path / "t.orc").nstripes > 3
    store, memory = Asked(tmp_path), Remembered()
    file = DataFile(store, "t.orc", (tmp_path / "t.orc").stat().st_size)
    reading = reading_of(ORC, data_file(tmp_path / "t.orc"))
    for rounds in (3, 2):
        store.calls.clear()
        found = ORC.fetch(file, reading, locators(*FEW), ["n", "a"], memory)
        assert plain(found) == plain(TABLE.select(["n", "a"]).take(list(FEW)))
        assert len(store.calls) == rounds, "the tail only once; then footers of stripes, then all streams at once"
    assert sum(length for call in store.calls for _, length in call) < file.size / 3


@pytest.mark.parametrize("codec", CODECS)
def test_all_rows_are_found_in_all_stripes(tmp_path: Path, codec: str) -> None:
    write(tmp_path / "t.orc", codec)
    file = data_file(tmp_path / "t.orc")
    assert all_rows(ORC, file, reading_of(ORC, file), ["text", "b"]) == plain(TABLE.select(["text", "b"]))


def test_no_rows_and_no_columns_are_no_trouble(tmp_path: Path) -> None:
    write(tmp_path / "t.orc", "zstd")
    file = data_file(tmp_path / "t.orc")
    reading = reading_of(ORC, file)
    assert ORC.fetch(file, reading, locators(), ["a"]).num_rows == 0
    assert ORC.fetch(file, reading, locators(1, 1), []).num_rows == 2
    with pytest.raises(Unsupported, match=f"has {ROWS} rows") as refused:
        ORC.fetch(file, reading, locators(ROWS), ["a"])
    assert refused.value.code == "UNSUPPORTED_LOCATOR"


@pytest.mark.parametrize("codec", ["zlib", "snappy", "zstd"])
def test_damage_within_a_stripe_is_told(tmp_path: Path, codec: str) -> None:
    path = tmp_path / "t.orc"
    write(path, codec)
    reading = reading_of(ORC, data_file(path))
    whole = bytearray(path.read_bytes())
    whole[3 : len(whole) // 2] = bytes(len(whole) // 2 - 3)
    path.write_bytes(whole)
    with pytest.raises(UnreadableFile, match=r"\[UNREADABLE_FILE_ORC\].*no ORC file that can be read"):
        all_rows(ORC, data_file(path), reading)
