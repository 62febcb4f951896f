"""`ParquetFormat.fetch` reads pages where that pays, row groups elsewhere, and the same rows either way."""

import numpy as np
import pyarrow as pa
import pytest

from grebe.errors import UnreadableFile
from grebe.formats import Column, DataFile, Reading
from grebe.formats.parquet import PARQUET
from grebe.store.counting import Counting
from tests.formats.page_tables import data_of, written
from tests.formats.reading_back import reading_of

TABLE = pa.table(
    {
        "a": np.random.default_rng(1).random(100_000),
        "b": pa.array([f"text {i}" for i in range(100_000)]),
        "c": pa.array([{"x": i} for i in range(100_000)]),
    }
)


def fetch(file: DataFile, rows: list[int], names: list[str] | None = None, reading: Reading | None = None) -> pa.Table:
    locators = pa.record_batch([pa.array(rows, pa.int64())], schema=PARQUET.locator.schema)
    return PARQUET.fetch(file, reading or reading_of(PARQUET, file), locators, names)


def bytes_read(file: DataFile) -> int:
    assert isinstance(file.store, Counting)
    return file.store.counts.bytes_read


@pytest.mark.parametrize("rows", [[7], [99_999, 0, 7, 7, 50_000], list(range(0, 90_000, 3)), []], ids=len)
@pytest.mark.parametrize("index", [True, False], ids=["page index", "no page index"])
def test_rows_come_in_the_order_of_their_locators(rows: list[int], index: bool) -> None:
    file = data_of(written(TABLE, max_rows_per_page=2_000, row_group_size=30_000, write_page_index=index))
    expected = TABLE.take(pa.array(rows, pa.int64()))
    assert fetch(file, rows).to_pylist() == expected.to_pylist()
    assert fetch(file, rows, ["c", "a"]).to_pylist() == expected.select(["c", "a"]).to_pylist()


def test_few_rows_cost_their_pages_and_many_their_row_groups() -> None:
    content = written(TABLE.select(["a"]), max_rows_per_page=2_000, use_dictionary=False, write_page_index=True)
    few, many, blind = data_of(content), data_of(content), data_of(written(TABLE.select(["a"]), use_dictionary=False))
    reading = reading_of(PARQUET, data_of(content))
    fetch(few, [50_000], reading=reading)
    fetch(many, list(range(0, 100_000, 5)), reading=reading)
    fetch(blind, [50_000], reading=reading)
    assert bytes_read(few) < 100_000
    assert bytes_read(many) > 800_000
    assert bytes_read(blind) > 800_000


def test_columns_are_brought_to_those_of_the_table() -> None:
    content = written(TABLE, max_rows_per_page=2_000, write_page_index=True)
    columns = [("B", "string"), ("absent", "date"), ("c", '{"type":"struct","fields":[{"name":"x","type":"long"}]}')]
    reading = Reading.of("parquet", {}, tuple(Column(name, kind) for name, kind in columns), "UTC", local_times=False)
    assert fetch(data_of(content), [77_777], reading=reading).to_pylist() == [
        {"B": "text 77777", "absent": None, "c": {"x": 77_777}}
    ]


def test_rows_of_no_column_that_the_file_has_are_null() -> None:
    content = written(TABLE, max_rows_per_page=2_000, write_page_index=True)
    reading = Reading.of("parquet", {}, (Column("absent", "date"),), "UTC", local_times=False)
    assert fetch(data_of(content), [5, 77_777], reading=reading).to_pylist() == [{"absent": None}] * 2


def test_a_damaged_page_is_unreadable() -> None:
    content = bytearray(written(TABLE, max_rows_per_page=2_000, use_dictionary=False, write_page_index=True))
    reading = reading_of(PARQUET, data_of(bytes(content)))
    content[4:2_000] = bytes(1_996)
    with pytest.raises(UnreadableFile, match="no Parquet file that can be read"):
        fetch(data_of(bytes(content)), [5], reading=reading)
