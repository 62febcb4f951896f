"""A table with every type of index, queries that read all of each, and single bits of the index files to flip."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import grebe
from grebe.formats import DataFile
from grebe.formats.parquet_pages import read_footer, tail_length
from grebe.store.opening import open_store
from tests.spark.served import Served, multiset, write
from tests.spark.streams import forget_ends

FILES, ROWS = 3, 8_000
ALL = "count(*), sum(v), sum(hash(k, w, v, s)), min(s), max(s)"
PLACES = "count(*), sum(v), sum(hash(lon, lat, v))"
QUERIES = {
    "bucketed": ("SELECT k, sum(v), count(s), sum(hash(w, s)) FROM t GROUP BY k", f"SELECT {ALL} FROM t WHERE k = 77"),
    "sorted": (f"SELECT {ALL} FROM t WHERE k >= 0", f"SELECT {ALL} FROM t WHERE k BETWEEN 100 AND 103"),
    "curve": (
        f"SELECT {ALL}, sum(hash(lon, lat)) FROM t WHERE lon > -300 AND lat > -300",
        f"SELECT {ALL} FROM t WHERE lon BETWEEN 3 AND 20 AND lat BETWEEN -40 AND 10",
    ),
    "laid": (
        f"SELECT {ALL} FROM t WHERE w >= 0 AND k >= 0",
        f"SELECT {ALL} FROM t WHERE w = 3 AND k BETWEEN 10 AND 60",
    ),
    "view": ("SELECT w, s, sum(v), count(*), min(k) FROM t GROUP BY w, s", "SELECT sum(v), min(k) FROM t WHERE w = 2"),
    "keys": (
        "SELECT count(*), sum(hash(k, v, s)) FROM t WHERE k >= 0",
        f"SELECT {ALL}, max(lon) FROM t WHERE k = 1001",
    ),
    "skip": (f"SELECT {ALL} FROM t WHERE v < 9500", f"SELECT {ALL}, max(lon) FROM t WHERE v > 25000"),
    "sieve": (f"SELECT {ALL} FROM t WHERE s = 's5'", f"SELECT {ALL} FROM t WHERE s IN ('s7', 's411', 'x')"),
    "space": (
        f"SELECT {PLACES} FROM t WHERE lon > -300 AND lat > -300",
        f"SELECT {PLACES}, max(s) FROM t WHERE lon BETWEEN 3 AND 20 AND lat BETWEEN -40 AND 10",
    ),
}
"""By index: one query that reads all of it, one that reads some."""
REGIONS = ("anywhere", "page header", "dictionary", "page index", "footer")


def rows(number: int) -> pa.Table:
    """Some keys and texts, and a range of longitudes, are of this file alone."""
    chance = np.random.default_rng(number)
    keys = np.where(np.arange(ROWS) % 500 == 7, 1_000 + number, chance.integers(0, 400, ROWS))
    return pa.table(
        {
            "k": pa.array(keys, pa.int64(), mask=np.arange(ROWS) % 41 == 3),
            "w": pa.array(chance.integers(0, 7, ROWS), pa.int32()),
            "v": pa.array(np.arange(ROWS) + ROWS * number, pa.int64()),
            "s": pa.array([f"s{one % 200 + 150 * number}" for one in range(ROWS)]),
            "lon": pa.array(chance.uniform(-180, -60, ROWS) + 120 * number),
            "lat": pa.array(chance.uniform(-90, 90, ROWS)),
        }
    )


def create(served: Served, folder: Path) -> None:
    """Make the table `t` with all its indexes."""
    write(folder / "t", *(rows(number) for number in range(FILES)))
    everything = ["w", "v", "s"]
    served.lake.table(str(folder / "t")).create(
        grebe.Covering("bucketed", on="k", include=everything, buckets=2),
        grebe.Covering("sorted", on="k", include=everything, buckets=0),
        grebe.ZOrder("curve", on=["lon", "lat"], include=["k", *everything]),
        grebe.Layout("laid", queries=[f"w = {n} AND k BETWEEN {n} AND {n + 90}" for n in range(7)], include=["v", "s"]),
        grebe.View("view", f"SELECT w, s, sum(v), count(*), min(k) FROM parquet.`{folder / 't'}` GROUP BY w, s"),
        grebe.Lookup("keys", on="k", include=["v", "s"]),
        grebe.Skipping("skip", grebe.MinMax("v")),
        grebe.Sieve("sieve", on="s", budget=1.0),
        grebe.Spatial("space", x="lon", y="lat", include="v"),
    )
    served.view("t", folder / "t")


def files_of(folder: Path, index: str) -> list[Path]:
    return sorted((folder / "_grebe" / "t" / "data" / index).rglob("*.gix"))


@dataclass(frozen=True)
class Flip:
    """One bit of a file of an index."""

    index: str
    file: Path
    region: str
    place: int
    bit: int

    @contextmanager
    def done(self) -> Iterator[None]:
        sound = self.file.read_bytes()
        data = bytearray(sound)
        data[self.place] ^= 1 << self.bit
        # In place, as a disk does it.
        with self.file.open("r+b") as file:
            file.write(data)
        try:
            yield
        finally:
            with self.file.open("r+b") as file:
                file.write(sound)


def flips(folder: Path, seed: int, count: int, indexes: tuple[str, ...] = tuple(QUERIES)) -> Iterator[Flip]:
    """Yield bits of all indexes in turn, in all regions of Parquet files, and anywhere in others."""
    chance = random.Random(seed)
    for number in range(count):
        index = indexes[number % len(indexes)]
        file = chance.choice(files_of(folder, index))
        region = REGIONS[number // len(indexes) % len(REGIONS)] if file.name.startswith("part-") else "anywhere"
        spans = regions_of(file)[region] if region != "anywhere" else []
        start, stop = chance.choice(spans) if spans else (0, file.stat().st_size)
        yield Flip(index, file, region if spans else "anywhere", chance.randrange(start, stop), chance.randrange(8))


def regions_of(file: Path) -> dict[str, list[tuple[int, int]]]:
    """Where in a Parquet file of an index its regions lie."""
    size = file.stat().st_size
    metadata = pq.read_metadata(file)
    stored = DataFile(open_store(str(file.parent)), file.name, size)
    tail = tail_length(read_footer(stored), size)
    headers, dictionaries = [], []
    for group in range(metadata.num_row_groups):
        for leaf in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(leaf)
            headers.append((chunk.data_page_offset, chunk.data_page_offset + 20))
            if chunk.has_dictionary_page:
                headers.append((chunk.dictionary_page_offset, chunk.dictionary_page_offset + 12))
                dictionaries.append((chunk.dictionary_page_offset, chunk.data_page_offset))
    footer = metadata.serialized_size + 8
    indexes = [(size - tail, size - footer)] if tail > footer else []
    return {
        "page header": headers,
        "dictionary": dictionaries,
        "page index": indexes,
        "footer": [(size - footer, size)],
    }


def forget(served: Served) -> None:
    """Let everything be read from disk again: ends of files that tasks keep, and indexes that were set aside."""
    forget_ends(served)
    tables = served.lake._spark._planning.tables
    for followed in tables._by_place.values():
        followed._aside.clear()
        followed._roles.clear()
        followed._found = None


def outcome(served: Served, query: str, expected: Counter[str], index: str) -> str:
    """Return `right`, or `error` if one clear error came first; the second run must be right."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    with served.lake.only(index):
        try:
            assert multiset(served.spark.sql(query).collect()) == expected, "a wrong answer"
        except (PySparkException, Py4JJavaError) as problem:
            said = str(problem)
        else:
            return "right"
        assert "[CORRUPT_INDEX_" in said, said
        assert f"of index {index} " in said, said
        assert multiset(served.spark.sql(query).collect()) == expected, "a wrong answer"
    return "error"


LOCAL: dict[str, Callable[[Any], Any]] = {
    "bucketed": lambda t: t.scan("k = 77 AND w < 5"),
    "sorted": lambda t: t.scan("k BETWEEN 100 AND 101"),
    "curve": lambda t: t.scan("lon BETWEEN 3 AND 6 AND lat BETWEEN -40 AND 10"),
    "laid": lambda t: t.scan("w = 3 AND k = 20"),
    "view": lambda t: t.scan("w = 2 AND s = 's7'"),
    "keys": lambda t: t.get_many("k", [5, 77, 399], columns=["k", "v", "s"]),
    "skip": lambda t: t.scan("v > 23900"),
    "sieve": lambda t: t.get("s", "s411"),
    "space": lambda t: t.within((3, -40, 20, 10), columns=["v", "lon", "lat"], on=["lon", "lat"]),
}
"""By index: what is asked without Spark."""


def local_answer(folder: Path, index: str) -> list[str]:
    opened = grebe.open(str(folder / "t"), config=grebe.Config(cache_bytes=0))
    return sorted(map(repr, LOCAL[index](opened).to_pylist()))
