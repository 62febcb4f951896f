"""The sound files that are mutated: one small table in each format, with indexes of every kind.

    python -m testbed.fuzz.seeds

builds them with Spark, once, into tests/data/malformed/seeds.tar.gz. `unpack` needs no Spark: it writes the log anew, for the
folder that the tables lie in now.
"""

import json
import shutil
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from pyarrow import orc

import grebe
from grebe.clock import SystemClock
from grebe.files import FileIds, canonical_uri
from grebe.indexes.kind import Kind
from grebe.log.commit import Log
from grebe.log.entry import IndexCreated, Verb
from grebe.log.operation import begin
from grebe.log.registration import Registry
from grebe.log.snapshot import newest
from grebe.sources import open_source
from grebe.store.local import LocalStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ARCHIVE = Path(__file__).parent.parent.parent / "tests" / "data" / "malformed" / "seeds.tar.gz"
FORMATS = ("parquet", "orc", "csv", "json")
ROWS, FILES = 120, 3


def rows_of(number: int) -> pa.Table:
    """The rows of one file."""
    ids = range(number * ROWS // FILES, (number + 1) * ROWS // FILES)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "name": [f"name {one * 7 % 50}" if one % 11 else None for one in ids],
            "price": [one * 37 % 101 / 8 for one in ids],
            "day": [date(2024, 1, 1) + timedelta(days=one * 13 % 97) for one in ids],
            "x": [one * 17 % 83 / 4 for one in ids],
            "y": [one * 29 % 71 / 4 for one in ids],
        }
    )


def all_rows() -> pa.Table:
    return pa.concat_tables([rows_of(number) for number in range(FILES)])


@dataclass(frozen=True, slots=True)
class Seeds:
    """The tables, unpacked."""

    root: Path

    def table(self, format: str) -> Path:
        return self.root / f"t_{format}"

    def data_files(self, format: str) -> list[Path]:
        return sorted(self.table(format).glob("part-*"))

    def log(self, format: str) -> Path:
        return self.root / "_grebe" / f"t_{format}"

    def content(self, format: str, index: str, pattern: str) -> list[Path]:
        return sorted((self.log(format) / "data" / index).glob(f"*/{pattern}"))


def unpack(root: Path) -> Seeds:
    """Unpack the tables below `root`, and write logs that name them there."""
    root.mkdir(parents=True, exist_ok=True)
    old = root / "archive"
    with tarfile.open(ARCHIVE) as opened:
        opened.extractall(old, filter="data")
    for format in FORMATS:
        (old / f"t_{format}").rename(root / f"t_{format}")
        _log_anew(LocalStore(old / "_grebe" / f"t_{format}"), root, f"t_{format}")
    shutil.rmtree(old)
    return Seeds(root)


def _log_anew(old: LocalStore, root: Path, name: str) -> None:
    state = newest(old).state
    assert state.table is not None
    uri = canonical_uri(str(root / name))
    log = Log(LocalStore(root / "_grebe" / name), SystemClock()).create(replace(state.table, uri=uri))
    ids = FileIds.of(Registry(log).register(open_source(uri).files()).to_numpy())
    specs = {name: index.spec for name, index in state.indexes.items()}
    with begin(log, Verb.CREATE, list(specs), specs) as operation:
        created = []
        for name, index in state.indexes.items():
            content = []
            for file in index.content:
                moved = f"{operation.folder(name)}/{file.path.rpartition('/')[2]}"
                log.store.put(moved, old.get(file.path))
                content.append(replace(file, path=moved))
            created.append(IndexCreated(name, index.spec, operation.version, tuple(content), ids))
        operation.commit(lambda _: created)


def write(spark: "SparkSession", scratch: Path) -> Path:
    """Build the archive."""
    for format in FORMATS:
        table = scratch / f"t_{format}"
        table.mkdir()
        for number in range(FILES):
            _write_file(rows_of(number), format, table / f"part-{number}.{format}")
        located = spark.read.schema(_DDL).format(format).load(str(table)) if format != "parquet" else str(table)
        grebe.attach(spark).table(located).create(*_indexes(format == "parquet"))
    ARCHIVE.parent.mkdir(exist_ok=True)
    with tarfile.open(ARCHIVE, "w:gz") as made:
        for path in _kept(scratch):
            made.add(path, str(path.relative_to(scratch)), recursive=False, filter=_without_owner)
    return ARCHIVE


_DDL = "id long, name string, price double, day date, x double, y double"


def _indexes(every_kind: bool) -> Iterator[Kind]:
    yield grebe.Lookup("lookup", on="name")
    yield grebe.Skipping(
        "skipping", grebe.MinMax("id"), grebe.Bloom("name"), grebe.ValueList("day"), grebe.Ngram("name")
    )
    if every_kind:
        yield grebe.Covering("covering", on="id", include=["price"])
        yield grebe.Sieve("sieve_price", on="price")
        yield grebe.Sieve("sieve_name", on="name")
        yield grebe.Spatial("spatial", x="x", y="y")


def _write_file(rows: pa.Table, format: str, path: Path) -> None:
    if format == "parquet":
        pq.write_table(rows, path, row_group_size=20, write_page_index=True, write_page_checksum=True)
    elif format == "orc":
        orc.write_table(rows, str(path), compression="zlib")
    elif format == "csv":
        pyarrow.csv.write_csv(rows, str(path), pyarrow.csv.WriteOptions(include_header=False))
    else:
        path.write_text("".join(json.dumps(row, default=str) + "\n" for row in rows.to_pylist()))


def _kept(scratch: Path) -> list[Path]:
    return sorted(
        p for name in ("_grebe", *(f"t_{one}" for one in FORMATS)) for p in (scratch / name).rglob("*") if p.is_file()
    )


def _without_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


if __name__ == "__main__":
    from tempfile import TemporaryDirectory

    from testbed.spark import spark_session

    with TemporaryDirectory() as folder, spark_session(Path(folder) / "spark") as session:
        sys.stdout.write(f"{write(session, Path(folder))}\n")
