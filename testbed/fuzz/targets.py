"""What is fuzzed: for each kind of bytes the sound ones, how they are sealed again after a mutation, and what reads them.

A target whose bytes are sealed gets past the seal: its mutations are those of somebody who can write to the store.
"""

import gzip
import hashlib
import random
import struct
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa

from grebe.files import FileIds, FileList, RegisteredFiles, decode, encode
from grebe.indexes.content import sealed
from grebe.indexes.content.directory import parse_directory
from grebe.indexes.sieving import packing
from grebe.indexes.sieving.build import build
from grebe.indexes.sieving.keys import Keys, pack_separators, separators_of, unpack_separators
from grebe.indexes.sieving.sieve import Sieve
from grebe.log import codec
from grebe.predicate.types import STRING
from testbed.fuzz.data_targets import CsvBytes, JsonBytes, OrcBytes, PageMapBytes, ParquetBytes
from testbed.fuzz.footer_targets import IcebergDeletes, ParquetFooter
from testbed.fuzz.index_targets import (
    SpatialTree,
    StatisticsBytes,
    SummaryDirectory,
    SummaryFile,
    WorkloadBlock,
)
from testbed.fuzz.lake_format_targets import DeltaLog, IcebergMetadata
from testbed.fuzz.lakes import DamagedLake, ForgedData, ForgedIndex, ForgedLog
from testbed.fuzz.mutators import DOCUMENT, mutate
from testbed.fuzz.seeds import FORMATS, Seeds, unpack
from testbed.fuzz.target import Target, line_sealed


class LogEntry(Target):
    mutators = DOCUMENT

    def inputs(self) -> list[bytes]:
        return [
            path.read_bytes().partition(b"\n")[0]
            for format in FORMATS
            for path in sorted((self.seeds.log(format) / "log").glob("0*.json"))
        ]

    def sealed(self, data: bytes) -> bytes:
        return line_sealed(data)

    def consume(self, data: bytes) -> str | None:
        entry, _ = codec.decode_entry(data, "an entry")
        codec.encode_entry(entry)
        return None


class LogState(Target):
    mutators = DOCUMENT

    def inputs(self) -> list[bytes]:
        return [
            gzip.decompress((self.seeds.log(format) / "log" / "latest.json.gz").read_bytes()).partition(b"\n")[0]
            for format in FORMATS
        ]

    def sealed(self, data: bytes) -> bytes:
        return gzip.compress(line_sealed(data), 1)

    def consume(self, data: bytes) -> str | None:
        codec.decode_state(data, "a hint")
        return None


class PackedState(Target):
    """The hint as it lies there: what becomes of damaged gzip."""

    def inputs(self) -> list[bytes]:
        return [(self.seeds.log(format) / "log" / "latest.json.gz").read_bytes() for format in FORMATS]

    def consume(self, data: bytes) -> str | None:
        codec.decode_state(data, "a hint")
        return None


class FileListBytes(Target):
    def inputs(self) -> list[bytes]:
        found = [path.read_bytes() for one in FORMATS for path in (self.seeds.log(one) / "files").glob("*.files")]
        files = FileList.build(
            "file:///t", [f"p={n % 3}/{n}" for n in range(40)], [1] * 40, [2] * 40, ["e"] * 40, ["t"] * 40
        )
        plain = encode(RegisteredFiles.register(files, 0))
        return [one[32:] for one in (*found, plain)] + [self._uncompressed(plain)]

    @staticmethod
    def _uncompressed(data: bytes) -> bytes:
        table = pa.ipc.open_stream(data[32:]).read_all()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return bytes(sink.getvalue().to_pybytes())

    def sealed(self, data: bytes) -> bytes:
        head = struct.pack("<4sB3xQ", b"GRBF", 1, len(data))
        return head + hashlib.blake2b(head + data, digest_size=16).digest() + data

    def consume(self, data: bytes) -> str | None:
        files = decode(data)
        both = RegisteredFiles.concat(RegisteredFiles.empty("file:///x"), files)
        listing = FileList.build(both.files.root, ["p=0/0", "p=1/1"], [1, 1], [2, 2])
        both.ids_of(listing)
        both.missing(listing)
        both.select(FileIds.of_ranges([(0, 2)])).files.uris().to_pylist()
        both.files.paths().to_pylist()
        both.files.table.to_pylist()
        return None


class Directory(Target):
    def inputs(self) -> list[bytes]:
        return [
            path.read_bytes()[8:]
            for format in FORMATS
            for index in ("lookup", "covering", "spatial")
            for path in self.seeds.content(format, index, "directory.gix")
        ]

    def sealed(self, data: bytes) -> bytes:
        return sealed.sealed(data)

    def consume(self, data: bytes) -> str | None:
        parse_directory(data, "a directory").to_pylist()
        return None


