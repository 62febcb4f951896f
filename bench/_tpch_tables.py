"""Tables that a filter index and many small files are told by: a part of the benchmark `tpch`."""

from pathlib import Path
from typing import TYPE_CHECKING

import grebe
from bench._indexing import create
from bench._races import with_and_without
from bench._session import BROADCAST, broadcasting
from bench.harness import Report
from testbed import tpch
from testbed.cached import made_once, working_copy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FILES_OF_A_TABLE = 8
_SMALL_FILES, _SCALE_OF_SMALL_FILES = 1_000, 0.1


def range_filter(
    lake: "grebe.Lake", spark: "SparkSession", folder: Path, factor: float, runs: int, report: Report
) -> None:
    """One percent of the keys, in a table that lies in the order of the key (as it is generated), and in one that lies in none."""
    first = int(6_000_000 * factor * 0.42)
    last = first + int(6_000_000 * factor * 0.01)
    sql = (
        "SELECT count(*), sum(l_quantity), sum(l_extendedprice), sum(l_discount), min(l_shipdate), max(l_partkey), max(l_suppkey)"
        f" FROM lineitem WHERE l_orderkey BETWEEN {first} AND {last}"
    )
    columns = ["l_partkey", "l_suppkey", "l_quantity", "l_extendedprice", "l_discount", "l_shipdate"]
    index = grebe.Covering("by_key", on=["l_orderkey"], include=columns, buckets=0)
    for layout, data in (("in order", tpch.generate(factor)), ("in no order", _in_no_order(factor))):
        tables = folder / f"range {layout}"
        working_copy(data / "lineitem", tables / "lineitem")
        create(lake, spark, tables, {"lineitem": [index]})
        tpch.register(spark, tables, tables=["lineitem"])
        with_and_without(spark, lake, sql, runs).report(f"range of 1% of l_orderkey, rows {layout}", report)


def small_files(lake: "grebe.Lake", spark: "SparkSession", folder: Path, runs: int, report: Report) -> None:
    """Files of some twenty kilobytes, as something that writes every few minutes leaves them."""
    tables = folder / "small files"
    working_copy(tpch.generate(_SCALE_OF_SMALL_FILES, parts=_SMALL_FILES, tables=["lineitem"]), tables)
    working_copy(tpch.generate(_SCALE_OF_SMALL_FILES) / "orders", tables / "orders")
    indexes = {
        "lineitem": [
            grebe.Covering("by_part", on=["l_partkey"], include=["l_quantity", "l_extendedprice"]),
            grebe.Covering("by_order", on=["l_orderkey"], include=["l_extendedprice", "l_discount"]),
        ],
        "orders": [grebe.Covering("by_order", on=["o_orderkey"], include=["o_orderpriority"])],
    }
    create(lake, spark, tables, indexes)
    tpch.register(spark, tables, tables=list(indexes))
    lookup = "SELECT l_partkey, l_quantity, l_extendedprice FROM lineitem WHERE l_partkey = 7777"
    with_and_without(spark, lake, lookup, runs).report("1,000 small files, lookup", report)
    join = (
        "SELECT o_orderpriority, count(*), sum(l_extendedprice * (1 - l_discount))"
        " FROM lineitem JOIN orders ON l_orderkey = o_orderkey GROUP BY o_orderpriority ORDER BY o_orderpriority"
    )
    with broadcasting(spark, BROADCAST["no broadcast"]):
        with_and_without(spark, lake, join, runs).report("1,000 small files, join", report)


def _in_no_order(factor: float) -> Path:
    """The table lineitem, its rows as if they were thrown into the files."""

    def make(folder: Path) -> None:
        import duckdb

        connection = duckdb.connect()
        tpch.register_in_duckdb(connection, tpch.generate(factor), tables=["lineitem"])
        (folder / "lineitem").mkdir()
        for number in range(_FILES_OF_A_TABLE):
            thrown = "hash(l_orderkey, l_linenumber)"
            rows = f"SELECT * FROM lineitem WHERE {thrown} % {_FILES_OF_A_TABLE} = {number} ORDER BY {thrown}"
            target = folder / "lineitem" / f"lineitem.{number}.parquet"
            connection.execute(f"COPY ({rows}) TO '{target}' (FORMAT parquet, COMPRESSION snappy)")

    return made_once(f"tpch/in-no-order-{factor:g}", make)
