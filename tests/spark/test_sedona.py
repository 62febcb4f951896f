"""Questions of Apache Sedona in Spark: an index rules files out by the box of the constant, and Sedona answers on the rest."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from testbed import maven
from tests.project.tree import ROOT

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.soak]


@pytest.mark.skipif(maven.spark_version() != "3.5", reason="there is no Apache Sedona for this Spark yet")
def test_sedona_is_asked_about_fewer_files_and_gives_the_same_rows(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.spark.sedona_child", str(tmp_path)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    told = json.loads((tmp_path / "told.json").read_text())
    assert all(one["same"] for one in told)
    assert all(one["rows"] for one in told)
    assert [one["used"] for one in told] == [["place"], ["place"], ["place"], ["shape"], [], []]
