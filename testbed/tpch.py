"""TPC-H: its data at any scale, made once by tpchgen-cli into the cache, and its 22 queries with the validation parameters.

The same arguments give the same data. Every table is a folder of files, which follow each other in the order of the primary key;
money is decimal(15,2), dates are dates. The queries are valid in Spark and in DuckDB alike.
"""

import subprocess
from collections.abc import Iterable
from importlib.metadata import distribution, version
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.cached import made_once

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from pyspark.sql import DataFrame, SparkSession

QUERIES = range(1, 23)
CSV_OPTIONS = {"header": "true"}
SCHEMAS = {
    "region": "r_regionkey bigint, r_name string, r_comment string",
    "nation": "n_nationkey bigint, n_name string, n_regionkey bigint, n_comment string",
    "supplier": "s_suppkey bigint, s_name string, s_address string, s_nationkey bigint, s_phone string,"
    " s_acctbal decimal(15,2), s_comment string",
    "customer": "c_custkey bigint, c_name string, c_address string, c_nationkey bigint, c_phone string,"
    " c_acctbal decimal(15,2), c_mktsegment string, c_comment string",
    "part": "p_partkey bigint, p_name string, p_mfgr string, p_brand string, p_type string, p_size int,"
    " p_container string, p_retailprice decimal(15,2), p_comment string",
    "partsupp": "ps_partkey bigint, ps_suppkey bigint, ps_availqty int, ps_supplycost decimal(15,2), ps_comment string",
    "orders": "o_orderkey bigint, o_custkey bigint, o_orderstatus string, o_totalprice decimal(15,2), o_orderdate date,"
    " o_orderpriority string, o_clerk string, o_shippriority int, o_comment string",
    "lineitem": "l_orderkey bigint, l_partkey bigint, l_suppkey bigint, l_linenumber int, l_quantity decimal(15,2),"
    " l_extendedprice decimal(15,2), l_discount decimal(15,2), l_tax decimal(15,2), l_returnflag string,"
    " l_linestatus string, l_shipdate date, l_commitdate date, l_receiptdate date, l_shipinstruct string,"
    " l_shipmode string, l_comment string",
}
TABLES = tuple(SCHEMAS)

_QUERIES = Path(__file__).with_name("queries") / "tpch"
# The generator itself keeps region and nation in one file each.
_SHARE_OF_PARTS = {"supplier": 4, "customer": 2, "part": 2, "partsupp": 2}


def query(number: int) -> str:
    return (_QUERIES / f"q{number:02}.sql").read_text(encoding="utf-8")


def generate(scale: float, format: str = "parquet", parts: int | None = None, tables: Iterable[str] = TABLES) -> Path:
    """The folder of the data, one folder a table below it: lineitem and orders in `parts` files, smaller tables in fewer."""
    parts = parts or (8 if scale >= 0.1 else 4)
    chosen = tuple(tables)

    by_count: dict[int, list[str]] = {}
    for table in chosen:
        by_count.setdefault(max(1, parts // _SHARE_OF_PARTS.get(table, 1)), []).append(table)

    def make(folder: Path) -> None:
        for count, some in by_count.items():
            _run(format, *("-s", f"{scale:g}"), *("-T", ",".join(some)), *("--parts", str(count)), *("-o", str(folder)))

    name = f"{format}-{scale:g}-{parts}" + ("" if chosen == TABLES else "-" + "-".join(chosen))
    return made_once(f"tpch/{version('tpchgen-cli')}/{name}", make)


def generate_tested(format: str) -> Path:
    """What `make test` runs against: so many files that one in eleven can be appended later."""
    return generate(0.01, format, parts=22)


def _run(*arguments: str) -> None:
    # Found by its package: the environments of `make matrix` see the packages of the main one, but not its programs.
    (program,) = (file for file in distribution("tpchgen-cli").files or () if file.stem == "tpchgen-cli")
    subprocess.run([Path(program.locate()), *arguments, "--quiet"], check=True)


def read(spark: "SparkSession", folder: Path, table: str, format: str = "parquet") -> "DataFrame":
    path = str(folder / table)
    if format == "csv":
        return spark.read.csv(path, schema=SCHEMAS[table], **CSV_OPTIONS)
    return spark.read.format(format).load(path)


def register(spark: "SparkSession", folder: Path, format: str = "parquet", tables: Iterable[str] = TABLES) -> None:
    """A temporary view for every table, over the files that are there now."""
    for table in tables:
        read(spark, folder, table, format).createOrReplaceTempView(table)


def register_in_duckdb(
    duckdb: "DuckDBPyConnection", folder: Path, format: str = "parquet", tables: Iterable[str] = TABLES
) -> None:
    for table in tables:
        files = f"'{folder / table}/*.{format}'"
        if format == "csv":
            columns = ", ".join(f"'{name}': '{type}'" for name, type in _columns(table))
            source = f"read_csv({files}, header = true, columns = {{{columns}}})"
        else:
            source = f"read_parquet({files})"
        duckdb.execute(f"CREATE OR REPLACE VIEW {table} AS SELECT * FROM {source}")


def _columns(table: str) -> list[tuple[str, str]]:
    fields = (field.strip().split(" ") for field in SCHEMAS[table].split(", "))
    return [(name, type) for name, type in fields]
