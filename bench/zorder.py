"""How much of a table do ranges over several columns read, and how long do they take: along a curve of ours, after Delta's OPTIMIZE
ZORDER BY, and in the best single order?

Tables of six columns, of which four are asked for by ranges: uniform and independent, skewed, and correlated. A query asks for
boxes of 2, 3 or 4 columns, each range as wide in ranks as the others, at places drawn from the rows. All copies have all columns,
the same codec and as many files; Delta is told the size of files that gives that. What is read are the bytes that Spark's process
read, from whatever. As all columns are asked for alike, a sort by the first one is the best single order.

Then what it costs: building, beside Delta's OPTIMIZE of the same rows, and a refresh after 1% was appended.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq

import grebe
from bench._session import bench_session
from bench.harness import Report, Scale, medians, timed
from bench.sieve.memory import bytes_read, jvm_of
from grebe.indexes.kind import Kind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = ("a", "b", "c", "d")
_OTHERS = ("v", "w")
_WIDTHS = {2: 0.05, 3: 0.15, 4: 0.25}
"""Of the ranges, as shares of the rows: boxes of some thousandths."""
DATA: dict[str, Sequence[str]] = {
    "uniform": ["rand(1) AS a", "rand(2) AS b", "CAST(rand(3) * 1e9 AS BIGINT) AS c", "rand(4) AS d"],
    "skewed": [
        "pow(rand(1), 8) AS a",
        "CAST(pow(rand(2), -0.7) AS BIGINT) AS b",
        "DATE '2020-01-01' + CAST(-log(rand(3)) * 200 AS INT) AS c",
        "concat('user', CAST(pow(rand(4), 6) * 1e6 AS BIGINT)) AS d",
    ],
    "correlated": [
        "id / {rows} + rand(1) * 0.05 AS a",
        "id / {rows} + rand(2) * 0.1 AS b",
        "CAST(-id + rand(3) * {rows} * 0.1 AS BIGINT) AS c",
        "rand(4) AS d",
    ],
}
_MOST_OF_DELTAS, _MOST_OF_ITS_BUILD = 0.7, 1.3


@dataclass(frozen=True)
class _Stage:
    spark: "SparkSession"
    lake: "grebe.Lake"
    folder: Path
    rows: int
    queries: int
    runs: int
    report: Report

    def written(self, data: str, folder: Path, start: int, stop: int, files: int) -> str:
        columns = [column.format(rows=self.rows) for column in DATA[data]]
        frame = self.spark.range(start, stop, 1, files).selectExpr(*columns, "id AS v", "CAST(id % 97 AS DOUBLE) AS w")
        frame.sortWithinPartitions("w").write.mode("append").parquet(str(folder))
        return str(folder)


def _seconds(work: Callable[[], object]) -> float:
    return timed(work)()


def _one(data: str, stage: _Stage) -> None:
    spark, report = stage.spark, stage.report
    path = stage.written(data, stage.folder / data, 0, stage.rows, 16)
    table = stage.lake.table(path)
    kinds: dict[str, Kind] = {
        # The first warms the JVM up for all that follow, Delta's OPTIMIZE included.
        "sort": grebe.Covering("sort", on="a", include=[*COLUMNS[1:], *_OTHERS], buckets=0),
        "z": grebe.ZOrder("z", on=COLUMNS, include=_OTHERS, curve="z"),
        "hilbert": grebe.ZOrder("hilbert", on=COLUMNS, include=_OTHERS),
    }
    built = {name: _seconds(partial(table.create, kind)) for name, kind in kinds.items()}
    (made,) = (info for info in table.indexes() if info.name == "hilbert")
    delta = str(stage.folder / f"{data} delta")
    spark.read.parquet(path).write.format("delta").save(delta)
    spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(math.ceil(made.bytes / 8)))
    optimized = _seconds(lambda: spark.sql(f"OPTIMIZE delta.`{delta}` ZORDER BY ({', '.join(COLUMNS)})").collect())

    for count in _WIDTHS:
        boxes = list(_boxes(path, count, stage.queries))
        sources = dict.fromkeys(kinds, f"parquet.`{path}`") | {"delta": f"delta.`{delta}`"}
        asked = {name: [_query(source, box) for box in boxes] for name, source in sources.items()}
        answers = {name: _asked(stage, name, queries) for name, queries in asked.items()}
        if len(set(map(str, answers.values()))) > 1:
            raise AssertionError(f"{data}, {count} columns: the answers differ")
        read = {name: median(_bytes_read(stage, name, queries)) for name, queries in asked.items()}
        took = medians(
            {name: timed(partial(_asked, stage, name, asked[name])) for name in asked}, stage.runs, warm_up=0
        )
        case = f"{data}, {count} columns"
        for name in ("hilbert", "z", "sort"):
            report.add(f"{case}, bytes read, {name}", "bytes", read[name], "delta", read["delta"], stage.queries)
        for name in ("hilbert", "z", "sort"):
            report.add(f"{case}, {name}", "s", took[name] / len(boxes), "delta", took["delta"] / len(boxes), stage.runs)
        ratio = read["hilbert"] / read["delta"]
        report.add(
            f"{case}, bytes read of Delta's", "ratio", ratio, f"goal: at most {_MOST_OF_DELTAS}", _MOST_OF_DELTAS
        )
    for name in kinds:
        report.add(f"{data}, build, {name}", "s", built[name], "delta", optimized)
    ratio = built["hilbert"] / optimized
    report.add(f"{data}, build of Delta's", "ratio", ratio, f"goal: at most {_MOST_OF_ITS_BUILD}", _MOST_OF_ITS_BUILD)
    _appended(stage, data, path, table, built["hilbert"])


def _appended(stage: _Stage, data: str, path: str, table: "grebe.LakeTable", built: float) -> None:
    more = stage.rows // 100
    stage.written(data, Path(path), stage.rows, stage.rows + more, 1)
    seconds = _seconds(lambda: table.refresh("hilbert"))
    most = 0.05 * built + 2
    stage.report.add(f"{data}, refresh after 1%", "s", seconds, "goal: 5% of the build + 2 s", most)


def _query(source: str, box: dict[str, tuple[str, str]]) -> str:
    ranges = " AND ".join(f"{column} BETWEEN {low} AND {high}" for column, (low, high) in box.items())
    return f"SELECT count(*), sum(v), sum(w) FROM {source} WHERE {ranges}"


def _boxes(path: str, count: int, queries: int) -> Iterator[dict[str, tuple[str, str]]]:
    """Around rows of the table, of the same width in every column's ranks."""
    rng = np.random.default_rng(count)
    sample = pq.read_table(path, columns=list(COLUMNS)).to_pandas()
    ordered = {column: np.sort(sample[column].to_numpy()) for column in COLUMNS[:count]}
    width = _WIDTHS[count]
    for number in rng.integers(0, len(sample), queries):
        box = {}
        for column in COLUMNS[:count]:
            values = ordered[column]
            middle = np.searchsorted(values, sample[column].iloc[number]) / len(values)
            low = min(max(0.0, middle - width / 2), 1 - width)
            ends = (values[int(low * (len(values) - 1))], values[int((low + width) * (len(values) - 1))])
            box[column] = (_literal(ends[0]), _literal(ends[1]))
        yield box


