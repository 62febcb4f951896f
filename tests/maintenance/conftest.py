"""What the tests of `verify` and `repair` share."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from grebe.session.lake_table import LakeTable
from tests.maintenance import disk_scene as scenes
from tests.maintenance.faulty_lake import AT_ONCE, Hurt, made
from tests.spark.served import serving

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def sound(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with an index of every kind; not to be changed."""
    folder = tmp_path_factory.mktemp("sound") / "t"
    made(spark, folder)
    return folder


@pytest.fixture
def hurt(spark: "SparkSession", sound: Path, tmp_path: Path) -> Hurt:
    """The same table with a log of its own."""
    log = tmp_path / "log"
    shutil.copytree(sound.parent / "_grebe" / "t", log)
    return Hurt(LakeTable(spark, str(sound), location=str(log), config=AT_ONCE), sound, log)


@pytest.fixture(scope="module")
def disk_scene(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Iterator[scenes.DiskScene]:
    """A table whose indexes are to be copied to a disk that fails."""
    with serving(spark, scenes.CONFIG) as served:
        yield scenes.made(served, tmp_path_factory.mktemp("disk"))
