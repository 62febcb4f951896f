"""Values that are equal in one place and different in another: NULL, NaN, -0.0, blanks, calendars, time zones."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import grebe
from testbed.spark import configured
from tests.spark.served import Served, write

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("spark types")]

NAN = float("nan")


@dataclass(frozen=True)
class Case:
    """Values of one type, and constants to compare them with."""

    type: pa.DataType
    values: list[Any]
    constants: list[str]
    options: dict[str, Any] = field(default_factory=dict)


CASES = {
    # Arrow's statistics leave NaN out, and Spark would pass over files because of that; without them it sees all rows.
    "double": Case(
        pa.float64(),
        [0.0, -0.0, NAN, 1.5, -1.5, float("inf"), -float("inf"), 5e-324, None],
        ["double('NaN')", "-0.0D", "0.0D", "double('-Infinity')"],
        {"write_statistics": False},
    ),
    "float": Case(pa.float32(), [0.0, -0.0, NAN, 1.5, None], ["float('NaN')", "float(-0.0)"], {"write_statistics": False}),
    "decimal": Case(pa.decimal128(9, 2), [Decimal("1.10"), Decimal("-1.10"), Decimal("0.00"), None], ["1.10BD", "1.1BD", "0"]),
    "wide": Case(pa.decimal128(38, 10), [Decimal("1.1"), Decimal("9" * 28 + ".5"), None], ["cast('1.1' as decimal(38,10))"]),
    "text": Case(
        pa.string(),
        ["", "a", "a ", "a  ", "A", "\u00e4", "a\u0308", "\U0001f600", "\uffff", "a\0b", None],
        ["'a'", "'a '", "''", "'\u00e4'", "'\uffff'"],
    ),
    "date": Case(
        pa.date32(),
        [date(1, 1, 1), date(1582, 10, 4), date(1582, 10, 15), date(2024, 2, 29), date(9999, 12, 31), None],
        ["DATE'1582-10-04'", "DATE'0001-01-01'", "DATE'2024-02-29'"],
    ),
    "timestamp": Case(
        pa.timestamp("us", "UTC"),
        [datetime(1500, 3, 1, tzinfo=UTC), datetime(2024, 3, 31, 1, 30, tzinfo=UTC), datetime(2024, 10, 27, 1, 30, 0, 1, UTC)],
        ["TIMESTAMP'2024-03-31 01:30:00Z'", "TIMESTAMP'1500-03-01 00:00:00Z'"],
    ),
    "timestamp_ntz": Case(
        pa.timestamp("us"), [datetime(1500, 3, 1), datetime(2024, 3, 31, 2, 30), None], ["TIMESTAMP_NTZ'2024-03-31 02:30:00'"]
    ),
    "binary": Case(pa.binary(), [b"", b"a", b"\xff\x00", b"a ", None], ["X''", "X'61'", "X'ff00'"]),
    "boolean": Case(pa.bool_(), [True, False, None], ["true", "false"]),
    "integer": Case(pa.int32(), [-(2**31), 2**31 - 1, 0, None], ["-2147483648", "2147483648L"]),
}  # fmt: skip


def _rows(case: Case, shift: int) -> pa.Table:
    count = len(case.values)
    return pa.table(
        {
            "k": pa.array([case.values[(number * 7 + shift) % count] for number in range(60)], case.type),
            "x": pa.array([case.values[(number * 3 + shift) % count] for number in range(60)], case.type),
            "v": pa.array(range(60), pa.int64()),
        }
    )


@pytest.fixture(autouse=True)
def interpreted(served: Served) -> Iterator[None]:
    """Compiling code for queries over sixty rows would take most of the time. Spark 3.5 refuses Arrow's old dates by itself."""
    settings = {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    }
    with configured(served.spark, settings):
        yield


