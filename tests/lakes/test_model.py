"""Random lives of lake tables and their indexes, beside a model in memory: after every step queries with indexes give what
the model has; of older versions too, and without Spark."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import grebe
from grebe.indexes.kind import Kind
from grebe.session.lake_table import LakeTable
from tests.lakes.formats import COLUMNS, FORMATS, IN_SHORT, NAMES, LakeFormat, RollsBack
from tests.spark.served import Served

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("lakes model")]

Row = tuple[int | None, int, int, str]
INDEXES: dict[str, Callable[[], Kind]] = {
    "by_k": lambda: grebe.Covering("by_k", on="k", include=["w", "v", "s"], buckets=2),
    "by_v": lambda: grebe.Lookup("by_v", on="v"),
    "skip": lambda: grebe.Skipping("skip", grebe.MinMax("v"), grebe.ValueList("w")),
    "sieve": lambda: grebe.Sieve("sieve", on="v"),
}


@dataclass
class Life:
    """A table, the rows it should have, and those of its older versions."""

    served: Served
    lake: LakeFormat
    chance: random.Random
    rows: list[Row] = field(default_factory=list)
    versions: list[tuple[Any, list[Row]]] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    """What was done, for whoever has to find out."""
    next_value: int = 0

    @property
    def table(self) -> LakeTable:
        return self.served.lake.table(self.lake.given)

    def some_rows(self) -> "DataFrame":
        count = self.chance.randrange(20, 60)
        made: list[Row] = []
        for value in range(self.next_value, self.next_value + count):
            key = None if self.chance.random() < 0.05 else self.chance.randrange(12)
            made.append((key, self.chance.randrange(5), value, f"s{value % 7}"))
        self.next_value += count
        self._new = made
        return self.served.spark.createDataFrame(made, COLUMNS).repartition(self.chance.choice([1, 2]))

    def changed(self) -> None:
        self.versions.append((self.lake.version(), list(self.rows)))

    # What happens to the table.

    def append(self) -> None:
        self.lake.append(self.some_rows())
        self.rows = [*self.rows, *self._new]
        self.changed()

    def overwrite(self) -> None:
        self.lake.overwrite(self.some_rows())
        self.rows = list(self._new)
        self.changed()

    def delete_rows(self) -> None:
        w, k = self.chance.randrange(5), self.chance.randrange(12)
        self.lake.delete(f"w = {w} AND k = {k}")
        self.rows = [row for row in self.rows if not (row[1] == w and row[0] == k)]
        self.changed()

    def compact(self) -> None:
        self.lake.compact()
        self.changed()

    def roll_back(self) -> None:
        assert isinstance(self.lake, RollsBack)
        version, rows = self.chance.choice(self.versions)
        self.lake.roll_back(version)
        self.rows = list(rows)
        self.changed()

    # What happens to its indexes.

    def create(self) -> None:
        there = {info.name for info in self.table.indexes()}
        missing = [name for name in INDEXES if name not in there]
        if missing:
            self.table.create(INDEXES[self.chance.choice(missing)]())

    def refresh(self) -> None:
        self.table.refresh(mode=self.chance.choice(["incremental", "incremental", "quick", "full"]))

    def optimize(self) -> None:
        self.table.optimize(mode=self.chance.choice(["quick", "full"]))

    def delete_index(self) -> None:
        active = [info.name for info in self.table.indexes() if info.state == "ACTIVE"]
        if active:
            self.table.delete(self.chance.choice(active))

    def restore(self) -> None:
        for info in self.table.indexes():
            if info.state == "DELETED":
                self.table.restore(info.name)

    def vacuum(self) -> None:
        self.table.vacuum()

    def check(self) -> None:
        self._check_version(self.lake.sql, None, self.rows)
        version, rows = self.chance.choice(self.versions)
        self._check_version(self.lake.as_of(version), version, rows)

    def _check_version(self, at: str, version: Any, rows: list[Row]) -> None:
        told = " > ".join([*self.told, f"version {version}"])
        value = self.chance.randrange(max(1, self.next_value))
        conditions: dict[str, Callable[[Row], bool]] = {
            f"v = {value}": lambda row: row[2] == value,
            "k BETWEEN 2 AND 5": lambda row: row[0] is not None and 2 <= row[0] <= 5,
            f"w = 1 AND v > {value}": lambda row: row[1] == 1 and row[2] > value,
        }
        for condition, holds in conditions.items():
            query = f"SELECT k, w, v, s FROM {at} WHERE {condition}"
            expected = Counter(row for row in rows if holds(row))
            found = Counter(map(tuple, self.served.frame(query).collect()))
            assert found == expected, f"{told}: {query}"
        keys = {row[0] for row in rows}
        groups = {key: [row[2] for row in rows if row[0] == key] for key in keys}
        grouped = self.served.run(f"SELECT k, count(*) AS n, sum(v) AS s FROM {at} GROUP BY k").rows
        assert grouped == Counter(f"Row(k={key}, n={len(of)}, s={sum(of)})" for key, of in groups.items()), told
        if self.lake.readable_without_spark:
            table = grebe.open(self.lake.path, version=version)
            condition, holds = self.chance.choice(list(conditions.items()))
            scanned = table.scan(condition, columns=["k", "w", "v", "s"]).to_pylist()
            assert Counter(tuple(row.values()) for row in scanned) == Counter(row for row in rows if holds(row)), told

    def step(self) -> None:
        of_table = [self.append, self.append, self.delete_rows, self.compact, self.overwrite]
        if isinstance(self.lake, RollsBack):
            of_table.append(self.roll_back)
        of_indexes = [self.create, self.create, self.refresh, self.refresh, self.optimize, self.delete_index]
        of_indexes += [self.restore, self.vacuum]
        act = self.chance.choice(of_table if self.chance.random() < 0.5 else of_indexes)
        self.told.append(act.__name__)
        act()


def live(served: Served, folder: Path, name: str, seed: int, steps: int) -> None:
    life = Life(served, FORMATS[name](served.spark, folder), random.Random(seed))
    life.lake.create(life.some_rows())
    life.rows = list(life._new)
    life.changed()
    life.table.create(*(make() for make in INDEXES.values()))
    life.check()
    for _ in range(steps):
        life.step()
        life.check()


@pytest.mark.parametrize("name", IN_SHORT)
def test_a_short_life(served: Served, folder: Path, name: str) -> None:
    live(served, folder, name, seed=1, steps=4 if name.startswith("hudi") else 6)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 12))
@pytest.mark.parametrize("name", NAMES)
def test_a_long_life(served: Served, folder: Path, name: str, seed: int) -> None:
    live(served, folder, name, seed, steps=30)
