"""A small table with an index of every kind in several runs, and what can go wrong with them."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

import grebe
from grebe.config import Config
from grebe.indexes.kind import Kind
from grebe.log.commit import Log
from grebe.log.states import IndexState
from grebe.session.lake_table import LakeTable
from grebe.store.local import LocalStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = ("cover", "look", "skip", "sift")
# By size and time alone, so that a file can be rewritten unseen.
AT_ONCE = Config(vacuum_retention_seconds=0, identity="times")


def kinds() -> list[Kind]:
    return [
        grebe.Covering("cover", on="n", include=["s", "tags"], buckets=2),
        grebe.Lookup("look", on="s"),
        grebe.Skipping("skip", grebe.MinMax("n"), grebe.Bloom("s"), grebe.ValueList("k"), grebe.Intervals("n")),
        grebe.Sieve("sift", on="s", budget=0.5),
    ]


def rows(number: int, count: int = 40) -> pa.Table:
    texts = [f"file {number} row {row}" if row % 7 else None for row in range(count)]
    own = {"n": [number * 100 + row for row in range(count)], "s": texts, "k": [row % 3 for row in range(count)]}
    return pa.table({**own, "tags": [[number, row] for row in range(count)]})


def write(folder: Path, numbers: Iterable[int], count: int = 40) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number in numbers:
        pq.write_table(rows(number, count), folder / f"{number}.parquet")


def made(spark: "SparkSession", folder: Path) -> LakeTable:
    """Of nine files, with a large run of each index and a small one."""
    write(folder, range(8))
    table = LakeTable(spark, str(folder), config=AT_ONCE)
    table.create(*kinds())
    write(folder, [8], 10)
    table.refresh()
    return table


@dataclass(frozen=True)
class Hurt:
    """A table, and a log of it that may be damaged."""

    table: LakeTable
    folder: Path
    log: Path

    def state(self, name: str) -> IndexState:
        return self.opened().state.indexes[name]

    def opened(self) -> Log:
        return Log(LocalStore(self.log)).open()

    def runs(self, name: str) -> list[list[Path]]:
        """The files of each run, the oldest first, on disk."""
        found: dict[str, list[Path]] = {}
        for file in self.state(name).content:
            found.setdefault(file.path.rpartition("/")[0], []).append(self.log / file.path)
        return [found[name] for name in sorted(found, key=lambda name: int(name.rpartition("/")[2].partition("-")[0]))]

    def part(self, name: str, run: int) -> Path:
        """A file of rows."""
        return next(file for file in self.runs(name)[run] if file.name.startswith("part-"))


@contextmanager
def rewritten_unseen(
    file: Path, column: str = "n", change: Callable[[Any], Any] = lambda value: value + 1
) -> Iterator[None]:
    """Other values of a column, in a file of the same size and time. Put right again in the end."""
    before, right = file.stat(), file.read_bytes()
    data = pq.read_table(file)
    place = data.column_names.index(column)
    other = pa.array([change(value) for value in data[column].to_pylist()], data.schema.field(column).type)
    pq.write_table(data.set_column(place, column, other), file)
    assert file.stat().st_size == before.st_size
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    try:
        yield
    finally:
        file.write_bytes(right)
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
