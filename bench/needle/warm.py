"""A lookup when everything that is kept ahead of need is there: against Lance, Rottnest, key-value stores, and scans."""

import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grebe
from bench._rivals.client import Rival, rival
from bench.harness import Contestant, samples
from bench.needle.data import KEYS, THREE, some_keys
from bench.needle.stage import INDEXES, Stage
from testbed.postgres import USER, postgres_server
from testbed.redis import redis_server

Get = Callable[[str, Sequence[object], Sequence[str] | None], tuple[list[float], int]]
"""Column, values, columns: the seconds of each lookup, and how many rows were found together."""

OURS = "grebe"
_BATCH = 20
"""Lookups of one contestant before the next has its turn, so that its own data are in the processor's cache as in real use."""


def opened(table: Path, keys: Sequence[str] = KEYS, cache_bytes: int = grebe.Config().cache_bytes) -> Get:
    """Grebe on this table, warmed. Tables with the same bound share one cache."""
    found = grebe.open(str(table), config=grebe.Config(cache_bytes=cache_bytes))
    for key in keys:
        found.warm(INDEXES[key])

    def get(column: str, values: Sequence[object], columns: Sequence[str] | None) -> tuple[list[float], int]:
        seconds, rows = [], 0
        for value in values:
            start = time.perf_counter()
            part = found.get(column, value, columns=columns)
            seconds.append(time.perf_counter() - start)
            rows += part.num_rows
        return seconds, rows

    return get


def turns(
    contestants: Mapping[str, Get],
    column: str,
    values: Sequence[object],
    columns: Sequence[str] | None,
    runs: int,
    batch: int = _BATCH,
) -> dict[str, float]:
    """The median seconds of a lookup of each. All look up the same values, and must find as many rows."""
    batches = [values[first : first + batch] for first in range(0, len(values), batch)]
    found: dict[str, list[int]] = {name: [] for name in contestants}

    def contestant(name: str, get: Get) -> Contestant:
        own = itertools.cycle(batches)

        def turn() -> float:
            seconds, rows = get(column, next(own), columns)
            found[name].append(rows)
            return statistics.median(seconds)

        return turn

    costs = samples({name: contestant(name, get) for name, get in contestants.items()}, runs)
    if len({tuple(rows) for rows in found.values()}) != 1:
        raise AssertionError(f"lookups of {column} found different numbers of rows: {found}")
    return {name: statistics.median(of) for name, of in costs.items()}


def lance(stage: Stage) -> None:
    """Lance's BTREE over its own copy; Grebe on the files as they are, and on files with pages of 5,000 rows."""
    runs = stage.scale.pick(8, 25)
    small_pages, large_cache = "grebe, 5,000-row pages", "grebe, cache of 2 GiB"
    theirs = stage.started("Lance", rival("lance"))
    if theirs is None:
        return
    target = stage.folder / "copy.lance"
    size = theirs.call("load", source=str(stage.table), target=str(target), keys=list(KEYS))
    mine = sum(index.bytes for index in grebe.open(str(stage.table)).indexes())
    stage.report.add("size, three indexes", "bytes", mine, "Lance BTREE", size)
    contestants = {
        OURS: opened(stage.table),
        small_pages: opened(stage.table_of_small_pages, cache_bytes=grebe.Config().cache_bytes + 1),
        large_cache: opened(stage.table, cache_bytes=2 * 1024**3),
        "lance": theirs.get,
    }
    keys = some_keys(stage.table, _BATCH * (runs + 1))
    for columns in (THREE, None):
        for column in KEYS:
            medians = turns(contestants, column, keys[column], columns, runs)
            what = f"get {column}, {len(columns) if columns else 26} columns"
            stage.report.add(what, "s", medians[OURS], "Lance BTREE", medians["lance"], runs)
            stage.report.add(f"{what}, small pages", "s", medians[small_pages], "Lance BTREE", medians["lance"], runs)
            stage.report.add(f"{what}, 2 GiB", "s", medians[large_cache], "Lance BTREE", medians["lance"], runs)
    stage.dropped(target)


