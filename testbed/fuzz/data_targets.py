"""Fuzzed data files and maps of their pages: Parquet, ORC, CSV, JSON, read whole and by their records."""

import io
import random
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc

import grebe
from grebe.formats import Column, DataFile, Format, Reading, format_named
from grebe.indexes.content import sealed
from grebe.indexes.content.maps import Maps
from grebe.store.local import LocalStore
from grebe.store.memory import MemoryStore
from testbed.fuzz.mutators import TEXT, mutate
from testbed.fuzz.seeds import Seeds, all_rows
from testbed.fuzz.target import Target


class PageMapBytes(Target):
    def inputs(self) -> list[bytes]:
        return [path.read_bytes()[8:] for path in self.seeds.content("parquet", "lookup", "pages.gix")]

    def sealed(self, data: bytes) -> bytes:
        return sealed.sealed(data)

    def consume(self, data: bytes) -> str | None:
        format: Any = format_named("parquet")
        maps = Maps.of(format, data, "maps")
        file = self.seeds.data_files("parquet")[0]
        store = LocalStore(file.parent)
        for number in (0, 1, 2, 7):
            if number not in maps:
                continue
            one = maps[number]
            if one is None:
                continue
            for group in range(min(len(one.counts), 50)):
                one.chunks(group)
            path = self.seeds.data_files("parquet")[number % 3]
            data_file = DataFile(store, path.name, path.stat().st_size)
            format.fetch(data_file, _READING, _rows([0, 3, 21]), None, _Recalls(one))
        return None


class _Recalls:
    """A memory that knows one map."""

    def __init__(self, known: Any) -> None:
        self.known = known

    def recall(self, file: DataFile, read: Callable[[], Any], size: Callable[[Any], int]) -> Any:
        return self.known

    def get(self, file: DataFile, what: Any) -> None:
        return None

    def put(self, file: DataFile, what: Any, value: Any, nbytes: int) -> None:
        return None

    def is_worth(self, file: DataFile, what: Any, nbytes: int) -> bool:
        return False


def _rows(numbers: Sequence[int]) -> pa.RecordBatch:
    return pa.record_batch([pa.array(numbers, pa.int64())], names=["row"])


_COLUMNS = [
    Column("id", "long"),
    Column("name", "string"),
    Column("price", "double"),
    Column("day", "date"),
    Column("x", "double"),
    Column("y", "double"),
]
_READING = Reading.of("parquet", {}, _COLUMNS, "UTC", local_times=False)


class DataFileBytes(Target):
    """A data file of the table, read whole and by its records."""

    format: ClassVar[str]

    def __init__(self, seeds: Seeds) -> None:
        self._format: Format = format_named(self.format)
        super().__init__(seeds)
        options = self._format.options.complete({})
        self._reading = Reading.of(
            self.format,
            self._format.options.of_reading({}),
            _COLUMNS,
            "UTC",
            local_times=self._format.local_times,
            by_position=self._format.by_position,
        )
        self._options = options

    def inputs(self) -> list[bytes]:
        return [path.read_bytes() for path in self.seeds.data_files(self.format)]

    def consume(self, data: bytes) -> str | None:
        store = MemoryStore("data")
        store.put("t/part", data)
        file = DataFile(store, "t/part", len(data))
        first: list[Exception] = []
        for read in (self._columns, self._read, self._fetch):
            try:
                read(file)
            except grebe.GrebeError as refusal:
                first.append(refusal)
        if len(first) == 3:
            raise first[0]
        return None

    def _columns(self, file: DataFile) -> None:
        self._format.columns(file, self._options)

    def _read(self, file: DataFile) -> None:
        for located in self._format.read(file, self._reading):
            _used(located.records)
        for _ in self._format.read(file, self._reading, ["name"]):
            pass
        for _ in self._format.read(file, self._reading, []):
            pass

    def _fetch(self, file: DataFile) -> None:
        for locators in self._locators(file):
            _used(self._format.fetch(file, self._reading, locators))

    def _locators(self, file: DataFile) -> list[pa.RecordBatch]:
        return [_rows([0, 3, 21]), _rows([39]), _rows([])]


