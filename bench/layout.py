"""How much of a table do the queries of a dashboard read, and how long do they take: in a layout that was learned from queries like
them, after Delta's OPTIMIZE ZORDER BY over the best columns, partitioned by ranges of the best column, and as the rows came?

Four tables (`_dashboards`), each with 400 logged queries and 400 others of the same dashboard, of which some are asked here. The
best order and the best columns of the curve are chosen by the logged queries, on a sample. All copies have all columns, the same
codec and as many files; Delta is told the size of files that gives that. What is read are the bytes that Spark's process read, from
whatever, beyond those that it reads where there are no rows.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

import grebe
from bench._dashboards import DATA_SETS, DataSet
from bench._session import bench_session
from bench.harness import Report, Scale, medians, timed
from bench.sieve.memory import bytes_read, jvm_of
from grebe.indexes.layout.axes import axis_among
from grebe.indexes.layout.boxes import constants_of
from grebe.indexes.layout.learn import learn
from grebe.indexes.layout.shares import expected_share, shares_by_block
from grebe.indexes.layout.workload import Query, numbered
from grebe.predicate.bind import bind
from grebe.predicate.normalise import normalise
from grebe.predicate.parse import parse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOGGED = 400
_FILES = 8
_BLOCKS = 256
"""Of the sample, by which orders are compared."""
_SAMPLED = 50_000
_ASKED_FOR = 5
"""So many columns are tried for the curve: those that are asked for most."""
_MOST_OF_CURVES, _MOST_OF_ORDERS, _TIMES_OF_ORDERS = 1 / 3, 1 / 6, 1 / 5


@dataclass(frozen=True)
class _Stage:
    spark: "SparkSession"
    lake: "grebe.Lake"
    folder: Path
    rows: int
    asked: int
    runs: int
    report: Report


def _one(data: DataSet, stage: _Stage) -> None:
    spark, report = stage.spark, stage.report
    rows = data.rows(stage.rows, 1)
    path = _written(rows, stage.folder / data.name)
    logged, others = data.queries(LOGGED, 1), data.queries(LOGGED, 2)[: stage.asked]
    # In no order: among rows of one value, a sort must not profit from the order in which they came.
    sample = rows.take(pa.array(np.random.default_rng(1).choice(len(rows), min(len(rows), _SAMPLED), replace=False)))
    understood = [Query(normalise(bind(parse(text), sample.schema))) for text in logged]
    order, curve = _best_orders(sample, understood)
    table = stage.lake.table(path)
    delta, ordered = (str(stage.folder / f"{data.name} {what}") for what in ("delta", "ordered"))
    # The first warms the JVM up for all that follow.
    built = {"order": timed(lambda: _ordered(spark, path, order, ordered))()}
    built["layout"] = timed(lambda: table.create(grebe.Layout("layout", queries=logged)))()
    (made,) = table.indexes()
    spark.read.parquet(path).write.format("delta").save(delta)
    spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(-(-made.bytes // _FILES)))
    optimize = f"OPTIMIZE delta.`{delta}` ZORDER BY ({', '.join(curve)})"
    built["delta"] = timed(lambda: spark.sql(optimize).collect())()

    sources = {"layout": path, "order": ordered, "delta": delta, "as it came": path}
    asked = {name: [_query(place, one, data) for one in others] for name, place in sources.items()}
    measured = {name: list(_measured(stage, name, queries)) for name, queries in asked.items()}
    if len({str([answer for answer, _ in found]) for found in measured.values()}) > 1:
        raise AssertionError(f"{data.name}: the answers differ")
    base = _base(stage, data, rows, others)
    read = {name: float(np.mean([size for _, size in found])) - base for name, found in measured.items()}
    took = medians({name: timed(partial(_answered, stage, name, asked[name])) for name in asked}, stage.runs, warm_up=0)
    names = {"delta": f"delta by {', '.join(curve)}", "order": f"sorted by {order}", "as it came": "as it came"}
    for name, said in names.items():
        report.add(f"{data.name}, bytes read", "bytes", read["layout"], said, read[name], len(others))
    for name, said in names.items():
        report.add(f"{data.name}", "s", took["layout"] / len(others), said, took[name] / len(others), stage.runs)
    for what, ratio, most in (
        ("bytes read of Delta's", read["layout"] / read["delta"], _MOST_OF_CURVES),
        ("bytes read of the best order's", read["layout"] / read["order"], _MOST_OF_ORDERS),
        ("time of the best order's", took["layout"] / took["order"], _TIMES_OF_ORDERS),
    ):
        report.add(f"{data.name}, {what}", "ratio", ratio, f"goal: at most {most:.2f}", most)
    tree = learn(sample, understood, len(sample) * 500 / len(rows))
    held_out = [Query(normalise(bind(parse(text), sample.schema))) for text in others]
    report.add(f"{data.name}, share of rows, predicted", "share", float(expected_share(tree, sample, held_out).mean()))
    for name in ("order", "layout"):
        report.add(f"{data.name}, build, {name}", "s", built[name], "delta", built["delta"])


def _written(rows: pa.Table, folder: Path) -> str:
    folder.mkdir(parents=True)
    each = -(-len(rows) // _FILES)
    for number in range(_FILES):
        pq.write_table(rows.slice(number * each, each), folder / f"{number:03d}.parquet", compression="zstd")
    return str(folder)


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


def _query(place: str, condition: str, data: DataSet) -> str:
    source = f"delta.`{place}`" if place.endswith(" delta") else f"parquet.`{place}`"
    one, other = data.measures
    # Sums of whole numbers: those of floating point hang on the order of rows.
    sums = f"sum(CAST({one} * 100 AS BIGINT)), sum(CAST({other} * 100 AS BIGINT))"
    return f"SELECT count(*), {sums} FROM {source} WHERE {condition}"


def _answered(stage: _Stage, index: str, queries: Sequence[str]) -> list[object]:
    with stage.lake.only(index):
        return [tuple(row) for query in queries for row in stage.spark.sql(query).collect()]


def _measured(stage: _Stage, index: str, queries: Sequence[str]) -> Iterator[tuple[object, int]]:
    """Of each query its answer, and what Spark's process read meanwhile. Its own counters leave reads of several ranges at once
    out."""
    jvm = jvm_of(stage.spark)
    for query in queries:
        before = bytes_read(jvm)
        answer = _answered(stage, index, [query])
        yield answer, bytes_read(jvm) - before


def _base(stage: _Stage, data: DataSet, rows: pa.Table, conditions: Sequence[str]) -> float:
    """What Spark's process reads for such queries where there is nothing to be read: of a table without rows."""
    folder = stage.folder / f"{data.name} empty"
    folder.mkdir()
    pq.write_table(rows.slice(0, 0), folder / "0.parquet")
    queries = [_query(str(folder), condition, data) for condition in conditions]
    return float(np.median([size for _, size in _measured(stage, "none", queries)]))


PARTS: dict[str, Callable[[_Stage], None]] = {name: partial(_one, data) for name, data in DATA_SETS.items()}


def run(scale: Scale, report: Report, parts: Sequence[str] = ()) -> None:
    rows, asked, runs = scale.pick((1_000_000, 20, 1), (5_000_000, 400, 3))
    with bench_session(settings={"spark.sql.parquet.compression.codec": "zstd"}) as (spark, folder):
        stage = _Stage(spark, grebe.attach(spark), folder, rows, asked, runs, report)
        for name in parts or PARTS:
            PARTS[name](stage)