def _literal(value: object) -> str:
    match value:
        case str():
            return f"'{value}'"
        case float() | np.floating():
            return f"{float(value)!r}D"
        case int() | np.integer():
            return f"{value}L"
    return f"DATE '{value}'"


def _asked(stage: _Stage, index: str, queries: Sequence[str]) -> list[object]:
    with stage.lake.only(index):
        return [tuple(row) for query in queries for row in stage.spark.sql(query).collect()]


def _bytes_read(stage: _Stage, index: str, queries: Sequence[str]) -> list[int]:
    """Of each query: what Spark's process read meanwhile. Its own counters leave reads of several ranges at once out."""
    jvm, found = jvm_of(stage.spark), []
    for query in queries:
        before = bytes_read(jvm)
        _asked(stage, index, [query])
        found.append(bytes_read(jvm) - before)
    return found


PARTS: dict[str, Callable[[_Stage], None]] = {data: partial(_one, data) for data in DATA}


def run(scale: Scale, report: Report, parts: Sequence[str] = ()) -> None:
    rows, queries, runs = scale.pick((1_000_000, 10, 3), (20_000_000, 30, 5))
    with bench_session(settings={"spark.sql.parquet.compression.codec": "zstd"}) as (spark, folder):
        stage = _Stage(spark, grebe.attach(spark), folder, rows, queries, runs, report)
        for name in parts or PARTS:
            PARTS[name](stage)
