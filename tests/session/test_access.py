"""Nobody reads a table's columns in its indexes who may not read the table, at no moment of any operation."""

import json
import os
import pwd
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

import grebe
from grebe.cli.main import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("access")]

SPY = """
import os, sys, time
found = set()
until = time.time() + 120
while time.time() < until and not os.path.exists(sys.argv[2]):
    for folder, folders, files in os.walk(sys.argv[1]):
        for name in files:
            try:
                with open(os.path.join(folder, name), "rb") as one:
                    one.read(1)
                found.add(os.path.join(folder, name))
            except OSError:
                pass
print(sorted(found))
"""


def _bits(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody gets to, as pytest's own are not."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        yield Path(made)


@pytest.mark.parametrize(("folder", "file"), [(0o700, 0o600), (0o750, 0o640), (0o755, 0o600)])
def test_what_is_made_beside_a_table_is_no_more_open_than_it(
    spark: "SparkSession", open_folder: Path, folder: int, file: int
) -> None:
    lake_folder = open_folder
    place, stop = lake_folder / "t", lake_folder / "stop"
    spark.range(300).selectExpr("id", "id % 7 AS k").repartition(2).write.parquet(str(place))
    for one in place.iterdir():
        one.chmod(file)
    place.chmod(folder)
    user = {"user": pwd.getpwnam("nobody").pw_uid, "group": pwd.getpwnam("nobody").pw_gid} if os.getuid() == 0 else None
    spying = None
    if user is not None and folder == 0o700:
        command = ["/usr/bin/env", "python3", "-I", "-c", SPY, str(lake_folder / "_grebe"), str(stop)]
        spying = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd="/", **user)  # type: ignore[call-overload]
    try:
        lake = grebe.attach(spark, grebe.Config(record_workload=True))
        table = lake.table(str(place))
        table.create(
            grebe.Covering("by_k", on="k", include=["id"], buckets=2),
            grebe.Lookup("by_id", on="id"),
            grebe.Skipping("skip", on="k"),
        )
        spark.range(300, 320).selectExpr("id", "id % 7 AS k").write.mode("append").parquet(str(place))
        for one in place.iterdir():
            one.chmod(file)
        table.refresh()
        table.optimize(mode="full")
        spark.read.parquet(str(place)).where("k = 3").collect()
        assert len(lake.workload(table).collect()) >= 1
    finally:
        stop.touch()
    if spying is not None:
        read, _ = spying.communicate(timeout=60)
        assert spying.returncode == 0
        assert read.strip() == "[]"
    made = [lake_folder / "_grebe" / "t", *(lake_folder / "_grebe" / "t").rglob("*")]
    assert any(path.suffix == ".gix" for path in made)
    assert any("workload" in str(path) for path in made)
    for path in made:
        if path.is_dir():
            entered = folder if file & 0o044 else folder & ~0o077
            assert _bits(path) & 0o777 & ~entered & 0o077 == 0, path
        else:
            assert _bits(path) & ~file & 0o077 == 0, path


def test_the_doctor_names_indexes_that_are_more_open_than_their_table(open_folder: Path) -> None:
    table, place = open_folder / "t", open_folder / "_grebe" / "t" / "data"
    for made in (table, place):
        made.mkdir(parents=True)
        (made / "part.parquet").write_bytes(b"x")
    (table / "part.parquet").chmod(0o600)
    (place / "part.parquet").chmod(0o644)
    place.parent.chmod(0o755)
    place.chmod(0o755)

    def found() -> dict[str, str]:
        ran = CliRunner().invoke(main, ["--json", "doctor", str(table)])
        return next(one for one in json.loads(ran.stdout) if one["check"] == "access")

    assert found()["result"] == "wrong"
    assert f"chmod -R go-rwx {open_folder}/_grebe/t" in found()["advice"]
    place.parent.chmod(0o700)
    assert found()["result"] == "ok"
