"""How much of a table do the queries of a dashboard read, and how long do they take: in a layout that was learned from queries like
them, after Delta's OPTIMIZE ZORDER BY over the best columns, partitioned by ranges of the best column, and as the rows came?

Four tables (`_dashboards`), each with 400 logged queries and 400 others of the same dashboard, of which some are asked here. The
best order and the best columns of the curve are chosen by the logged queries, on a sample. All copies have all columns, the same
codec and as many files, and are known to Spark as views; Delta is told the size of files that gives that. What is read are the
bytes that Spark's process read, from whatever, beyond those that it reads where there are no rows. Every query is asked of one copy
after the other, in turns.

The parts that end with `-on-s3` ask through 30 ms of latency. Another tells what rewriting a part recovers once others are asked,
how few logged queries do, and what a query costs that the layout does not fit.
"""

import contextlib
import datetime
import itertools
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

import grebe
from bench._dashboards import DATA_SETS, DataSet
from bench._session import bench_session
from bench.harness import Report, Scale, timed
from bench.needle.stage import LATENCY
from bench.sieve.memory import bytes_read, jvm_of
from grebe.indexes.layout.axes import axis_among
from grebe.indexes.layout.boxes import constants_of
from grebe.indexes.layout.drift import affordable, benefits, grafted
from grebe.indexes.layout.learn import learn
from grebe.indexes.layout.shares import expected_share, shares_by_block
from grebe.indexes.layout.workload import Query, numbered
from grebe.predicate.bind import bind
from grebe.predicate.normalise import normalise
from grebe.predicate.parse import parse
from grebe.store.opening import open_store
from testbed.proxy import fault_proxy
from testbed.s3 import s3_server
from testbed.spark import use_s3

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOGGED = 400
_FILES = 8
_BLOCKS = 256
"""Of the sample, by which orders are compared."""
_SAMPLED = 50_000
_ASKED_FOR = 5
"""So many columns are tried for the curve: those that are asked for most."""
_MOST_OF_CURVES, _MOST_OF_ORDERS, _TIMES_ON_DISK, _TIMES_ON_S3 = 1 / 3, 1 / 6, 1 / 5, 1 / 3
_WARM_UP = 5
_AGO = 150
"""Days."""


@dataclass(frozen=True)
class _Stage:
    spark: "SparkSession"
    lake: "grebe.Lake"
    folder: Path
    rows: int
    asked: int
    report: Report
    held: contextlib.ExitStack


@dataclass(frozen=True)
class _Place:
    """Where tables lie. `slow`: from now on every request takes its time."""

    root: str
    put: Callable[[Path, str], object]
    """Brings a file there, under a name."""
    slow: Callable[[], object]


def _on_disk(stage: _Stage) -> _Place:
    def put(file: Path, name: str) -> None:
        target = stage.folder / "disk" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        file.rename(target)

    return _Place(str(stage.folder / "disk"), put, lambda: None)


def _on_s3(stage: _Stage) -> _Place:
    server = stage.held.enter_context(s3_server())
    proxy = stage.held.enter_context(fault_proxy(server.endpoint))
    # The JVM outlives a session, and remembers for every bucket which server it was on.
    jvm: Any = stage.spark.sparkContext._jvm
    jvm.org.apache.hadoop.fs.FileSystem.closeAll()
    use_s3(stage.spark, replace(server, endpoint=proxy.endpoint))
    store = open_store(server.uri(), server.storage_options)
    root = server.uri().replace("s3://", "s3a://")
    return _Place(root, lambda file, name: store.put(name, file.read_bytes()), lambda: proxy.plan(latency=LATENCY))


@dataclass(frozen=True)
class _Asked:
    answer: str
    bytes: int
    seconds: float


