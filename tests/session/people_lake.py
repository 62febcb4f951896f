"""A small table of people with every type of column, and lookup indexes on some of them: shared by the tests of lookups."""

import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from grebe.indexes.lookup.spec import Lookup
from grebe.session.lake_table import LakeTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES, PEOPLE = 3, 300


def people(first: int, count: int) -> pa.Table:
    """Person 7 has no email, and of every ten one has a score that is no number."""
    numbers = range(first, first + count)
    moment = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    cities = [{"city": f"city {n % 50}", "zip": n % 1000} for n in numbers]
    return pa.table(
        {
            "id": pa.array([n - 1 for n in numbers], pa.int64()),
            "email": pa.array([None if n == 7 else f"p{n}@example.org" for n in numbers]),
            "amount": pa.array([Decimal(n * 25).scaleb(-2) for n in numbers], pa.decimal128(12, 2)),
            "born": pa.array([datetime.date(1970, 1, 1) + datetime.timedelta(n) for n in numbers]),
            "seen": pa.array([moment + datetime.timedelta(hours=n) for n in numbers], pa.timestamp("us", "UTC")),
            "score": pa.array([float("nan") if n % 10 == 0 else n / 4 for n in numbers]),
            "raw": pa.array([bytes([n % 256, 255]) for n in numbers]),
            "address": pa.array(cities, pa.struct({"city": pa.string(), "zip": pa.int32()})),
            "tags": pa.array([[f"p{n}@example.org"] for n in numbers]),
        }
    )


def write_people(folder: Path) -> str:
    folder.mkdir(parents=True)
    each = PEOPLE // FILES
    for number in range(FILES):
        pq.write_table(people(number * each, each), folder / f"part-{number}.parquet")
    return str(folder)


def indexed_people(spark: "SparkSession", folder: Path) -> str:
    table = write_people(folder)
    kinds = (Lookup("by_id", on="id"), Lookup("by_email", on="email"), Lookup("by_city", on="address.city"))
    LakeTable(spark, table).create(*kinds)
    return table
