"""The jars that the package carries are what javac makes of java/."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project.tree import ROOT
from tools import shim

pytestmark = [pytest.mark.core]


@pytest.mark.skipif(shutil.which("javac") is None, reason="needs a JDK; users and checkouts need none")
def test_the_jar_is_made_of_the_sources(tmp_path: Path) -> None:
    scala = shim.scala_version()
    made, kept = shim.compile_classes(scala, tmp_path), shim.classes_in(shim.jar_of(scala))
    assert made.keys() == kept.keys()
    assert [name for name in made if made[name] != kept[name]] == [], "run `python tools/shim.py` with each Spark"


_AGAIN = """
import sys
from pathlib import Path
import grebe
from testbed.spark import SHORT_LIVED, spark_session
folder = Path(sys.argv[1])
for turn in range(2):
    with spark_session(folder / str(turn), SHORT_LIVED) as spark:
        lake = grebe.attach(spark)
        if turn == 0:
            spark.range(100).write.parquet(str(folder / "t"))
            lake.table(str(folder / "t")).create(grebe.Covering("by_id", on="id"))
        assert [row.id for row in spark.read.parquet(str(folder / "t")).where("id = 7").collect()] == [7]
        assert lake.table(str(folder / "t")).refresh(mode="full")[0].rows == 100
print("twice")
"""


def test_a_session_that_follows_another_is_attached_as_well(tmp_path: Path) -> None:
    """In a process of its own: a stopped session is none that other tests could go on with."""
    ran = subprocess.run(
        [sys.executable, "-c", _AGAIN, str(tmp_path)], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert ran.stdout.splitlines()[-1:] == ["twice"], ran.stderr[-2000:]
