"""One lake a module, with indexes that always seem worth it."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.served import Served, serving

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def served(spark: "SparkSession") -> Iterator[Served]:
    with serving(spark) as made:
        yield made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of this module's tables."""
    return tmp_path_factory.mktemp("lakes")
