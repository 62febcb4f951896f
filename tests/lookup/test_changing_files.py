"""Data files that change under a reader: every answer is that of one moment, or `SourceChanged`."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import grebe
from grebe.clock import SYSTEM
from grebe.errors import SourceChanged
from grebe.session import stores
from grebe.session.table import Table
from grebe.store.opening import open_store, open_table_store
from grebe.store.protocol import Store
from testbed import maven
from testbed.changing import CHANGES, COLUMNS, KEYS_OF_A_FILE, SCHEMA, Change, ChangingTable, HookedStore, Row, rows_of
from testbed.s3 import S3Server
from testbed.spark import use_s3

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("changing files")]

FILES_OF_A_SEED = 2
SEEDS = 10
SOAK_SEEDS = 150
FILES = len(CHANGES) + FILES_OF_A_SEED * SEEDS


@dataclass
class World:
    """A table with an index, of which each test takes fresh files."""

    table: ChangingTable
    uri: str
    options: dict[str, str]
    free: Iterator[int]

    def open(self) -> Table:
        # A cache of its own: what another test has read is not there.
        config = grebe.Config(cache_bytes=30_000_000 + next(_OWN))
        return grebe.open(self.uri, storage_options=self.options or None, config=config)

    def take(self, count: int) -> list[int]:
        return [next(self.free) for _ in range(count)]


_OWN = iter(range(10**6))


def made(
    spark: "SparkSession", store: Store, format: str, folder: Path | None, options: dict[str, str], files: int
) -> World:
    table = ChangingTable(store, format, folder)
    table.add(*range(files))
    hadoop = store.uri.replace("s3://", "s3a://")
    frame = spark.read.format(format).schema(SCHEMA).load(hadoop)
    lake = grebe.attach(spark)
    try:
        lake.table(frame).create(grebe.Lookup("by_id", on="id"))
    finally:
        lake.detach()
    return World(table, store.uri, options, iter(range(files)))


@pytest.fixture(
    scope="module", params=[("local", "parquet"), ("local", "csv"), ("s3", "parquet"), ("s3", "csv")], ids="-".join
)
def world(request: pytest.FixtureRequest, spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> World:
    where, format = request.param
    if where == "local":
        folder = tmp_path_factory.mktemp("changing") / "t"
        folder.mkdir()
        return made(spark, open_table_store(folder), format, folder, {}, FILES)
    if not maven.s3a_jars():
        pytest.skip("there is no s3a for this Spark")
    server: S3Server = request.getfixturevalue("s3_server")
    use_s3(spark, server)
    store = open_store(server.uri(SYSTEM.new_id()) + "/t", server.storage_options)
    return made(spark, store, format, None, server.storage_options, FILES)


def rows(found: pa.Table) -> list[Row]:
    return sorted(zip(*(found[name].to_pylist() for name in COLUMNS), strict=True)) if len(found) else []


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changes_after_opening_is_told_and_never_mixed(world: World, change: Change) -> None:
    (file,) = world.take(1)
    key = file * KEYS_OF_A_FILE + 7
    opened = world.open()
    assert opened.files(f"id = {key}").uncovered < len(world.table.now), "an index knows where the row lies"
    world.table.change(file, change)
    with pytest.raises(SourceChanged) as told:
        opened.get("id", key)
    # Some stores look at the condition first, and say of a file that is gone that it changed.
    assert told.value.code == "SOURCE_CHANGED_FILE_CHANGED" or (
        change == "delete" and told.value.code == "SOURCE_CHANGED_FILE_GONE"
    )
    assert "reload()" in str(told.value)
    assert opened.get("id", key, ["id"]).to_pylist() == [{"id": key}], "the index itself is of the moment of opening"
    opened.reload()
    assert rows(opened.get("id", key)) == rows_of(world.table.now, lambda row: row[0] == key, [file])


@dataclass(frozen=True)
class Question:
    """`ask` gives what `judge` makes of the rows of one moment; of files it may give more."""

    ask: Callable[[Table], object]
    wanted: Callable[[Row], bool]
    judge: Callable[[list[Row]], object] = list
    may_give_more: bool = False

    def holds(self, answer: object, moment: list[Row]) -> bool:
        expected = self.judge(moment)
        return expected <= answer if self.may_give_more else expected == answer  # type: ignore[operator]


def question(chance: random.Random, files: list[int], name_of: Callable[[int], str]) -> Question:
    keys = [file * KEYS_OF_A_FILE + chance.randrange(125) for file in files for _ in range(2)]
    low, high = files[0] * KEYS_OF_A_FILE, (files[-1] + 1) * KEYS_OF_A_FILE
    own = f"id >= {low} AND id < {high}"
    named = f"id IN ({', '.join(map(str, keys))})"
    return chance.choice(
        (
            Question(lambda table: rows(table.get("id", keys[0])), lambda row: row[0] == keys[0]),
            Question(lambda table: rows(table.get_many("id", keys)), lambda row: row[0] in keys),
            Question(
                lambda table: rows(table.scan(f"{own} AND value LIKE '%1%'")),
                lambda row: low <= row[0] < high and "1" in row[1],
            ),
            Question(lambda table: table.count(own), lambda row: low <= row[0] < high, len),
            Question(
                lambda table: {one.path.rpartition("/")[2] for one in table.files(named).files},
                lambda row: row[0] in keys,
                lambda found: {name_of(row[0] // KEYS_OF_A_FILE) for row in found},
                may_give_more=True,
            ),
        )
    )


@dataclass
class Run:
    """One seed: calls on a table, and changes before any request of any of them."""

    world: World
    chance: random.Random
    files: list[int]
    left: int = 0
    """So many requests until the next change."""
    begin: int = 0
    """The state of the table when it was opened."""
    answers: int = 0

    def request(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.change()
            self.left = self.chance.choice((2, 9, 10**9))

    def change(self) -> None:
        self.world.table.change(self.chance.choice(self.files), self.chance.choice(CHANGES))

    def wait(self) -> None:
        self.left = self.chance.choice((1, 2, 3, 4, 6, 9, 10**9))

    def calls(self) -> None:
        table = self.world.table
        opened = self.opened()
        for _ in range(7):
            if self.chance.random() < 0.3:
                self.change()
            if opened is None or self.chance.random() < 0.2:
                opened = self.opened()
                continue
            asked = question(self.chance, self.files, table.name)
            self.wait()
            try:
                answer = asked.ask(opened)
            except SourceChanged:
                opened = None
                continue
            moments = [rows_of(state, asked.wanted, self.files) for state in table.states[self.begin :]]
            assert any(asked.holds(answer, moment) for moment in moments)
            self.answers += 1

    def opened(self) -> Table | None:
        self.begin = len(self.world.table.states) - 1
        self.wait()
        try:
            return self.world.open()
        except SourceChanged:
            return None


def interleaved(world: World, seed: int, monkeypatch: pytest.MonkeyPatch) -> Run:
    run = Run(world, random.Random(seed), world.take(FILES_OF_A_SEED))
    with monkeypatch.context() as patched:
        for name in ("open_store", "raw_table_store"):
            plain = getattr(stores, name)
            patched.setattr(
                stores, name, lambda uri, options, plain=plain: HookedStore(plain(uri, options), run.request)
            )
        run.calls()
    for file in run.files:
        world.table.store.delete(world.table.name(file))
    return run


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_answer_is_that_of_one_moment(world: World, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    interleaved(world, seed, monkeypatch)


@pytest.mark.soak
def test_every_answer_of_many_seeds_is_that_of_one_moment(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for format in ("parquet", "csv"):
        folder = tmp_path / format
        folder.mkdir()
        world = made(spark, open_table_store(folder), format, folder, {}, FILES_OF_A_SEED * SOAK_SEEDS)
        answers = sum(interleaved(world, 1000 + seed, monkeypatch).answers for seed in range(SOAK_SEEDS))
        assert answers > SOAK_SEEDS
