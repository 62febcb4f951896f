"""The tables of the benchmark, written by Spark as it writes by default, the same at every run, made once into the cache."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from testbed.cached import made_once

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYS = ("id", "uuid", "ev")
THREE = ["id", "uuid", "d0"]
ROWS_OF_A_FILE = 31_250
ROWS_OF_AN_EVENT = 6

_DIGITS = "md5(concat('needle', id))"
_WIDE = f"""
SELECT
  xxhash64(id) & 9223372036854775807 AS id,
  concat_ws('-', substr({_DIGITS}, 1, 8), substr({_DIGITS}, 9, 4), '4' || substr({_DIGITS}, 14, 3),
    translate(substr({_DIGITS}, 17, 1), '0123456789abcdef', '89ab89ab89ab89ab') || substr({_DIGITS}, 18, 3),
    substr({_DIGITS}, 21, 12)) AS uuid,
  -- One row in a hundred belongs to one of ten events.
  if(pmod(hash(id, 1), 100) = 0, pmod(hash(id, 2), 10), pmod(hash(id, 3), {{events}})) AS ev,
  rand(1) AS d0, rand(2) * 100 AS d1, round(rand(3) * 1000, 2) AS d2, rand(4) AS d3,
  cast(rand(5) * 100000 AS int) AS i0, cast(rand(6) * 50 AS int) AS i1, hash(id, 7) AS i2, cast(id AS int) AS i3,
  'city-' || cast(rand(7) * 500 AS int) AS s0, 'kind-' || cast(rand(8) * 20 AS int) AS s1,
  'user' || hash(id, 9) AS s2, concat('mail', abs(hash(id, 10)), '@example.org') AS s3,
  concat('order ', id, ' of ', abs(hash(id, 11)), ' shipped in good order') AS c0, sha1(cast(id AS string)) AS c1,
  substr(sha2(cast(id AS string), 256), 1, cast(10 + rand(11) * 40 AS int)) AS c2,
  timestamp_micros(1600000000000000 + cast(rand(12) * 1e13 AS bigint)) AS ts0,
  timestamp_millis(1600000000000 + id * 1000) AS ts1, date_add(DATE '2015-01-01', cast(rand(13) * 3000 AS int)) AS da,
  rand(14) < 0.5 AS b, cast(rand(15) * 10000 AS decimal(12, 2)) AS m0, cast(rand(16) * 1e9 AS decimal(30, 4)) AS m1,
  if(rand(17) < 0.3, NULL, rand(18)) AS n0, if(rand(19) < 0.9, NULL, 'rare ' || id) AS n1
FROM range(0, {{rows}}, 1, {{files}})
"""
_NARROW = "SELECT xxhash64(id) & 9223372036854775807 AS id, rand(1) AS d0 FROM range(0, {rows}, 1, {files})"


def wide(spark: "SparkSession", rows: int, files: int, page_rows: int | None = None) -> Path:
    """26 columns: a random unique `id`, a `uuid`, an event `ev` with six rows a value, and others of all kinds."""
    return _made(spark, "wide", _WIDE, rows, files, page_rows)


def narrow(spark: "SparkSession", rows: int, files: int) -> Path:
    """A random unique `id`, and a number."""
    return _made(spark, "narrow", _NARROW, rows, files, None)


def _made(spark: "SparkSession", name: str, sql: str, rows: int, files: int, page_rows: int | None) -> Path:
    query = sql.format(rows=rows, files=files, events=max(rows // ROWS_OF_AN_EVENT, 1))
    options = {} if page_rows is None else {"parquet.page.row.count.limit": str(page_rows)}

    def make(folder: Path) -> None:
        target = folder / "rows"
        spark.sql(query).write.options(**options).parquet(str(target))
        for file in target.glob("*.parquet"):
            file.rename(folder / file.name)
        for left in target.iterdir():
            left.unlink()
        target.rmdir()

    digest = hashlib.sha256(repr((query, options)).encode()).hexdigest()[:12]
    return made_once(f"needle/{name}-{rows}-{files}-{digest}", make)


def some_keys(folder: Path, count: int, seed: int = 1) -> dict[str, list[int | str]]:
    """Of each key column so many values that occur, each as likely as any other, in no order."""
    table = pq.read_table(folder, columns=list(KEYS))
    rng = np.random.default_rng(seed)
    found: dict[str, list[int | str]] = {}
    for key in KEYS:
        values: pa.ChunkedArray = table[key].unique() if key == "ev" else table[key]
        found[key] = values.take(rng.choice(len(values), min(count, len(values)), replace=False)).to_pylist()
    return found