def rottnest(stage: Stage) -> None:
    """It knows UUIDs only, and gives the column `id` and the key."""
    runs = stage.scale.pick(3, 10)
    started = stage.started("Rottnest", _rottnest(stage))
    if started is None:
        return
    theirs, size = started
    mine = grebe.open(str(stage.table)).index(INDEXES["uuid"]).bytes
    stage.report.add("size, uuid", "bytes", mine, "Rottnest", size)
    keys = some_keys(stage.table, 5 * (runs + 1))["uuid"]
    contestants = {OURS: opened(stage.table, ["uuid"]), "rottnest": theirs.get}
    medians = turns(contestants, "uuid", keys, ["uuid", "id"], runs, batch=5)
    stage.report.add("get uuid, 2 columns", "s", medians[OURS], "Rottnest", medians["rottnest"], runs)


@contextmanager
def _rottnest(stage: Stage) -> Iterator[tuple[Rival, int]]:
    """With the bytes of its index."""
    with rival("rottnest", "rottnest") as started:
        target = stage.folder / "rottnest"
        yield started, started.call("load", source=str(stage.table), target=str(target), column="uuid")


def key_value(stage: Stage) -> None:
    """Servers that hold the three columns of every row in memory, by its id."""
    runs = stage.scale.pick(8, 25)
    contestants: dict[str, Get] = {OURS: opened(stage.table, ["id"])}
    for name, server in (("Redis", filled_redis()), ("PostgreSQL", filled_postgres())):
        started = stage.started(name, server)
        if started is not None:
            started.call("load_rows", source=str(stage.table), key="id", columns=THREE)
            contestants[name] = started.get
    keys = some_keys(stage.table, _BATCH * (runs + 1))["id"]
    medians = turns(contestants, "id", keys, THREE, runs)
    for name in list(contestants)[1:]:
        stage.report.add("get id, 3 columns", "s", medians[OURS], f"{name} as a key-value store", medians[name], runs)


@contextmanager
def filled_redis() -> Iterator[Rival]:
    with redis_server() as port, rival("redis") as started:
        started.call("connect", port=port)
        yield started


@contextmanager
def filled_postgres() -> Iterator[Rival]:
    with postgres_server() as port, rival("postgres") as started:
        started.call("connect", port=port, user=USER)
        yield started


def scans(stage: Stage) -> None:
    """Engines that read the same files and keep no index."""
    runs = stage.scale.pick(2, 5)
    contestants = {OURS: opened(stage.table), "DuckDB": _duckdb(stage.table), "Spark": _spark(stage)}
    keys = some_keys(stage.table, runs + 1)
    for columns in (THREE, None):
        for column in KEYS:
            medians = turns(contestants, column, keys[column], columns, runs, batch=1)
            what = f"get {column}, {len(columns) if columns else 26} columns"
            for name in ("DuckDB", "Spark"):
                stage.report.add(what, "s", medians[OURS], f"{name} scan", medians[name], runs)


def _duckdb(table: Path) -> Get:
    import duckdb

    connection = duckdb.connect()

    def get(column: str, values: Sequence[object], columns: Sequence[str] | None) -> tuple[list[float], int]:
        seconds, rows = [], 0
        sql = f"SELECT {', '.join(columns or ['*'])} FROM read_parquet('{table}/*.parquet') WHERE {column} = ?"
        for value in values:
            start = time.perf_counter()
            found: Any = connection.sql(sql, params=[value]).to_arrow_table()
            seconds.append(time.perf_counter() - start)
            rows += found.num_rows
        return seconds, rows

    return get


def _spark(stage: Stage) -> Get:
    from pyspark.sql import functions

    rows_of = stage.spark.read.parquet(str(stage.table))

    def get(column: str, values: Sequence[object], columns: Sequence[str] | None) -> tuple[list[float], int]:
        seconds, rows = [], 0
        stage.lake.enabled = False
        for value in values:
            start = time.perf_counter()
            found = rows_of.where(functions.col(column) == functions.lit(value)).select(*(columns or ["*"])).collect()
            seconds.append(time.perf_counter() - start)
            rows += len(found)
        stage.lake.enabled = True
        return seconds, rows

    return get
