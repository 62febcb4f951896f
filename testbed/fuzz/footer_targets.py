"""Fuzzed footers of Parquet files, read for rows, columns and values; and the files that keep rows deleted from Iceberg."""

import base64
import io
import json
import random
import struct
import zlib
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap

import grebe
from grebe.errors import UnreadableFile
from grebe.files.untrusted import decoding
from grebe.formats import Column, DataFile
from grebe.formats.parquet_file import open_parquet
from grebe.formats.parquet_pages import naming, read_row_count
from grebe.formats.parquet_pages.projection import projection_of
from grebe.formats.parquet_pages.structure import read_checked_footer
from grebe.formats.parquet_statistics import footer_of
from grebe.formats.spark_types import spark_type, type_text
from grebe.indexes.content.bounds import bounds_of
from grebe.maintenance.facts import leaf_sizes
from grebe.sources.iceberg_deletes import positions_in_parquet, positions_in_puffin
from grebe.store.memory import MemoryStore
from testbed.fuzz.mutators import mutate
from testbed.fuzz.seeds import Seeds
from testbed.fuzz.target import Target

_ENDING = 8


def _values() -> pa.Table:
    """A column of each type that statistics are kept of."""
    count = 45
    numbers = [n * 37 % 101 - 50 if n % 7 else None for n in range(count)]
    names = {"byte": pa.int8(), "short": pa.int16(), "int": pa.int32(), "long": pa.int64(), "unsigned": pa.uint32()}
    columns = {name: pa.array(numbers, pa.int64()).cast(kind, safe=False) for name, kind in names.items()}
    columns |= {name: pa.array(numbers, kind) for name, kind in (("float", pa.float32()), ("double", pa.float64()))}
    columns["flag"] = pa.array([None if n is None else n > 0 for n in numbers])
    columns["day"] = columns["int"].cast(pa.date32())
    columns["at"] = columns["long"].cast(pa.timestamp("us", "UTC"))
    columns["text"] = pa.array([None if n is None else f"text {n}" for n in numbers])
    columns["raw"] = pa.array([None if n is None else b"\xff" * (n % 5) for n in numbers])
    columns["fixed"] = pa.array([None if n is None else b"four" for n in numbers], pa.binary(4))
    columns["price"] = pa.array([None if n is None else Decimal(n) / 4 for n in numbers], pa.decimal128(9, 2))
    columns["wide"] = pa.array([None if n is None else Decimal(n) for n in numbers], pa.decimal128(30, 0))
    columns["inner"] = pa.array(
        [{"a": n, "b": None} for n in numbers], pa.struct([("a", pa.int64()), ("b", pa.string())])
    )
    columns["list"] = pa.array([[n, None] if n is not None else None for n in numbers], pa.list_(pa.int32()))
    return pa.table(columns)


class ParquetFooter(Target):
    """What is taken from footers alone: counts of rows, sizes of columns, statistics of values, types."""

    def __init__(self, seeds: Seeds) -> None:
        super().__init__(seeds)
        table = _values()
        kinds = [(one.name, type_text(spark_type(one.type))) for one in table.schema if one.name != "unsigned"]
        self._columns = [Column(name, kind) for name, kind in kinds]
        self._columns += [
            Column("id", "long"),
            Column("name", "string"),
            Column("x", "double"),
            Column("unsigned", "int"),
        ]

    def inputs(self) -> list[bytes]:
        made = [path.read_bytes() for path in self.seeds.data_files("parquet")]
        ways: list[dict[str, Any]] = [
            {"row_group_size": 20, "write_page_index": True, "store_decimal_as_integer": True},
            {"row_group_size": 45, "use_deprecated_int96_timestamps": True, "store_schema": False},
            {"row_group_size": 11, "compression": "zstd", "sorting_columns": [pq.SortingColumn(0)]},
            {"version": "1.0", "write_statistics": False, "compression": "none"},
        ]
        for way in ways:
            sink = io.BytesIO()
            pq.write_table(_values(), sink, **way)
            made.append(sink.getvalue())
        return made

    def case(self, number: int) -> bytes:
        chance = random.Random(f"parquet_footer {number}")
        data = chance.choice(self.sound)
        way = chance.random()
        if way < 0.1:
            return mutate(chance, data, self.sound)
        start = len(data) - _ENDING - int.from_bytes(data[-_ENDING:-4], "little")
        footer = data[start:-_ENDING]
        if way < 0.2:
            footer = _arrow_schema_changed(chance, footer)
        elif way < 0.4:
            footer = _resized(chance, footer)
        else:
            footer = mutate(chance, footer, [footer])
        ending = len(footer).to_bytes(4, "little") + data[-4:]
        return data[:start] + footer + ending

    def consume(self, data: bytes) -> str | None:
        store = MemoryStore("data")
        store.put("t/part", data)
        file = DataFile(store, "t/part", len(data))
        refused: list[grebe.GrebeError] = []
        uses: tuple[Callable[[DataFile], object], ...] = (
            self._sizes,
            self._statistics,
            self._bounds,
            self._types,
            read_row_count,
        )
        for use in uses:
            try:
                use(file)
            except grebe.GrebeError as problem:
                refused.append(problem)
        if len(refused) == len(uses):
            raise refused[0]
        return None

    def _sizes(self, file: DataFile) -> None:
        footer = read_checked_footer(file)
        found = list(leaf_sizes(file, footer))
        assert all(size >= 0 for _, size in found)

    def _statistics(self, file: DataFile) -> None:
        footer = footer_of(file)
        assert footer.rows >= 0
        for column in self._columns:
            footer.statistics(column)

    def _bounds(self, file: DataFile) -> None:
        opened = open_parquet(file)
        with opened.errors():
            leaves = {b".".join(leaf.path).decode() for leaf in opened.footer.schema.leaves}
            for column in self._columns:
                if column.name in leaves:
                    bounds_of(opened, column.name, column.type)

    def _types(self, file: DataFile) -> None:
        footer = read_checked_footer(file)
        with naming(file.uri):
            projection_of(footer.schema, None)


