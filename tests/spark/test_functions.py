"""Functions of columns in Spark's own plans: read as the text is read, and files are left out by them, but no rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import grebe
from grebe.planner.choose import choose
from grebe.planner.query import Query
from grebe.predicate.bind import bind
from grebe.predicate.normalise import normalise
from grebe.predicate.parse import parse
from grebe.predicate.text import to_sql
from grebe.predicate.tree import And, Call, IsNotNull, Predicate, opaque_terms
from testbed.spark import configured
from tests.spark.served import LENIENT, Served, serving, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("spark functions")]

MONTHS = 12
DAY_MICROS = 86_400_000_000
FIRST = date(2020, 1, 1)


def month(number: int) -> pa.Table:
    """The days of one month of 2020 and some numbers of its own."""
    days = [FIRST + timedelta(n) for n in range(366) if (FIRST + timedelta(n)).month == number + 1]
    rows = range(len(days))
    since = [(day - date(1970, 1, 1)).days for day in days]
    moments = pa.array([day * DAY_MICROS + 12 * DAY_MICROS // 24 for day in since], pa.int64())
    numbers = [100 * number + row for row in rows]
    return pa.table(
        {
            "a": pa.array(numbers, pa.int32()),
            "t": pa.array([number - 6] * len(rows), pa.int8()),
            "p": pa.array([Decimal(n) / 4 for n in numbers], pa.decimal128(9, 2)),
            "d": pa.array(days, pa.date32()),
            "ts": moments.view(pa.timestamp("us", "UTC")),
            "n": moments.view(pa.timestamp("us")),
            "s": pa.array([f"m{number:02d}-{row:02d} end{number}" for row in rows]),
            "st": pa.StructArray.from_arrays([pa.array(numbers, pa.int64())], ["x"]),
        }
    )


@dataclass(frozen=True)
class Lake:
    served: Served
    queries: list[Query]
    """What was asked of the planner."""

    def predicate(self, where: str) -> Predicate:
        """As it is read from the optimised plan."""
        self.queries.clear()
        self.served.frame(f"SELECT * FROM months WHERE {where}")._jdf.queryExecution().optimizedPlan()
        return self.queries[-1].relations[0].predicate

    def files(self, where: str, *used: str) -> int:
        self.served.same(f"SELECT * FROM months WHERE {where}", *used)
        return self.served.read()["files"]


@pytest.fixture(scope="module")
def lake(spark: "SparkSession", folder: Path) -> Iterator[Lake]:
    queries: list[Query] = []

    def noting(query: Query, *arguments: Any, **named: Any) -> Any:
        queries.append(query)
        return choose(query, *arguments, **named)

    settings = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    with pytest.MonkeyPatch.context() as patched, configured(spark, settings), serving(spark, LENIENT) as served:
        patched.setattr("tests.spark.served.choose", noting)
        place = write(folder / "months", *map(month, range(MONTHS)))
        kinds = [grebe.Lookup(f"by_{name}", on=name) for name in ("a", "p", "d", "ts", "s")]
        served.lake.table(place).create(*kinds, grebe.Lookup("by_x", on="st.x"))
        served.view("months", place)
        yield Lake(served, queries)


ALIKE = [
    *(
        "year(d) = 2020",
        "year(ts) > 2019",
        "year(n) IN (2018, 2020)",
        "extract(YEAR FROM d) = 2020",
        "year(d) + 1 = 2021",
    ),
    *(
        "date_trunc('MONTH', ts) = TIMESTAMP '2020-03-01 00:00:00'",
        "date_trunc('week', d) < TIMESTAMP '2020-03-02 00:00:00'",
    ),
    *(
        "trunc(d, 'MM') >= DATE '2020-05-01'",
        "trunc(ts, 'quarter') = DATE '2020-04-01'",
        "to_date(n) = DATE '2020-02-29'",
    ),
    *("left(s, 3) = 'm03'", "substring(s, 1, 3) > 'm03'", "substr(s, 1, 2) <> 'm1'", "left(s, 4) IN ('m01-', 'm05-')"),
    *("a + 5 = 105", "5 + a < 105", "a - 3 >= 17", "7 - a > 0", "-a <= -300", "a * 3 = 9", "1L + a = 5", "t + 1 = 3"),
    *(
        "p + 1.5 > 30",
        "p * 2.5 = 10",
        "1 - p < 0",
        "-p < -5",
        "a + 0.5 = 100.5",
        "t * 1.25 > 2",
        "st.x + 1 = 17",
        "a * 2 > 7.5",
    ),
    *("d + 5 = DATE '2020-03-04'", "date_add(d, 30) < DATE '2020-02-15'", "date_sub(ts, 3) >= DATE '2020-11-11'"),
    *("unix_seconds(ts) < 1580000000", "unix_millis(ts) = 1580000000000", "unix_micros(ts) > 1580000000000000"),
    *("s LIKE '%end1%1'", "s LIKE '%end11'", "1 + d > DATE '2020-12-01'", "a + t = 5", "a % 2 = 1"),
]


def without_null_checks(predicate: Predicate) -> Predicate:
    """Spark adds that columns are not NULL."""
    parts = predicate.predicates if isinstance(predicate, And) else (predicate,)
    return normalise(And(tuple(part for part in parts if not isinstance(part, IsNotNull))))


@pytest.mark.parametrize(("time_zone", "ansi"), [("UTC", True), ("America/New_York", False)], ids=["ansi", "legacy"])
def test_the_plan_and_the_text_are_understood_alike(lake: Lake, time_zone: str, ansi: bool) -> None:
    schema = month(0).schema
    settings = {"spark.sql.session.timeZone": time_zone, "spark.sql.ansi.enabled": str(ansi).lower()}
    with configured(lake.served.spark, settings):
        for where in ALIKE:
            text = without_null_checks(normalise(bind(parse(where), schema, time_zone=time_zone, ansi=ansi)))
            plan = without_null_checks(lake.predicate(where))
            if all(isinstance(term, Call) for term in opaque_terms(text)):
                assert plan == text, (where, to_sql(plan), to_sql(text))
            else:  # what is not understood has the user's words here and Catalyst's there
                assert [set(term.columns) for term in opaque_terms(plan)] == [
                    set(t.columns) for t in opaque_terms(text)
                ]


CASES = {
    "year(ts) = 2019": ("by_ts", 0, 0),
    "date_trunc('month', ts) = TIMESTAMP '2020-03-01 00:00:00'": ("by_ts", 1, 3),
    "date_trunc('day', ts) IN (TIMESTAMP '2020-06-15 00:00:00', TIMESTAMP '2020-09-15 00:00:00')": ("by_ts", 2, 2),
    "CAST(ts AS DATE) = DATE '2020-06-15'": ("by_ts", 1, 1),
    "trunc(d, 'QUARTER') = DATE '2020-04-01'": ("by_d", 3, 3),
    "date_add(d, 31) < DATE '2020-02-15'": ("by_d", 1, 1),
    "substring(s, 1, 3) BETWEEN 'm03' AND 'm05'": ("by_s", 3, 3),
    "a + 1 = 305": ("by_a", 1, 1),
    "p - 0.5 = 25": ("by_p", 1, 1),
    "st.x - 1 IN (300, 1000)": ("by_x", 2, 2),
}
"""Which index serves, and how many files are read at most: in UTC, and where clocks change."""


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Apia"])
def test_files_are_left_out_by_functions_of_columns(lake: Lake, zone: str) -> None:
    with configured(lake.served.spark, {"spark.sql.session.timeZone": zone}):
        for where, (index, files, files_elsewhere) in CASES.items():
            if zone == "UTC" or index == "by_ts":
                with lake.served.lake.only(index):
                    assert lake.files(where, index) <= (files if zone == "UTC" else files_elsewhere), where


def test_an_index_does_not_keep_an_overflow_from_being_an_error(lake: Lake, folder: Path) -> None:
    served = lake.served
    place = write(folder / "ends", {"a": pa.array([1, 2], pa.int32())}, {"a": pa.array([2**31 - 1, 5], pa.int32())})
    served.lake.table(place).create(grebe.Lookup("by_a", on="a"))
    served.view("ends", place)
    with configured(served.spark, {"spark.sql.ansi.enabled": "true"}):
        served.same("SELECT a FROM ends WHERE a - 1 = 0", "by_a")
        assert served.read()["files"] == 1
        for query in ("SELECT a FROM ends WHERE a + 1 = 3", "SELECT a FROM ends WHERE a * 2 = 2"):
            for asked in (served.plain, served.run):
                with pytest.raises(Exception, match="overflow"):
                    asked(query)
    with configured(served.spark, {"spark.sql.ansi.enabled": "false"}):
        served.same("SELECT a FROM ends WHERE a + 1 = 3", "by_a")
        served.same("SELECT a FROM ends WHERE a + 1 < 0", "by_a")


def test_blanks_of_padded_text_are_as_spark_has_them(lake: Lake, spark: "SparkSession") -> None:
    served = lake.served
    spark.sql("CREATE TABLE padded (k INT, c CHAR(5), v VARCHAR(5)) USING parquet")
    try:
        spark.sql("INSERT INTO padded VALUES (1, 'ab', 'ab'), (2, 'ab   ', 'ab '), (3, 'x', 'x'), (4, NULL, NULL)")
        spark.sql("INSERT INTO padded VALUES (5, 'zz', 'zz'), (6, 'zz  ', 'zz  ')")
        served.lake.table("padded").create(grebe.Lookup("by_c", on="c"), grebe.Lookup("by_v", on="v"))
        asked = [
            *(
                "c = 'ab'",
                "c = 'ab   '",
                "c IN ('ab', 'zz')",
                "c LIKE 'ab%'",
                "c LIKE 'ab'",
                "left(c, 2) = 'ab'",
                "c >= 'ab '",
            ),
            *("v = 'ab'", "v = 'ab '", "v IN ('ab', 'zz')", "v LIKE 'ab_'", "left(v, 3) = 'ab '", "v > 'ab'", "c = v"),
        ]
        for padding in ("true", "false"):
            with configured(spark, {"spark.sql.readSideCharPadding": padding}):
                query = all_of("padded", asked)
                seen = served.run(query)
                assert seen.rows == served.plain(query).rows
                assert "by_v" in seen.used
    finally:
        spark.sql("DROP TABLE padded")


def test_text_in_another_order_is_not_understood(lake: Lake, spark: "SparkSession") -> None:
    if spark.version < "4":
        pytest.skip("Spark 3.5 has one collation")
    served = lake.served
    text = "STRING COLLATE UTF8_LCASE"
    spark.sql(f"CREATE TABLE collated (k INT, c {text}, st STRUCT<x: {text}>) USING parquet")
    try:
        spark.sql("INSERT INTO collated SELECT id, 'ab', named_struct('x', 'ab') FROM range(3)")
        spark.sql("INSERT INTO collated SELECT id, 'AB', named_struct('x', 'AB') FROM range(3)")
        served.lake.table("collated").create(grebe.Lookup("by_k", on="k"))
        either_case = [
            "c = 'AB'",
            "left(c, 1) = 'A'",
            "c LIKE 'A%b'",
            "st.x = 'AB'",
            "left(st.x, 1) = 'A'",
            "st.x > 'aA'",
        ]
        seen = served.run(all_of("collated", [f"k = 1 AND {where}" for where in either_case]))
        assert "by_k" in seen.used
        assert seen.rows.total() == 2 * len(either_case)
        for relation in lake.queries[-1].relations:
            assert {path[0] for term in opaque_terms(relation.predicate) for path in term.columns} in ({"c"}, {"st"})
    finally:
        spark.sql("DROP TABLE collated")


def all_of(table: str, conditions: Sequence[str]) -> str:
    return " UNION ALL ".join(f"SELECT {n}, * FROM {table} WHERE {one}" for n, one in enumerate(conditions))
