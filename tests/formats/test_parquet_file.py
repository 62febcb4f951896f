"""Footers are checked before Arrow gets them, in no more requests than Arrow needs, and no byte is read twice."""

import base64
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grebe.errors import UnreadableFile
from grebe.files.untrusted import decoding
from grebe.formats import Column, DataFile, format_named
from grebe.formats.parquet_file import open_parquet, parse_batches, parse_table
from grebe.formats.parquet_pages import read_row_count
from grebe.formats.parquet_pages.structure import check_whole, read_checked_footer
from grebe.formats.parquet_pages.thrift import INTEGERS, STRUCTS, read_struct, require_kinds
from grebe.formats.parquet_statistics import Statistics, footer_of
from grebe.maintenance.facts import leaf_sizes
from grebe.store.protocol import ObjectInfo
from tests.formats.page_tables import data_of, written
from tests.formats.reading_back import data_file


class Reads:
    """A store of one file that keeps what was asked for."""

    uri = "memory://reads"

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.spans: list[tuple[int, int]] = []

    def get_ranges(self, path: str, ranges: list[tuple[int, int]], expected: ObjectInfo | None = None) -> list[bytes]:
        self.spans += ranges
        return [self.data[start : start + length] for start, length in ranges]

    @property
    def file(self) -> DataFile:
        return DataFile(self, "a.parquet", len(self.data))  # type: ignore[arg-type]


@pytest.mark.parametrize(("columns", "requests"), [(3, 1), (600, 2)], ids=["short footer", "long footer"])
def test_a_footer_is_read_once(columns: int, requests: int) -> None:
    data = written(pa.table({f"column {n}": np.arange(50) for n in range(columns)}), row_group_size=5)
    reads = Reads(data)
    footer = footer_of(reads.file)
    assert footer.statistics(Column("column 1", "long")) == Statistics(0, 49, 0)
    assert len(reads.spans) == requests
    covered = sorted(reads.spans)
    assert all(start + length <= after for (start, length), (after, _) in pairwise(covered))
    assert sum(covered[-1]) == len(data)
    reads.spans.clear()
    assert format_named("parquet").columns(reads.file, {})[1] == Column("column 1", "long")
    assert len(reads.spans) == requests


def test_the_number_of_rows_is_read_without_the_row_groups() -> None:
    data = written(pa.table({"a": range(70)}), row_group_size=9)
    assert read_row_count(data_of(data)) == 70
    for damaged in (data[:-4] + b"PARE", data[:20], data[:-8] + b"\xff\xff\xff\xff" + data[-4:]):
        with pytest.raises(UnreadableFile):
            read_row_count(data_of(damaged))


def encrypted(folder: Path, plaintext_footer: bool) -> DataFile:
    """A file whose column `b` has a key of its own."""
    encryption = pytest.importorskip("pyarrow.parquet.encryption")

    class Keys(encryption.KmsClient):  # type: ignore[misc, name-defined]
        def __init__(self, config: object) -> None:
            encryption.KmsClient.__init__(self)

        def wrap_key(self, key: bytes, master: str) -> bytes:
            return base64.b64encode(key)

    made = encryption.CryptoFactory(Keys).file_encryption_properties(
        encryption.KmsConnectionConfig(),
        encryption.EncryptionConfiguration(footer_key="f", column_keys={"k": ["b"]}, plaintext_footer=plaintext_footer),
    )
    table = pa.table({"a": pa.array([1, 2], pa.int64()), "b": pa.array([3, 4], pa.int64())})
    pq.write_table(table, folder / "a.parquet", encryption_properties=made, write_page_index=True)
    return data_file(folder / "a.parquet")


def test_of_a_file_with_an_encrypted_column_the_others_are_read(tmp_path: Path) -> None:
    """Arrow ends the process when it is asked for the statistics, or the page index, of the encrypted one."""
    file = encrypted(tmp_path, plaintext_footer=True)
    footer = footer_of(file)
    assert footer.statistics(Column("a", "long")) == Statistics(1, 2, 0)
    assert footer.statistics(Column("b", "long")) is None
    assert {leaf for leaf, _ in leaf_sizes(file, read_checked_footer(file))} == {("a",), ("b",)}
    parquet = format_named("parquet")
    parquet.map_of(file)  # type: ignore[attr-defined]
    assert [column.name for column in parquet.columns(file, {})] == ["a", "b"]


