"""TPC-DS: its data at a small scale and its 99 queries, both from DuckDB's extension tpcds, made once into the cache.

The extension fits one version of DuckDB only, which is not that of the tests: the two lie in a folder of the cache by themselves,
used by a process of its own. The texts of the queries come from the extension; how Spark wants them is in `SPELLINGS`.
"""

import functools
import hashlib
import json
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.cached import made_once

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from pyspark.sql import SparkSession

QUERIES = range(1, 100)
TESTED_SCALE = 0.01

# What DuckDB reads, and how Spark spells it. Everything else in the 99 texts is valid in both.
SPELLINGS = {
    r'"([^"]*)"': r"`\1`",  # names with blanks (16, 32, 50, 62, 92, 94, 95, 99): double quotes are texts in Spark
}

_LOCK = Path(__file__).parent.parent / "requirements" / "tpcds.lock"
_EXPORT = Path(__file__).with_name("tpcds_export.py")


def generate(scale: float) -> Path:
    """The folder of the data: one folder of Parquet files a table, and `queries.json`."""

    def make(folder: Path) -> None:
        subprocess.run([sys.executable, "-I", _EXPORT, packages(), f"{scale:g}", folder], check=True)

    return made_once(f"tpcds/{_digest()}/parquet-{scale:g}", make)


def packages() -> Path:
    """DuckDB and its extension, as the lock says, for this Python."""

    def make(folder: Path) -> None:
        pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "-q"]
        subprocess.run([*pip, "--require-hashes", "--target", folder, "-r", _LOCK], check=True)

    return made_once(f"tpcds/{_digest()}/packages-{sysconfig.get_platform()}-{sys.version_info[1]}", make)


@functools.cache
def _digest() -> str:
    return hashlib.sha256(_LOCK.read_bytes() + _EXPORT.read_bytes()).hexdigest()[:12]


def tables(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith("_"))


def queries(folder: Path) -> dict[int, str]:
    """As DuckDB takes them."""
    return {int(number): text for number, text in json.loads((folder / "queries.json").read_text()).items()}


def in_spark(text: str) -> str:
    """One of the queries as Spark takes it."""
    for pattern, spelling in SPELLINGS.items():
        text = re.sub(pattern, spelling, text)
    return text


def register(spark: "SparkSession", folder: Path) -> None:
    """A temporary view for every table, over the files that are there now."""
    for table in tables(folder):
        spark.read.parquet(str(folder / table)).createOrReplaceTempView(table)


def register_in_duckdb(duckdb: "DuckDBPyConnection", folder: Path) -> None:
    for table in tables(folder):
        duckdb.execute(f"CREATE OR REPLACE VIEW {table} AS SELECT * FROM read_parquet('{folder / table}/*.parquet')")
