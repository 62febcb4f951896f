"""Tables of several types, made once into the cache: what sketches are built of, flights that are reported late, and line items."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.sieve.data import Shape, late_times
from testbed import tpch
from testbed.cached import made_once

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MIXED = """
SELECT
  id * 7 AS order_id,
  xxhash64(id) & 9223372036854775807 AS customer,
  cast(rand(1) * 5000 AS int) AS quantity,
  rand(2) * 1000 + cast(id / 50000 AS int) AS price,
  cast(rand(3) * 100000 AS decimal(12, 2)) AS amount,
  timestamp_micros(1600000000000000 + id * 1000000 - if(rand(4) < 0.02, cast(rand(5) * 2.6e12 AS bigint), 0)) AS at,
  concat('region-', lpad(cast(rand(6) * 200 AS int), 6, '0')) AS region,
  concat('note ', substr(md5(cast(id AS string)), 1, cast(5 + rand(7) * 20 AS int))) AS note
FROM range(0, {rows}, 1, {files})
"""

FIRST_DAY = np.datetime64("2024-01-01", "us")
_FLIGHTS, _CARRIERS, _AIRPORTS = 6_000, 20, 350


def mixed(spark: "SparkSession", rows: int, files: int) -> Path:
    """Eight columns: two longs, an int, a double, a decimal, a timestamp, and two texts of 10 to 30 bytes."""
    query = _MIXED.format(rows=rows, files=files)

    def make(folder: Path) -> None:
        target = folder / "rows"
        spark.sql(query).write.parquet(str(target))
        for file in target.glob("*.parquet"):
            file.rename(folder / file.name)
        for left in target.iterdir():
            left.unlink()
        target.rmdir()

    return made_once(f"sieve/mixed-{rows}-{files}-{hashlib.sha256(query.encode()).hexdigest()[:12]}", make)


def times(rows: int, files: int) -> Path:
    """One column of times in the order of their arrival, some of them late."""
    shape = Shape(files, rows // files)

    def make(folder: Path) -> None:
        for file in range(files):
            keys = late_times(shape, file, np.random.default_rng([1, file]))
            pq.write_table(pa.table({"late": keys}), folder / f"part-{file:05}.parquet", use_dictionary=False)

    return made_once(f"sieve/times-{rows}-{files}", make)


def flights(rows: int, files: int) -> Path:
    """What was reported of flights in the course of a year, file by file as it came in: of two in a hundred up to a month late."""
    shape = Shape(files, rows // files)

    def make(folder: Path) -> None:
        for file in range(files):
            rng = np.random.default_rng([2, file])
            moments = FIRST_DAY + late_times(shape, file, rng).astype("timedelta64[ms]")
            flight = rng.integers(1, _FLIGHTS, shape.rows)
            columns = {
                "event_time": pa.array(moments.astype("datetime64[us]"), pa.timestamp("us", "UTC")),
                "flight": pa.array(flight.astype(np.int32)),
                "carrier": _named("C", flight % _CARRIERS),
                "origin": _named("A", flight % _AIRPORTS),
                "destination": _named("A", flight * 31 % _AIRPORTS),
                "tail": _named("N", rng.integers(0, 5_000, shape.rows)),
                "distance": pa.array((flight * 17 % 5_000).astype(np.int32)),
                "delay": rng.exponential(12, shape.rows),
                "fuel": rng.normal(4_000, 900, shape.rows),
            }
            pq.write_table(pa.table(columns), folder / f"part-{file:05}.parquet")

    return made_once(f"sieve/flights-{rows}-{files}", make)


def _named(letter: str, numbers: np.ndarray) -> pa.Array:
    kinds, places = np.unique(numbers, return_inverse=True)
    names = pa.array([f"{letter}{number:04}" for number in kinds.tolist()])
    return pa.DictionaryArray.from_arrays(pa.array(places.astype(np.int32)), names).cast(pa.string())


def line_items(factor: float, files: int) -> Path:
    """As they are generated, which is in the order of their orders: the days of shipping lie anywhere."""
    return tpch.generate(factor, parts=files, tables=["lineitem"]) / "lineitem"


def thrown_line_items(factor: float, files: int) -> Path:
    """As if they were thrown into the files."""

    def make(folder: Path) -> None:
        import duckdb

        connection = duckdb.connect()
        connection.execute(
            f"CREATE TABLE thrown AS SELECT *, hash(l_orderkey, l_linenumber) AS place"
            f" FROM read_parquet('{line_items(factor, files)}/*.parquet')"
        )
        for number in range(files):
            rows = f"SELECT * EXCLUDE place FROM thrown WHERE place % {files} = {number} ORDER BY place"
            target = folder / f"part-{number:05}.parquet"
            connection.execute(f"COPY ({rows}) TO '{target}' (FORMAT parquet, COMPRESSION snappy)")

    return made_once(f"sieve/thrown-line-items-{factor:g}-{files}", make)
