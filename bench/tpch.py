"""TPC-H with the indexes below against plain Spark, in one session, taking turns: does every query gain, or at least not lose?

Also: how often the plans shuffle and sort, how large the indexes are, what making them takes; six queries over CSV, beside a
control that only copies the CSV to Parquet; a range filter on a key; and tables of a thousand small files.
"""

import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING

import grebe
from bench._indexing import bytes_of, bytes_of_indexes, create, sort_and_write
from bench._plans import Work, work_of
from bench._races import OURS, RIVAL, with_and_without
from bench._session import BROADCAST, bench_session, broadcasting
from bench._tpch_csv import over_csv
from bench._tpch_tables import range_filter, small_files
from bench.harness import Report, Scale
from testbed import tpch
from testbed.cached import working_copy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INDEXES = {
    "lineitem": [
        grebe.Covering(
            "lineitem_by_order",
            on=["l_orderkey"],
            include=[
                *("l_partkey", "l_suppkey", "l_quantity", "l_extendedprice", "l_discount", "l_returnflag"),
                *("l_shipdate", "l_commitdate", "l_receiptdate", "l_shipmode"),
            ],
        ),
        grebe.Covering(
            "lineitem_by_part",
            on=["l_partkey"],
            include=[
                *("l_orderkey", "l_suppkey", "l_quantity", "l_extendedprice", "l_discount"),
                *("l_shipdate", "l_shipinstruct", "l_shipmode"),
            ],
        ),
        grebe.Covering(
            "lineitem_by_supplier",
            on=["l_suppkey"],
            include=["l_orderkey", "l_extendedprice", "l_discount", "l_shipdate"],
        ),
        grebe.Covering(
            "lineitem_by_shipdate",
            on=["l_shipdate"],
            include=[
                *("l_partkey", "l_suppkey", "l_quantity", "l_extendedprice", "l_discount", "l_tax"),
                *("l_returnflag", "l_linestatus"),
            ],
            buckets=0,
        ),
    ],
    "orders": [
        grebe.Covering(
            "orders_by_order",
            on=["o_orderkey"],
            include=["o_custkey", "o_orderstatus", "o_totalprice", "o_orderdate", "o_orderpriority", "o_shippriority"],
        ),
        grebe.Covering(
            "orders_by_customer",
            on=["o_custkey"],
            include=["o_orderkey", "o_totalprice", "o_orderdate", "o_shippriority", "o_comment"],
        ),
        grebe.Covering(
            "orders_by_date", on=["o_orderdate"], include=["o_orderkey", "o_custkey", "o_orderpriority"], buckets=0
        ),
    ],
    "customer": [
        grebe.Covering(
            "customer_by_customer",
            on=["c_custkey"],
            include=["c_name", "c_address", "c_nationkey", "c_phone", "c_acctbal", "c_mktsegment", "c_comment"],
        ),
    ],
    "part": [
        grebe.Covering(
            "part_by_part",
            on=["p_partkey"],
            include=["p_name", "p_mfgr", "p_brand", "p_type", "p_size", "p_container"],
        ),
    ],
    "partsupp": [
        grebe.Covering("partsupp_by_part", on=["ps_partkey"], include=["ps_suppkey", "ps_availqty", "ps_supplycost"]),
        grebe.Covering(
            "partsupp_by_supplier", on=["ps_suppkey"], include=["ps_partkey", "ps_availqty", "ps_supplycost"]
        ),
    ],
    "supplier": [
        grebe.Covering(
            "supplier_by_supplier",
            on=["s_suppkey"],
            include=["s_name", "s_address", "s_nationkey", "s_phone", "s_acctbal", "s_comment"],
        ),
    ],
    "nation": [grebe.Covering("nation_by_nation", on=["n_nationkey"], include=["n_name", "n_regionkey"])],
    "region": [grebe.Covering("region_by_region", on=["r_regionkey"], include=["r_name"])],
}

_RUNS_OVER_CSV = 3
"""Fewer, as each takes long and the difference is large."""


def run(scale: Scale, report: Report) -> None:
    factor, runs = scale.pick(0.1, 1), scale.pick(3, 7)
    with bench_session() as (spark, folder):
        lake = grebe.attach(spark)
        tables = working_copy(tpch.generate(factor), folder / "lake")
        _creation(lake, spark, tables, report)
        tpch.register(spark, tables)
        for name, threshold in BROADCAST.items():
            with broadcasting(spark, threshold):
                _plans(lake, spark, name, report)
                _queries(lake, spark, name, runs, report)
        range_filter(lake, spark, folder, factor, runs, report)
        small_files(lake, spark, folder, runs, report)
        over_csv(lake, spark, folder, factor, min(runs, _RUNS_OVER_CSV), report, INDEXES)


def _creation(lake: "grebe.Lake", spark: "SparkSession", tables: Path, report: Report) -> None:
    start = time.perf_counter()
    for table, kinds in INDEXES.items():
        for kind in kinds:
            sort_and_write(spark, tables, table, kind)
    plain = time.perf_counter() - start
    start = time.perf_counter()
    create(lake, spark, tables, INDEXES)
    ours = time.perf_counter() - start
    count = sum(map(len, INDEXES.values()))
    report.add(f"creation of {count} indexes", "s", ours, "plain sort and write", plain)
    report.add(f"size of {count} indexes", "bytes", bytes_of_indexes(tables), "the tables", _bytes_of_tables(tables))


def _bytes_of_tables(tables: Path) -> int:
    return sum(bytes_of(tables / table) for table in tpch.TABLES)


def _plans(lake: "grebe.Lake", spark: "SparkSession", mode: str, report: Report) -> None:
    def work(enabled: bool) -> list[Work]:
        lake.enabled = enabled
        return [work_of(spark, tpch.query(number)) for number in tpch.QUERIES]

    ours, rival = work(True), work(False)
    for what in ("exchanges", "sorts"):
        mine, other = (sum(getattr(one, what) for one in all_plans) for all_plans in (ours, rival))
        report.add(f"{what} in the 22 plans, {mode}", "nodes", mine, RIVAL, other)


def _queries(lake: "grebe.Lake", spark: "SparkSession", mode: str, runs: int, report: Report) -> None:
    ours, rival, slower = [], [], 0
    for number in tpch.QUERIES:
        done = with_and_without(spark, lake, tpch.query(number), runs)
        slower += done.report(f"Q{number}, {mode}", report).slower
        ours.append(done.median(OURS))
        rival.append(done.median(RIVAL))
    report.add(f"all 22, {mode}", "s", sum(ours), RIVAL, sum(rival), runs)
    means = statistics.geometric_mean(ours), statistics.geometric_mean(rival)
    report.add(f"geometric mean of 22, {mode}", "s", means[0], RIVAL, means[1], runs)
    report.add(f"queries that are slower, {mode}", "queries", slower)