def _used(records: pa.RecordBatch | pa.Table) -> None:
    """Look at each value. Text may be of any bytes, as in Spark."""
    records.validate()
    for column in records.columns:
        kind = column.type
        plain = pa.binary() if pa.types.is_string(kind) else pa.int32() if pa.types.is_date32(kind) else kind
        column.cast(plain).to_pylist()


def _other_rows() -> pa.Table:
    """The same columns, and types that are stored in other ways."""
    rows = all_rows()[:45]
    rows = rows.append_column("list", pa.array([[n, None] if n % 3 else None for n in range(45)]))
    rows = rows.append_column("inner", pa.array([{"a": n, "b": str(n)} for n in range(45)]))
    return rows.append_column("at", pa.array(range(45), pa.timestamp("us")))


class ParquetBytes(DataFileBytes):
    format = "parquet"

    def inputs(self) -> list[bytes]:
        made = super().inputs()
        ways: list[dict[str, Any]] = [
            {"compression": "none", "use_dictionary": False, "write_page_index": True},
            {"compression": "zstd", "data_page_version": "2.0"},
            {
                "compression": "gzip",
                "use_deprecated_int96_timestamps": True,
                "store_schema": False,
                "write_page_index": True,
            },
            {"compression": "none", "row_group_size": 9},
        ]
        for way in ways:
            sink = io.BytesIO()
            pq.write_table(_other_rows(), sink, **way)
            made.append(sink.getvalue())
        return made

    def case(self, number: int) -> bytes:
        """Half of the mutations are in the footer."""
        chance = random.Random(f"parquet {number}")
        data = chance.choice(self.sound)
        length = int.from_bytes(data[-8:-4], "little")
        if chance.random() < 0.5:
            return mutate(chance, data, self.sound)
        footer = mutate(chance, data[-8 - length : -8], [data[-8 - length : -8]])
        ending = len(footer).to_bytes(4, "little") + b"PAR1"
        return data[: -8 - length] + footer + ending


class OrcBytes(DataFileBytes):
    format = "orc"

    def inputs(self) -> list[bytes]:
        made = super().inputs()
        for compression in ("uncompressed", "snappy", "zstd", "lz4", "zlib"):
            sink = io.BytesIO()
            orc.write_table(_other_rows(), sink, compression=compression, stripe_size=1024)
            made.append(sink.getvalue())
        plain = io.BytesIO()
        orc.write_table(all_rows()[:40], plain, compression="uncompressed")
        return [*made, plain.getvalue(), plain.getvalue(), plain.getvalue()]

    def case(self, number: int) -> bytes:
        """Half of the mutations are in the footer."""
        chance = random.Random(f"orc {number}")
        data = chance.choice(self.sound)
        if chance.random() < 0.4:
            return mutate(chance, data, self.sound)
        stop = len(data) - 1 if chance.random() < 0.7 else len(data)
        start = stop - chance.choice((30, 200, 400))
        tail = mutate(chance, data[max(start, 0) : stop], self.sound)
        return data[: max(start, 0)] + tail + data[stop:]


class CsvBytes(DataFileBytes):
    format = "csv"
    mutators = TEXT

    def _locators(self, file: DataFile) -> list[pa.RecordBatch]:
        ends = [place for place, byte in enumerate(file.read(0, file.size)) if byte == 10][:3] or [file.size]
        return [
            _spans([(0, ends[0])]),
            _spans([(start + 1, stop - start - 1) for start, stop in pairwise(ends)]),
            _spans([(9, file.size - 9)]),
        ]


class JsonBytes(CsvBytes):
    format = "json"
    mutators = TEXT

    def _columns(self, file: DataFile) -> None:
        """Only Spark finds them."""


def _spans(spans: Sequence[tuple[int, int]]) -> pa.RecordBatch:
    columns = [pa.array([span[side] for span in spans], pa.int64()) for side in (0, 1)]
    return pa.record_batch(columns, names=["offset", "length"])
