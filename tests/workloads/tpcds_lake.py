"""The tables of TPC-DS with indexes on the keys that its queries join and group by."""

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest

import grebe
from testbed import tpcds
from testbed.cached import working_copy
from tests.workloads.workload import Workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYS = {
    "catalog_sales": ["cs_item_sk", "cs_bill_customer_sk"],
    "customer": ["c_customer_sk"],
    "customer_address": ["ca_address_sk"],
    "inventory": ["inv_item_sk"],
    "item": ["i_item_sk"],
    "store_returns": ["sr_customer_sk", "sr_item_sk"],
    "store_sales": ["ss_item_sk", "ss_customer_sk"],
    "web_sales": ["ws_bill_customer_sk", "ws_order_number"],
}


def indexed(session: "SparkSession", lake: "grebe.Lake", target: Path) -> tuple[Workload, dict[int, str]]:
    """The workload, and its queries as DuckDB takes them. Every index holds all columns, so that any query can use it."""
    try:
        data = tpcds.generate(tpcds.TESTED_SCALE)
    except subprocess.CalledProcessError:
        pytest.skip("DuckDB's extension tpcds cannot be installed: `python -m testbed fetch` says why")
    tables = working_copy(data, target / "lake")
    workload = Workload(session, lake, duckdb.connect(), tpcds.in_spark)
    for table, keys in KEYS.items():
        columns = session.read.parquet(str(tables / table)).columns
        kinds = [
            grebe.Covering(f"{table}_by_{key}", on=[key], include=[column for column in columns if column != key])
            for key in keys
        ]
        lake.table(str(tables / table)).create(*kinds)
    tpcds.register(session, tables)
    tpcds.register_in_duckdb(workload.duckdb, tables)
    return workload, tpcds.queries(tables)