def _one(data: DataSet, on: Callable[[_Stage], _Place], stage: _Stage) -> None:
    spark, report, place = stage.spark, stage.report, on(stage)
    rows = data.rows(stage.rows, 1)
    path = _written(rows, stage, place, data.name)
    logged, others = data.queries(LOGGED, 1), data.queries(LOGGED, 2)[: stage.asked]
    sample = _sampled(rows)
    understood = _understood(logged, sample)
    order, curve = _best_orders(sample, understood)
    table = stage.lake.table(path)
    delta, ordered = (f"{place.root}/{data.name} {what}" for what in ("delta", "ordered"))
    # The first warms the JVM up for all that follow.
    built = {"order": timed(lambda: _ordered(spark, path, order, ordered))()}
    built["layout"] = timed(lambda: table.create(grebe.Layout("layout", queries=logged)))()
    (made,) = table.indexes()
    spark.read.parquet(path).write.format("delta").save(delta)
    spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(-(-made.bytes // _FILES)))
    optimize = f"OPTIMIZE delta.`{delta}` ZORDER BY ({', '.join(curve)})"
    built["delta"] = timed(lambda: spark.sql(optimize).collect())()
    empty = _written(rows.slice(0, 0), stage, place, f"{data.name} empty")
    place.slow()

    sources = {"layout": path, "order": ordered, "delta": delta, "as it came": path, "empty": empty}
    for name, source in sources.items():
        _named(spark, name, source)
        # So that no copy pays for the first query.
        _asked(stage, name, [_query(name, one, data) for one in logged[:_WARM_UP]])
    found: dict[str, list[_Asked]] = {name: [] for name in sources}
    for number, one in enumerate(others):
        # Whoever comes first has the query compiled for all: that goes round.
        start = number % len(sources)
        for name in [*sources][start:] + [*sources][:start]:
            found[name] += _asked(stage, name, [_query(name, one, data)])
    if len({str([one.answer for one in found[name]]) for name in sources if name != "empty"}) > 1:
        raise AssertionError(f"{data.name}: the answers differ")
    base = float(np.median([one.bytes for one in found["empty"]]))
    read = {name: float(np.mean([one.bytes for one in some])) - base for name, some in found.items()}
    took = {name: float(np.mean([one.seconds for one in some])) for name, some in found.items()}
    _told(report, f"{data.name}{'' if on is _on_disk else ' on s3'}", read, took, order, curve, len(others))
    tree = learn(sample, understood, len(sample) * 500 / len(rows))
    expected = expected_share(tree, sample, _understood(others, sample))
    report.add(f"{data.name}, share of rows, predicted", "share", float(expected.mean()))
    for name in ("order", "layout"):
        report.add(f"{data.name}, build, {name}", "s", built[name], "delta", built["delta"])


def _told(
    report: Report,
    what: str,
    read: dict[str, float],
    took: dict[str, float],
    order: str,
    curve: Sequence[str],
    queries: int,
) -> None:
    names = {"delta": f"delta by {', '.join(curve)}", "order": f"sorted by {order}", "as it came": "as it came"}
    for name, said in names.items():
        report.add(f"{what}, bytes read", "bytes", read["layout"], said, read[name], queries)
    for name, said in {**names, "empty": "a table without rows"}.items():
        report.add(what, "s", took["layout"], said, took[name], queries)
    times = _TIMES_ON_S3 if what.endswith("s3") else _TIMES_ON_DISK
    for said, ratio, most in (
        ("bytes read of Delta's", read["layout"] / read["delta"], _MOST_OF_CURVES),
        ("bytes read of the best order's", read["layout"] / read["order"], _MOST_OF_ORDERS),
        ("time of the best order's", took["layout"] / took["order"], times),
        # What any query of Spark takes, of whatever table, is in both.
        (
            "time of the best order's, beyond that of a table without rows",
            (took["layout"] - took["empty"]) / (took["order"] - took["empty"]),
            times,
        ),
    ):
        report.add(f"{what}, {said}", "ratio", ratio, f"goal: at most {most:.2f}", most)


def _learning(stage: _Stage) -> None:
    """By shares of rows of a sample, told by the very code that decides what is rewritten."""
    for name, data in DATA_SETS.items():
        sample = _sampled(data.rows(stage.rows, 1))
        leaf = len(sample) * 500 / stage.rows
        held_out = _understood(data.queries(LOGGED, 2), sample)
        _drifted(stage.report, data, sample, leaf)
        for count in (10, 25, 50, 100):
            known = _understood(data.queries(count, 1), sample)
            curve = _best_orders(sample, known)[1]
            by_curve = _read_by_curve(sample, curve, held_out, stage.rows)
            tree = learn(sample, known, leaf)
            share = float(expected_share(tree, sample, held_out).mean())
            report_as = f"{name}, share of rows read, {count} queries logged"
            stage.report.add(report_as, "share", share, f"curve by {', '.join(curve)}", by_curve, LOGGED)


def _drifted(report: Report, data: DataSet, sample: pa.Table, leaf: float) -> None:
    """Learned from a dashboard of some time ago, or of other templates than those that are asked now (the ones asked least)."""
    every = data.queries(2 * LOGGED, 3)
    asked = [frozenset(name for name, _ in constants_of(one.predicate)) for one in _understood(every, sample)]
    often = [columns for columns, _ in Counter(asked).most_common()]
    first = set(often[: max(1, len(often) // 2)])
    drifts = {
        "time passed": ([_earlier(text) for text in every[:LOGGED]], every[LOGGED:]),
        "other templates": (
            [text for text, columns in zip(every, asked, strict=True) if columns in first],
            [text for text, columns in zip(every, asked, strict=True) if columns not in first],
        ),
    }
    for name, (before, after) in drifts.items():
        tree = learn(sample, _understood(before, sample), leaf)
        now, held_out = _understood(after[0::2], sample), _understood(after[1::2], sample)
        found = benefits(tree, sample, now, leaf)
        stale = float(expected_share(tree, sample, held_out).mean())
        anew = float(expected_share(learn(sample, now, leaf), sample, held_out).mean())
        for share, goal in ((0.2, 0.5), (0.4, 0.75)):
            changed = grafted(tree, affordable(found, share))
            left = float(expected_share(changed, sample, held_out).mean())
            recovered = (stale - left) / (stale - anew) if stale > anew else 1.0
            what = f"{data.name}, {name}, from {stale:.1%} to {anew:.1%}: recovered by {share:.0%} of the rows"
            report.add(what, "share", recovered, f"goal: at least {goal}", goal)


def _earlier(text: str) -> str:
    """The same query, asked some months ago."""

    def moved(found: re.Match[str]) -> str:
        day = datetime.date.fromisoformat(found[0]) - datetime.timedelta(_AGO)
        return day.isoformat()

    return re.sub(r"\d{4}-\d{2}-\d{2}", moved, text)


def _read_by_curve(sample: pa.Table, curve: Sequence[str], queries: Sequence[Query], rows: int) -> float:
    """In as many blocks as a layout has leaves at the most."""
    blocks = min(8_192, max(1, rows // 500))
    numbers = _interleaved([_ranks(sample.column(name)) for name in curve])
    block = np.empty(len(sample), np.int64)
    block[np.argsort(numbers, kind="stable")] = np.arange(len(sample)) * blocks // len(sample)
    asked = sorted({name for query in queries for name, _ in constants_of(query.predicate)})
    return float(shares_by_block(numbered(sample.select(asked), queries), block, blocks).sum(axis=1).mean())


def _misfit(stage: _Stage) -> None:
    """Queries by a column that the layout knows nothing of, with it and without."""
    data = DATA_SETS["rides"]
    rows, place = data.rows(stage.rows, 1), _on_disk(stage)
    path = _written(rows, stage, place, "misfit")
    stage.lake.table(path).create(grebe.Layout("layout", queries=data.queries(LOGGED, 1)))
    other = [name for name in rows.column_names if pa.types.is_floating(rows.schema.field(name).type)]
    _named(stage.spark, "rides", path)
    queries = [
        f"SELECT count(*), max({other[number % len(other)]}) FROM rides WHERE {other[-1]} > {number}"
        for number in range(max(10, stage.asked // 4))
    ]
    _asked(stage, "layout", queries[:_WARM_UP])
    found: dict[str, list[_Asked]] = {"layout": [], "plain": []}
    for query in queries * 3:
        for name, some in found.items():
            some += _asked(stage, name, [query])
    took = {name: float(np.median([one.seconds for one in some])) for name, some in found.items()}
    stage.report.add(
        "queries that the layout does not fit", "s", took["layout"], "the plain table", took["plain"], len(queries)
    )
    ratio = took["layout"] / took["plain"]
    stage.report.add("queries that the layout does not fit, time", "ratio", ratio, "goal: at most 1.05", 1.05)


def _sampled(rows: pa.Table) -> pa.Table:
    """In no order: among rows of one value, a sort must not profit from the order in which they came."""
    return rows.take(pa.array(np.random.default_rng(1).choice(len(rows), min(len(rows), _SAMPLED), replace=False)))


def _understood(texts: Sequence[str], sample: pa.Table) -> list[Query]:
    return [Query(normalise(bind(parse(text), sample.schema))) for text in texts]


def _written(rows: pa.Table, stage: _Stage, place: _Place, name: str) -> str:
    each = max(1, -(-len(rows) // _FILES))

    def write(number: int) -> None:
        file = stage.folder / f"{name} {number:03d}.parquet"
        pq.write_table(rows.slice(number * each, each), file, compression="zstd")
        place.put(file, f"{name}/{number:03d}.parquet")
        file.unlink(missing_ok=True)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, range(_FILES if len(rows) else 1)))
    return f"{place.root}/{name}"


def _ordered(spark: "SparkSession", path: str, column: str, folder: str) -> None:
    """As anybody would do it with Spark alone."""
    ranged = spark.read.parquet(path).repartitionByRange(_FILES, column)
    ranged.sortWithinPartitions(column).write.parquet(folder)


def _best_orders(sample: pa.Table, queries: Sequence[Query]) -> tuple[str, tuple[str, ...]]:
    """The column to sort by, and those of a curve, by which the logged queries read least."""
    asked = Counter(name for query in queries for name in {name for name, _ in constants_of(query.predicate)})
    ranks = {name: _ranks(sample.column(name)) for name in asked}
    places = np.arange(len(sample)) * _BLOCKS // len(sample)
    known = numbered(sample.select(list(asked)), queries)

    def read(numbers: npt.NDArray[np.int64]) -> float:
        block = np.empty(len(sample), np.int64)
        block[np.argsort(numbers, kind="stable")] = places
        return float(shares_by_block(known, block, _BLOCKS).sum())

    order = min(asked, key=lambda name: read(ranks[name]))
    often = [name for name, _ in asked.most_common(_ASKED_FOR)]
    curves = [some for count in (2, 3, 4) for some in itertools.combinations(often, count)]
    return order, min(curves, key=lambda some: read(_interleaved([ranks[name] for name in some])))


def _ranks(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    return axis_among(column, ()).codes(column).astype(np.int64)


def _interleaved(ranks: Sequence[npt.NDArray[np.int64]], bits: int = 12) -> npt.NDArray[np.int64]:
    found = np.zeros(len(ranks[0]), np.int64)
    cells = [one * (1 << bits) // (int(one.max()) + 1) for one in ranks]
    for bit in reversed(range(bits)):
        for one in cells:
            found = found << 1 | one >> bit & 1
    return found


def _named(spark: "SparkSession", name: str, folder: str) -> None:
    """As tables of a dashboard are: its files are listed and its schema is read once, not for each query."""
    found = spark.read.format("delta" if name == "delta" else "parquet").load(folder)
    found.createOrReplaceTempView(f"`{name}`")


def _query(source: str, condition: str, data: DataSet) -> str:
    one, other = data.measures
    # Sums of whole numbers: those of floating point hang on the order of rows.
    sums = f"sum(CAST({one} * 100 AS BIGINT)), sum(CAST({other} * 100 AS BIGINT))"
    return f"SELECT count(*), {sums} FROM `{source}` WHERE {condition}"


def _asked(stage: _Stage, index: str, queries: Sequence[str]) -> list[_Asked]:
    """Of each query its answer, what Spark's process read meanwhile, and how long it took. Spark's own counters leave reads of
    several ranges at once out."""
    jvm, found = jvm_of(stage.spark), []
    with stage.lake.only(index):
        for query in queries:
            before, since = bytes_read(jvm), time.perf_counter()
            answer = str([tuple(row) for row in stage.spark.sql(query).collect()])
            found.append(_Asked(answer, bytes_read(jvm) - before, time.perf_counter() - since))
    return found


PARTS: dict[str, Callable[[_Stage], None]] = {
    **{name: partial(_one, data, _on_disk) for name, data in DATA_SETS.items()},
    **{f"{name}-on-s3": partial(_one, data, _on_s3) for name, data in DATA_SETS.items()},
    "learning": _learning,
    "misfit": _misfit,
}


def run(scale: Scale, report: Report, parts: Sequence[str] = ()) -> None:
    rows, asked = scale.pick((1_000_000, 20), (5_000_000, 400))
    settings = {"spark.sql.parquet.compression.codec": "zstd"}
    for name in parts or PARTS:
        # Each in a session and a folder of its own: nothing of one is in the way of another, on the disk or in memory.
        with contextlib.ExitStack() as held:
            spark, folder = held.enter_context(bench_session(settings=settings))
            few = asked if not name.endswith("s3") else asked // 4
            PARTS[name](_Stage(spark, grebe.attach(spark), folder, rows, few, report, held))