class SieveBytes(Target):
    """Sections are mutated before they are packed, so that what is behind the compression is reached."""

    def inputs(self) -> list[bytes]:
        chance = np.random.default_rng(3)
        made = []
        for budget in (60, 300, 5000, 50_000):
            keys = chance.integers(-(2**62), 2**62, 800) if budget % 7 else np.sort(chance.integers(0, 5000, 800))
            sieve = build(keys, keys, chance.integers(0, 40, 800).astype(np.uint32), budget)
            assert sieve is not None
            made.append(sieve.to_bytes())
        return [one[4:] for one in made]

    def case(self, number: int) -> bytes:
        chance = random.Random(f"sieve {number}")
        data = chance.choice(self.sound)
        if chance.random() < 0.4:
            return self.sealed(mutate(chance, data, self.sound))
        head, sections = data[:18], packing.unpack(data[18:])
        place = chance.randrange(len(sections))
        sections[place] = mutate(chance, sections[place], sections)
        if chance.random() < 0.2:
            head = mutate(chance, head, [head])
        return self.sealed(head + b"".join(_section(one) for one in sections))

    def sealed(self, data: bytes) -> bytes:
        return struct.pack("<I", zlib.crc32(data)) + data

    def consume(self, data: bytes) -> str | None:
        sieve = Sieve.from_bytes(data)
        sieve.files([(-(2**63), 2**63 - 1), (5, 9)])
        sieve.files([(0, 0)])
        sieve.triples()
        return None


def _section(data: bytes) -> bytes:
    return packing._varint(len(data) << 1) + data


class Separators(Target):
    def inputs(self) -> list[bytes]:
        texts = separators_of(pa.array([f"text {n * 37 % 500}" for n in range(500)]), 64)
        packed = pack_separators(texts)
        return [
            packed,
            packed[:8] + pa.decompress(packed[8:], struct.unpack("<II", packed[:8])[1], "zstd", asbytes=True),
        ]

    def case(self, number: int) -> bytes:
        chance = random.Random(f"separators {number}")
        packed, plain = self.sound
        if chance.random() < 0.4:
            return mutate(chance, packed, self.sound)
        head, content = plain[:8], mutate(chance, plain[8:], self.sound)
        if chance.random() < 0.3:
            head = mutate(chance, head, [head])[:8].ljust(8, b"\0")
        if chance.random() < 0.5:
            head = head[:4] + struct.pack("<I", len(content))
        return bytes(head + pa.compress(content, "zstd", asbytes=True))

    def warm(self) -> None:
        self.consume(self.sound[0])

    def consume(self, data: bytes) -> str | None:
        keys = Keys(STRING, unpack_separators(data, STRING))
        keys.codes(pa.array(["a", "text 1", "text 99", "zz"], pa.large_string()))
        return None


TARGETS: dict[str, type[Target]] = {
    "log_entry": LogEntry,
    "log_state": LogState,
    "hint": PackedState,
    "file_list": FileListBytes,
    "directory": Directory,
    "sieve": SieveBytes,
    "separators": Separators,
    "page_maps": PageMapBytes,
    "parquet": ParquetBytes,
    "parquet_footer": ParquetFooter,
    "orc": OrcBytes,
    "csv": CsvBytes,
    "json": JsonBytes,
    "summary_directory": SummaryDirectory,
    "summary_file": SummaryFile,
    "spatial_tree": SpatialTree,
    "workload": WorkloadBlock,
    "statistics": StatisticsBytes,
    "delta": DeltaLog,
    "iceberg": IcebergMetadata,
    "iceberg_deletes": IcebergDeletes,
    "damaged_lake": DamagedLake,
    "forged_index": ForgedIndex,
    "forged_log": ForgedLog,
    "forged_data": ForgedData,
}


UNSEALED = ("forged_index", "forged_log")
"""Those that change how all else in their process is read."""


class Together:
    """All targets that can be in one process, in turns: for a short run."""

    def __init__(self, seeds: Seeds) -> None:
        self._targets = [made(seeds) for name, made in TARGETS.items() if name not in UNSEALED]

    def case(self, number: int) -> tuple[Target, bytes]:
        target = self._targets[number % len(self._targets)]
        return target, target.case(number)

    def consume(self, case: tuple[Target, bytes]) -> str | None:
        target, data = case
        return target.consume(data)

    def warm(self) -> None:
        for target in self._targets:
            target.warm()


TOGETHER = "together"


def opened(name: str, scratch: Path) -> Target | Together:
    """The target, with its tables below `scratch`."""
    seeds = unpack(scratch / "lake")
    return Together(seeds) if name == TOGETHER else TARGETS[name](seeds)
