"""Rides whose queries are recorded."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

import grebe
from tests.advisor.rides import FILES, rows
from tests.spark.served import Served, serving

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def served(spark: "SparkSession") -> Iterator[Served]:
    with serving(spark, grebe.Config(record_workload=True, hybrid_max_appended=1.0, hybrid_max_deleted=1.0)) as served:
        yield served


@pytest.fixture
def rides(served: Served, tmp_path: Path) -> Path:
    folder = tmp_path / "rides"
    folder.mkdir()
    for number in range(FILES):
        pq.write_table(rows(number), folder / f"{number}.parquet")
    served.view("rides", folder)
    return folder
