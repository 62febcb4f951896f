"""A sketch of another package works by being installed: it is made in Spark's tasks, stored, and asked."""

import importlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import grebe
from grebe.errors import InvalidIndex
from grebe.indexes.sketches.registry import sketches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("plugins")]
HERE = Path(__file__).parent


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--target", str(target), str(HERE / "lengths")], check=True)
    sys.path.append(str(target))
    importlib.invalidate_caches()
    sketches.cache_clear()
    yield
    sys.path.remove(str(target))
    sys.modules.pop("grebe_lengths", None)
    sketches.cache_clear()


def test_it_is_stored_and_asked(spark: "SparkSession", tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    for number, text in enumerate(("a", "bb", "ccc")):
        pq.write_table(pa.table({"s": [text] * 3}), tmp_path / "t" / f"{number}.parquet")
    # Workers look for packages where the driver's own do.
    spark.sparkContext.addPyFile(_packed(tmp_path))
    table = grebe.attach(spark).table(str(tmp_path / "t"))
    table.create(grebe.Skipping("long", "lengths(s)"))
    answer = grebe.open(str(tmp_path / "t")).files("s = 'xyz'")
    assert [Path(file.path).name for file in answer.files] == ["2.parquet"]
    assert answer.pruned_by == {"long": 2}
    pq.write_table(pa.table({"n": [1]}), tmp_path / "n.parquet")
    with pytest.raises(InvalidIndex, match="Lengths is for text"):
        grebe.attach(spark).table(str(tmp_path / "n.parquet")).create(grebe.Skipping("long", "lengths(n)"))


def _packed(folder: Path) -> str:
    return shutil.make_archive(str(folder / "lengths"), "zip", HERE / "lengths", "grebe_lengths")


def test_one_that_is_not_there_is_named(spark: "SparkSession") -> None:
    with pytest.raises(InvalidIndex, match="no sketch 'widths' is known here; there are: min_max, "):
        grebe.Skipping("x", "widths(s)")