def _arrow_schema_changed(chance: random.Random, footer: bytes) -> bytes:
    """Change the schema that Arrow keeps for itself, which is in base64, without a change of its length."""
    key = b"ARROW:schema"
    place = footer.find(key)
    if place < 0:
        return _resized(chance, footer)
    place += len(key) + 1  # and the head of the field of the value
    length = shift = 0
    while True:
        length |= (footer[place] & 127) << shift
        place, shift = place + 1, shift + 7
        if footer[place - 1] < 128:
            break
    sound = base64.b64decode(footer[place : place + length])
    made = mutate(chance, sound, [sound])[: len(sound)].ljust(len(sound), b"\0")
    return footer[:place] + base64.b64encode(made) + footer[place + length :]


def _resized(chance: random.Random, footer: bytes) -> bytes:
    """Make some short binary values shorter or longer, with the lengths that they state."""
    for _ in range(chance.choice((1, 1, 2, 5))):
        places = [
            place
            for place in range(1, len(footer) - 20)
            if 0 < footer[place] <= 16 and footer[place - 1] & 15 == 8 and footer[place - 1] >> 4
        ]
        place = chance.choice(places)
        length = footer[place]
        wanted = chance.choice((0, 1, length - 1, length + 1, 3, 16))
        value = footer[place + 1 : place + 1 + length].ljust(wanted, b"\x7f")[:wanted]
        footer = footer[:place] + bytes((wanted,)) + value + footer[place + 1 + length :]
    return footer


_DATA_FILE = "file:///lake/t/a.parquet"
_ROWS = 100_000


class IcebergDeletes(Target):
    """Position delete files, and deletion vectors whose checksums are right."""

    def inputs(self) -> list[bytes]:
        paths = [_DATA_FILE if n % 3 else "file:///lake/t/b.parquet" for n in range(300)]
        table = pa.table({"file_path": paths, "pos": pa.array(range(300), pa.int64())})
        made = []
        for way in (
            {"row_group_size": 70},
            {"compression": "none", "use_dictionary": False},
            {"data_page_version": "2.0"},
        ):
            sink = io.BytesIO()
            pq.write_table(table, sink, **way)
            made.append(b"p" + sink.getvalue())
        runs = BitMap(range(5000, 50_000))
        runs.run_optimize()
        return [*made, *(b"v" + one.serialize() for one in (BitMap([3, 7, 70_000]), BitMap(range(0, 60_000, 3)), runs))]

    def case(self, number: int) -> bytes:
        chance = random.Random(f"iceberg_deletes {number}")
        sound = chance.choice(self.sound)
        kind, data = sound[:1], sound[1:]
        if kind == b"p":
            length = int.from_bytes(data[-_ENDING:-4], "little")
            if chance.random() < 0.5:
                return kind + mutate(chance, data, [data])
            footer = mutate(chance, data[-_ENDING - length : -_ENDING], [data])
            return kind + data[: -_ENDING - length] + footer + len(footer).to_bytes(4, "little") + data[-4:]
        bitmaps = [(chance.choice((0, 0, 1, 2**31, 2**32 - 1)), mutate(chance, data, [data]))]
        bitmaps += [(chance.choice((0, 1, 5)), data)] * chance.choice((0, 0, 1))
        made = puffin(bitmaps, chance.choice((None, None, None, 0, 2**63)))
        return kind + (mutate(chance, made, [made]) if chance.random() < 0.3 else made)

    def warm(self) -> None:
        for one in self.sound:
            self.consume(one if one[:1] == b"p" else b"v" + puffin([(0, one[1:])]))

    def consume(self, data: bytes) -> str | None:
        with decoding(lambda why: UnreadableFile(why)):
            if data[:1] == b"p":
                found = positions_in_parquet(data[1:], _DATA_FILE)
            else:
                found = positions_in_puffin(data[1:], _DATA_FILE, _ROWS)
        if len(found) and (found.dtype != np.int64 or found.min() < 0):
            return "positions that are none"
        return None


def puffin(bitmaps: list[tuple[int, bytes]], count: int | None = None) -> bytes:
    """A Puffin file with one deletion vector, of bitmaps with the upper halves of their positions."""
    content = struct.pack("<IQ", 1681511377, len(bitmaps) if count is None else count)
    content += b"".join(struct.pack("<I", key) + data for key, data in bitmaps)
    blob = struct.pack(">I", len(content)) + content + struct.pack(">I", zlib.crc32(content))
    described = {
        "type": "deletion-vector-v1",
        "fields": [],
        "snapshot-id": -1,
        "sequence-number": -1,
        "offset": 4,
        "length": len(blob),
        "properties": {"referenced-data-file": _DATA_FILE, "cardinality": "1"},
    }
    footer = json.dumps({"blobs": [described], "properties": {}}).encode()
    return b"PFA1" + blob + b"PFA1" + footer + struct.pack("<I4s4s", len(footer), b"\0\0\0\0", b"PFA1")