@pytest.mark.parametrize("name", CASES)
def test_an_index_gives_the_rows_that_the_files_give(served: Served, tmp_path: Path, name: str) -> None:
    case = CASES[name]
    place = write(tmp_path / "t", _rows(case, 0), _rows(case, 1), **case.options)
    hashed = grebe.Covering("hashed", on="k", include=["v", "x"], buckets=4)
    ranged = grebe.Covering("ranged", on="k", include=["v", "x"], buckets=0)
    served.lake.table(place).create(hashed, ranged)
    write(tmp_path / "t", _rows(case, 2), **case.options)
    served.view("typed", place)
    compared = [f"k {operator} {constant}" for constant in case.constants for operator in ("=", "<", ">=")]
    compared += [
        "k IS NULL",
        "k IS NOT NULL",
        f"k IN ({', '.join(case.constants)}, NULL)",
        f"NOT (k <=> {case.constants[0]})",
    ]
    filters = " UNION ALL ".join(f"SELECT {n}, v, x FROM typed WHERE {one}" for n, one in enumerate(compared))
    with served.lake.only("hashed"):
        served.same(filters, "hashed")
        served.same("SELECT k, count(*), sum(v), count(x) FROM typed GROUP BY k", "hashed")
        served.same("SELECT a.k, a.v, a.x, b.v AS bv FROM typed a JOIN typed b ON a.k = b.k WHERE a.v < 20", "hashed")
    with served.lake.only("ranged"):
        served.same(filters, "ranged")
        served.same("SELECT min(k) = max(k), max(k) <=> min(x), count(*) FROM typed", "ranged")


def test_instants_are_the_same_in_every_time_zone_of_the_session(served: Served, tmp_path: Path) -> None:
    moments = [datetime(2024, 3, 31, hour, 30, tzinfo=UTC) for hour in range(24)]
    place = write(tmp_path / "t", {"t": pa.array(moments, pa.timestamp("us", "UTC")), "v": range(24)})
    with configured(served.spark, {"spark.sql.session.timeZone": "America/New_York"}):
        served.lake.table(place).create(grebe.Covering("by_time", on="t", include="v"))
    for zone in ("UTC", "Europe/Berlin", "Asia/Kathmandu"):
        with configured(served.spark, {"spark.sql.session.timeZone": zone}):
            query = f"SELECT v, CAST(t AS string) FROM parquet.`{place}` WHERE t >= TIMESTAMP'2024-03-31 03:00:00'"
            served.same(query, "by_time")
            served.same(f"SELECT v FROM parquet.`{place}` WHERE CAST(t AS date) = DATE'2024-03-31'", "by_time")


@pytest.mark.parametrize("mode", ["LEGACY", "EXCEPTION", "CORRECTED"])
def test_old_dates_are_kept_whatever_calendar_the_session_writes(served: Served, tmp_path: Path, mode: str) -> None:
    days = [date(1500, 1, 1), date(1582, 10, 4), date(1582, 10, 10), date(1582, 10, 15), date(2024, 1, 1)]
    at = [datetime(day.year, day.month, day.day, 1, tzinfo=UTC) for day in days]
    place = write(
        tmp_path / "t", {"d": pa.array(days, pa.date32()), "t": pa.array(at, pa.timestamp("us", "UTC")), "v": range(5)}
    )
    with configured(served.spark, {"spark.sql.parquet.datetimeRebaseModeInWrite": mode}):
        served.lake.table(place).create(grebe.Covering("by_day", on="d", include=["t", "v"], buckets=0))
    served.view("old", place)
    served.same("SELECT * FROM old", "by_day")
    served.same("SELECT min(d), max(d) FROM old", "by_day")
    served.same("SELECT v FROM old WHERE d <= DATE'1582-10-04' AND t > TIMESTAMP'1000-01-01 00:00:00'", "by_day")


def test_settings_of_the_parquet_writer_do_not_change_what_an_index_finds(served: Served, tmp_path: Path) -> None:
    prices = pa.array([Decimal(number).scaleb(-2) for number in range(-300, 300)], pa.decimal128(12, 2))
    place = write(tmp_path / "t", {"p": prices, "v": range(600), "l": [[n, n + 1] for n in range(600)]})
    settings = {
        "spark.sql.parquet.writeLegacyFormat": "true",
        "spark.sql.parquet.outputTimestampType": "INT96",
        "spark.sql.files.maxRecordsPerFile": "7",
    }
    with configured(served.spark, settings):
        served.lake.table(place).create(grebe.Covering("by_price", on="p", include=["v", "l"], buckets=0))
    served.view("priced", place)
    served.same("SELECT v, l FROM priced WHERE p BETWEEN -0.05 AND 1.00", "by_price")
    served.same("SELECT p, sum(size(l)) FROM priced GROUP BY p", "by_price")
