"""The tables of TPC-H with their indexes, young at first: what the tests of TPC-H run against."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

import grebe
from bench._indexing import create
from bench.tpch import INDEXES
from testbed import tpch
from testbed.ageing import YoungLake
from tests.workloads.workload import Workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class TpchLake:
    """`workload` is over the tables as they were when `look` was called last."""

    workload: Workload
    tables: YoungLake
    format: str

    @staticmethod
    def indexed(
        session: "SparkSession",
        lake: "grebe.Lake",
        data: Path,
        target: Path,
        format: str = "parquet",
        tables: Iterable[str] = tuple(INDEXES),
    ) -> "TpchLake":
        """The indexes of these tables cover all their files but those that are kept back."""
        made = TpchLake(Workload(session, lake, duckdb.connect()), YoungLake.of(data, target), format)
        create(lake, session, made.tables.folder, {table: INDEXES[table] for table in tables}, format)
        made.look()
        return made

    def look(self) -> None:
        """Both engines list the files anew."""
        tpch.register(self.workload.spark, self.tables.folder, self.format)
        tpch.register_in_duckdb(self.workload.duckdb, self.tables.folder, self.format)

    def age(self) -> None:
        """The tables change, the indexes stay as they are."""
        self.tables.age()
        self.look()
