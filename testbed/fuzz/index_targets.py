"""Fuzzed parts of indexes and of what is recorded beside them: directories of summaries, trees of places, queries, statistics."""

import base64
import io
import json
import random
import struct
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from grebe.advisor.workload import blocks, statistics
from grebe.advisor.workload.observed import SCHEMA, Joined, Observed, Scan, from_table, to_table
from grebe.advisor.workload.reading import by_shape, predicates_of
from grebe.advisor.workload.statistics import of_sample
from grebe.formats import DataFile
from grebe.indexes.content import sealed
from grebe.indexes.content.parquet_table import read_parquet
from grebe.indexes.spatial.shape import Corner
from grebe.indexes.spatial.tree import Root, Twig, read_root
from grebe.indexes.summary import directory
from grebe.log.entry import ContentFile
from grebe.store.memory import MemoryStore
from testbed.fuzz.mutators import DOCUMENT, mutate
from testbed.fuzz.seeds import FORMATS, Seeds, all_rows
from testbed.fuzz.target import Target


class SummaryDirectory(Target):
    """The directory of an index of sketches, and the files that it lists."""

    def inputs(self) -> list[bytes]:
        return [
            path.read_bytes()[8:]
            for format in FORMATS
            for index in ("skipping", "sieve_price", "sieve_name")
            for path in self.seeds.content(format, index, directory.NAME)
        ]

    def sealed(self, data: bytes) -> bytes:
        return sealed.sealed(data)

    def consume(self, data: bytes) -> str | None:
        store = MemoryStore("index")
        rows = read_parquet(sealed.unsealed(data, "x"), "x")
        named = rows.select(["name", "size"]).to_pylist() if {"name", "size"} <= set(rows.column_names) else []
        sizes = {one["name"]: one["size"] for one in named if isinstance(one["name"], str)}
        directory.parse(data, store, "d", [ContentFile(f"d/{name}", size, 1) for name, size in sizes.items()])
        return None


class SummaryFile(Target):
    """A file of sketches or pieces of sieves, past its digest."""

    def inputs(self) -> list[bytes]:
        return [
            path.read_bytes()
            for format in FORMATS
            for index in ("skipping", "sieve_price", "sieve_name")
            for path in self.seeds.content(format, index, "part-*.gix")
        ]

    def consume(self, data: bytes) -> str | None:
        file = DataFile(MemoryStore("index"), "d/part", len(data))
        digest = sealed.digest(data)
        for sieve, low in ((None, None), (0, None), (0, 0)):
            directory.Listed(file, digest, 3, sieve, low, low).parsed(data).to_pylist()
        return None


class SpatialTree(Target):
    """The root of a tree of places, and its branches, each past its seal."""

    corners: ClassVar[tuple[Corner, ...]] = (Corner(("x",), "x", "double"), Corner(("y",), "y", "double"))

    def __init__(self, seeds: Seeds) -> None:
        self._whole = [path.read_bytes() for path in seeds.content("parquet", "spatial", "tree.gix")]
        super().__init__(seeds)

    def inputs(self) -> list[bytes]:
        made = []
        for whole in self._whole:
            for length in range(len(whole) + 1):  # how long the root is only the log says
                try:
                    root = self._root(whole, length)
                except Exception:  # noqa: BLE001 - another length, then
                    continue
                made.append(b"r" + sealed.unsealed(whole[len(whole) - length :], "root"))
                for twig in root.twigs:
                    block = whole[twig.start : twig.start + twig.length]
                    made.append(b"b" + pa.decompress(block, twig.whole, "zstd", asbytes=True))
                break
        assert made
        return made

    def _root(self, data: bytes, length: int) -> Root:
        return read_root(DataFile(MemoryStore("index"), "d/tree.gix", len(data)), length, data, self.corners)

    def case(self, number: int) -> bytes:
        made = super().case(number)
        return made if made[:1] in (b"r", b"b") else b"r" + made

    def consume(self, data: bytes) -> str | None:
        kind, content = data[:1], data[1:]
        if kind == b"r":
            root = sealed.sealed(content)
            self._root(root, len(root)).units.boxes.tolist()
            return None
        block = bytes(pa.compress(content, "zstd", asbytes=True))
        file = DataFile(MemoryStore("index"), "d/part.gix", 1000)
        twig = Twig(file, 0, len(block), len(content), sealed.digest(block))
        twig.branch(block, self.corners).units.boxes.tolist()
        return None


def _observed() -> list[Observed]:
    return [
        Observed(
            query=f"q{number}",
            at_ms=1_700_000_000_000 + number,
            client="c",
            origin="spark",
            call="query",
            shape=f"SELECT {number % 2}",
            digest=str(number % 2),
            tables=("file:///t",),
            indexes=("i",) if number % 2 else (),
            milliseconds=1.5,
            limit=None,
            hashed=False,
            scans=(
                Scan(
                    table="file:///t",
                    columns=("a", "b"),
                    predicate="a = 1",
                    tree='["Constant",true]',
                    joins=(Joined("a", "file:///u", "b"),),
                    files=number,
                ),
            ),
        )
        for number in range(4)
    ]


class WorkloadBlock(Target):
    """Recorded queries."""

    path: ClassVar[str] = f"{blocks.FOLDER}/{1:015d}-{2:015d}-{'0' * 32}-merged.gix"

    def inputs(self) -> list[bytes]:
        sink, plain = io.BytesIO(), io.BytesIO()
        table = to_table(_observed()).cast(SCHEMA).replace_schema_metadata({b"grebe.replaces": json.dumps(["a", "b"])})
        pq.write_table(table, sink, compression="zstd", write_statistics=False)
        pq.write_table(table, plain, compression="none", use_dictionary=False)
        return [sink.getvalue(), plain.getvalue()]

    def sealed(self, data: bytes) -> bytes:
        return sealed.sealed(data)

    def consume(self, data: bytes) -> str | None:
        store = MemoryStore("log")
        store.put(self.path, data)
        queries = blocks.read(store).queries
        from_table(queries)
        by_shape(queries.append_column("bytes", pa.nulls(len(queries), pa.int64())))
        predicates_of(queries)
        return None


class StatisticsBytes(Target):
    """What is kept of the values of columns: JSON with sketches of another library in it."""

    mutators = DOCUMENT

    def inputs(self) -> list[bytes]:
        store = MemoryStore("log")
        statistics.store(of_sample(all_rows(), 120), store, hashed=False)
        return [sealed.unsealed(store.get(statistics.PATH), "statistics")]

    def sealed(self, data: bytes) -> bytes:
        return sealed.sealed(data)

    def case(self, number: int) -> bytes:
        """Some mutations are within a sketch."""
        if number % 3:
            return super().case(number)
        chance = random.Random(f"statistics {number}")
        known = json.loads(self.sound[0])
        one = chance.choice(known["columns"])
        name = chance.choice(("quantiles", "quantiles", "seen"))
        sketch = base64.b64decode(one[name])
        one[name] = base64.b64encode(mutate(chance, sketch, [sketch, struct.pack("<d", 1e300)])).decode()
        return self.sealed(json.dumps(known).encode())

    def consume(self, data: bytes) -> str | None:
        store = MemoryStore("log")
        store.put(statistics.PATH, data)
        found = statistics.load(store)
        for one in found.columns.values() if found is not None else ():
            one.equal(3.5)
            one.equal("name 7")
            one.below(1, True)
            for rank in (0.0, 0.25, 1.0):
                one.quantile(rank)
        return None