def test_a_file_with_an_encrypted_footer_is_unreadable(tmp_path: Path) -> None:
    file = encrypted(tmp_path, plaintext_footer=False)
    for use in (footer_of, read_checked_footer, open_parquet, read_row_count):
        with pytest.raises(UnreadableFile, match="its footer is encrypted"):
            use(file)


@pytest.mark.parametrize("cut", [0, 1, 7])
def test_a_statistic_that_is_shorter_than_its_type_is_not_trusted(cut: int) -> None:
    """Arrow ends the process over it."""
    data = written(pa.table({"a": pa.array([0x1122334455667788] * 3, pa.int64())}), compression="none")
    assert footer_of(data_of(data)).statistics(Column("a", "long")) is not None
    value = (0x1122334455667788).to_bytes(8, "little")
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = data[start:-8]
    assert footer.count(b"\x08" + value) == 4
    footer = footer.replace(b"\x08" + value, bytes((cut,)) + value[:cut])
    forged = data[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    assert footer_of(data_of(forged)).statistics(Column("a", "long")) is None


def test_some_columns_of_a_whole_file_are_read_with_what_is_nested_in_them() -> None:
    table = pa.table({"a": [1, 2], "b": [{"c": 3, "d": "x"}] * 2, "e.f": [5, 6]})
    data = written(table)
    assert parse_table(data).equals(table)
    assert parse_table(data, ["b.c"]).to_pylist() == [{"b": {"c": 3}}] * 2
    assert parse_table(data, ["a", "e.f"], checksums=True).column_names == ["a", "e.f"]
    long = written(pa.table({"a": np.arange(150_000), "b": np.arange(150_000)}))
    batches = list(parse_batches(long, ["b"]))
    assert [batch.schema.names for batch in batches] == [["b"]] * len(batches)
    assert len(batches) > 1
    assert pa.concat_arrays([batch.column(0) for batch in batches]).equals(pa.array(np.arange(150_000)))


def test_a_page_that_is_not_asked_for_is_not_checked() -> None:
    data = written(pa.table({"a": [1, 2], "b": [{"c": 3}] * 2}), compression="none", use_dictionary=False)
    place = data.index(b"\x15\x00\x15")  # the header of the first page, which says how long it is
    forged = data[: place + 3] + b"\x7f" + data[place + 4 :]
    forged = forged[: place + 5] + b"\x7f" + forged[place + 6 :]
    check_whole(forged, ["b"])
    assert parse_table(forged, ["b"]).num_rows == 2
    for columns in (None, ["a"], ["a", "b"]):
        with pytest.raises(UnreadableFile), decoding(lambda why: UnreadableFile(why)):
            parse_table(forged, columns)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x15\x02\x05\x02\x04\x00", "there twice"),
        (b"\x05\x00\x02\x00", "or none"),
        (b"\x05\x01\x02\x00", "or none"),
        (b"\x05\x86\x80\x08\x02\x00", "or none"),
        (b"\x16\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x00", "more than 64 bits"),
    ],
    ids=["twice", "number 0", "negative", "17 bits", "a long number"],
)
def test_fields_that_another_reader_would_take_for_others_are_damage(data: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_struct(data)


def test_a_list_of_items_of_another_kind_than_it_should_have_is_damage() -> None:
    """Another reader would take the bytes for structs, or numbers, and read all that lies behind otherwise."""
    fields, _ = read_struct(b"\x19\x28\x01a\x01b\x19\x25\x02\x04\x19\x0c\x00")
    assert fields == {1: [b"a", b"b"], 2: [1, 2], 3: []}
    require_kinds(fields, {2: (INTEGERS,), 3: (INTEGERS,), 4: (STRUCTS,)})
    with pytest.raises(ValueError, match="kind 8"):
        require_kinds(fields, {1: (STRUCTS,)})
    data = written(pa.table({"a": [1]}))
    # The list of encodings, whose items are said to be bytes: as many of them, of one byte each.
    place = data.rindex(b"\x19\x35")
    forged = data[: place + 1] + b"\x33" + data[place + 2 :]
    with pytest.raises(UnreadableFile, match="ValueError"):
        open_parquet(data_of(forged))
