"""Tables that the tests of several verbs look into."""

from typing import TYPE_CHECKING

import pytest

from tests.session.people_lake import indexed_people, write_people

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def people(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table without indexes."""
    return write_people(tmp_path_factory.mktemp("plain") / "people")


@pytest.fixture(scope="session")
def indexed(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> str:
    """The same table, with lookup indexes on id, email and address.city."""
    return indexed_people(spark, tmp_path_factory.mktemp("indexed") / "people")
