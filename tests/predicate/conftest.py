"""Spark set up as an oracle: interpreted plans, which for tiny tables take a tenth of the time that compiling them would."""

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.predicate.oracle import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def oracle(spark: "SparkSession") -> Iterator["SparkSession"]:
    # Errors of Spark are among the expected answers.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)
    with settings(
        spark,
        spark__sql__codegen__wholeStage="false",
        spark__sql__codegen__factoryMode="NO_CODEGEN",
        spark__sql__parquet__datetimeRebaseModeInRead="CORRECTED",
        spark__sql__parquet__datetimeRebaseModeInWrite="CORRECTED",
    ):
        yield spark
