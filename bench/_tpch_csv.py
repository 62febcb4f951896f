"""Six queries over CSV: a part of the benchmark `tpch`. A copy of the CSV as Parquet, without any index, is the control."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import grebe
from bench._indexing import create
from bench._races import OURS, RIVAL, race
from bench.harness import Report
from testbed import tpch
from testbed.cached import working_copy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = (1, 3, 5, 6, 12, 14)
TABLES = ("lineitem", "orders", "customer", "part", "supplier", "nation", "region")
CONTROL = "a copy as Parquet"


def over_csv(
    lake: "grebe.Lake",
    spark: "SparkSession",
    folder: Path,
    factor: float,
    runs: int,
    report: Report,
    indexes: "Mapping[str, Sequence[grebe.Covering]]",
) -> None:
    tables = working_copy(tpch.generate(factor, "csv"), folder / "csv")
    create(lake, spark, tables, {table: kinds for table, kinds in indexes.items() if table in TABLES}, "csv")
    tpch.register(spark, tables, "csv")

    control = spark.newSession()
    for table in TABLES:
        tpch.read(control, tables, table, "csv").write.parquet(str(folder / "copy" / table))
    tpch.register(control, folder / "copy", tables=TABLES)

    means: dict[str, list[float]] = {}
    for number in QUERIES:
        contestants = {OURS: (spark, lake), RIVAL: (spark, None), CONTROL: (control, None)}
        done = race(tpch.query(number), runs, contestants)
        for rival in (RIVAL, CONTROL):
            done.report(f"CSV, Q{number}", report, rival)
        for name in contestants:
            means.setdefault(name, []).append(done.median(name))
    mean = {name: statistics.geometric_mean(of) for name, of in means.items()}
    for rival in (RIVAL, CONTROL):
        report.add("CSV, geometric mean of 6", "s", mean[OURS], rival, mean[rival], runs)
