"""A small table with an index of every kind, as a release wrote it: kept in tests/data, and opened by every later version.

    python -m testbed.released

writes that of this version, once, when it is released. The log names the table by its URI, so that it lies at a fixed place.
"""

import os
import shutil
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLACE = Path("/var/tmp/grebe-releases")
KEPT = Path(__file__).parent.parent / "tests" / "data"
ROWS, FILES = 400, 4
_WRITTEN_AT = 1_790_000_000
"""Whole seconds, which archives keep."""


def archives() -> list[Path]:
    return sorted(KEPT.glob("release-*.tar.gz"))


def unpacked(archive: Path) -> Path:
    """The table, at its place."""
    folder = PLACE / archive.name.removeprefix("release-").removesuffix(".tar.gz")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    return folder / "t"


def write(spark: "SparkSession") -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    import grebe

    release = version("grebe")
    table = PLACE / release / "t"
    shutil.rmtree(table.parent, ignore_errors=True)
    table.mkdir(parents=True)
    for number in range(FILES):
        ids = range(number * ROWS // FILES, (number + 1) * ROWS // FILES)
        rows = {"id": list(ids), "name": [f"name {one}" for one in ids], "price": [one / 8 for one in ids]}
        pq.write_table(pa.table(rows), table / f"part-{number}.parquet")
        os.utime(table / f"part-{number}.parquet", (_WRITTEN_AT, _WRITTEN_AT))
    opened = grebe.attach(spark).table(str(table))
    opened.create(
        grebe.Covering("covering", on="id", include=["price"]),
        grebe.Lookup("lookup", on="name"),
        grebe.Skipping("skipping", grebe.MinMax("id"), grebe.Bloom("name"), grebe.ValueList("price")),
        grebe.Sieve("sieve", on="price"),
    )
    opened.refresh(mode="quick")
    KEPT.mkdir(exist_ok=True)
    archive = KEPT / f"release-{release}.tar.gz"
    with tarfile.open(archive, "w:gz") as made:
        for path in sorted(table.parent.iterdir()):
            made.add(path, path.name, filter=_without_owner)
    return archive


def _without_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


if __name__ == "__main__":
    from tempfile import TemporaryDirectory

    from testbed.spark import spark_session

    with TemporaryDirectory() as scratch, spark_session(Path(scratch)) as session:
        sys.stdout.write(f"{write(session)}\n")
