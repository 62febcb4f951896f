"""One lake a module: attached with indexes that always seem worth it."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from testbed.spark import COMPILED, configured
from tests.spark.served import Served, serving

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module", autouse=True)
def compiled(request: pytest.FixtureRequest) -> Iterator[None]:
    """Here, where our own operators are tried, Spark compiles its plans as it does for users."""
    if request.node.get_closest_marker("spark") is None:
        yield
        return
    with configured(request.getfixturevalue("spark"), COMPILED):
        yield


@pytest.fixture(scope="module")
def served(spark: "SparkSession") -> Iterator[Served]:
    with serving(spark) as made:
        yield made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of this module's tables."""
    return tmp_path_factory.mktemp("lake")
