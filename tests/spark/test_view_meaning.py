"""What a view holds is what its query gives, also where Spark's SQL does not say all that an expression is."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import grebe
from grebe.errors import InvalidIndex
from grebe.indexes.view.trees import attempts_in
from testbed.spark import configured
from tests.spark.served import Served, serving

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core]
ROWS = """
    SELECT * FROM VALUES
    (1, 1, 2147483647, 9223372036854775807L, array(1, 2), CAST(1.25 AS DECIMAL(10,2)),
        CAST('99999999999999999999999999999.123456789' AS DECIMAL(38,9)), CAST('9' || repeat('0', 37) AS DECIMAL(38,0))),
    (2, 1, 5, 5L, array(7), CAST(3.33 AS DECIMAL(10,2)),
        CAST('0.000000004' AS DECIMAL(38,9)), CAST('9' || repeat('0', 37) AS DECIMAL(38,0)))
    AS t(k, g, i, l, a, n, w, h)
"""
NOT_SAID = [
    "try_add(i, 1)",
    "try_add(l, 1L)",
    "try_subtract(-l, 9L)",
    "try_multiply(i, 2)",
    "try_divide(k, k - 1)",
    "nullif(try_divide(k, k - 1), 0)",
]
"""Spark writes them as it does others that give something else."""
SAID = [
    "n * CAST(1.5 AS DECIMAL(38,10))",
    "w + CAST(0 AS DECIMAL(38,2))",
    "n / CAST(3 AS DECIMAL(38,5))",
    "n * CAST(2 AS DECIMAL(20,0))",
    "w * CAST(0.1 AS DECIMAL(38,1))",
    "CASE WHEN k > 1 THEN 1 WHEN k < 0 THEN 2.5 END",
    "try_cast(concat('x', k) AS INT)",
    "l + -9223372036854775808L",
]
_PRECISION = "spark.sql.decimalOperations.allowPrecisionLoss"
MODES = {"ANSI": "true", "not ANSI": "false"}


@pytest.fixture(scope="module")
def served(spark: "SparkSession") -> Iterator[Served]:
    with serving(spark) as made:
        yield made


@pytest.fixture
def table(served: Served, tmp_path: Path) -> str:
    served.spark.sql(ROWS).coalesce(1).write.parquet(str(tmp_path / "t"))
    return str(tmp_path / "t")


def shapes(what: str, table: str) -> dict[str, list[str]]:
    source = f"parquet.`{table}`"
    return {
        f"SELECT k, {what} AS x FROM {source}": [
            f"SELECT k, {what} AS x FROM {source}",
            f"SELECT k FROM {source} WHERE {what} IS NULL",
            f"SELECT k, {what} AS x FROM {source} WHERE {what} > 0.1",
        ],
        f"SELECT g, sum({what}), max({what}) FROM {source} GROUP BY g": [
            f"SELECT sum({what}) FROM {source}",
            f"SELECT g, max({what}) FROM {source} GROUP BY g",
        ],
        f"SELECT k FROM {source} WHERE {what} IS NULL": [f"SELECT k FROM {source} WHERE {what} IS NULL"],
    }


@pytest.mark.parametrize("mode", MODES)
def test_a_view_is_refused_where_its_sql_would_mean_something_else(served: Served, table: str, mode: str) -> None:
    with configured(served.spark, {"spark.sql.ansi.enabled": MODES[mode]}):
        for number, what in enumerate(NOT_SAID):
            for shape, view in enumerate(shapes(what, table)):
                with pytest.raises(InvalidIndex) as refused:
                    served.lake.table(table).create(grebe.View(f"v{number}{shape}", view))
                assert refused.value.code == "INVALID_INDEX_VIEW_FUNCTION", what


@pytest.mark.parametrize("mode", MODES)
def test_a_view_gives_what_its_query_gives(served: Served, table: str, mode: str) -> None:
    with configured(served.spark, {"spark.sql.ansi.enabled": MODES[mode]}):
        for number, what in enumerate(SAID):
            for shape, (view, queries) in enumerate(shapes(what, table).items()):
                name = f"v{number}{shape}"
                served.lake.table(table).create(grebe.View(name, view))
                for query in (view, *queries):
                    served.same(query, name)
                served.lake.table(table).delete(name)


def test_sums_that_may_fail_in_silence_are_refused(served: Served, table: str) -> None:
    for what in ("try_sum(l)", "try_avg(l)"):
        with pytest.raises(InvalidIndex) as refused:
            served.lake.table(table).create(grebe.View("v", f"SELECT g, {what} FROM parquet.`{table}` GROUP BY g"))
        assert refused.value.code == "INVALID_INDEX_VIEW_AGGREGATE"


def test_an_average_whose_sum_does_not_fit_is_null_with_a_view_too(served: Served, table: str) -> None:
    source = f"parquet.`{table}`"
    with configured(served.spark, {"spark.sql.ansi.enabled": "false"}):
        served.lake.table(table).create(grebe.View("v", f"SELECT k, g, avg(h), avg(n) FROM {source} GROUP BY k, g"))
        served.same(f"SELECT avg(h) FROM {source}", "v")
        served.same(f"SELECT g, avg(h), avg(n) FROM {source} GROUP BY g", "v")
        assert served.spark.sql(f"SELECT avg(h) FROM {source}").collect() == [(None,)]


# A view, a setting, and its value in a session where the words of the view mean something else.
ELSEWHERE = {
    "products": ("SELECT k, CAST(w * n AS STRING) AS x FROM {0}", _PRECISION, "false"),
    "products in a condition": (
        "SELECT g, count(*) AS c FROM {0} WHERE CAST(w / n AS STRING) > '2' GROUP BY g",
        _PRECISION,
        "false",
    ),
    "products in an aggregate": ("SELECT g, min(CAST(w / n AS STRING)) AS x FROM {0} GROUP BY g", _PRECISION, "false"),
    "averages of products": (
        "SELECT g, avg(length(CAST(w / n AS STRING))) AS x FROM {0} GROUP BY g",
        _PRECISION,
        "false",
    ),
    "sizes": ("SELECT size(a) AS x, count(*) AS c FROM {0} GROUP BY size(a)", "spark.sql.legacy.sizeOfNull", "false"),
}


@pytest.mark.parametrize("what", ELSEWHERE)
def test_a_view_is_not_refreshed_where_its_words_mean_something_else(served: Served, table: str, what: str) -> None:
    text, setting, value = ELSEWHERE[what]
    query = text.format(f"parquet.`{table}`")
    with configured(served.spark, {"spark.sql.ansi.enabled": "false"}):
        lake_table = served.lake.table(table)
        lake_table.create(grebe.View("v", query), grebe.Lookup("k", on="k"))
        served.spark.sql(ROWS).coalesce(1).write.mode("append").parquet(table)
        with configured(served.spark, {setting: value}):
            for mode in ("incremental", "full", "quick"):
                lake_table.refresh(mode=mode)
                assert "means something else" in lake_table.index("v").problem
        assert lake_table.index("k").files_stale == 0
        served.same(query, "v")
        lake_table.refresh()
        assert (lake_table.index("v").files_stale, lake_table.index("v").problem) == (0, "")
        served.same(query, "v")


@pytest.mark.parametrize("what", ["a", "named_struct('x', k)", "map('k', k)"])
def test_what_no_view_can_hold_is_refused_before_anything_is_built(served: Served, table: str, what: str) -> None:
    with pytest.raises(InvalidIndex) as refused:
        served.lake.table(table).create(grebe.View("v", f"SELECT k, {what} AS x FROM parquet.`{table}`"))
    assert refused.value.code == "INVALID_INDEX_VIEW_KEY_TYPE"


SUM = "Sum(_,NumericEvalContext({},true),)"


def test_a_view_that_was_stored_with_such_an_operation_is_not_used() -> None:
    assert attempts_in([SUM.format("TRY"), '"long"', ["@", 0, "l"]])
    assert attempts_in(
        ["IsNull(_,)", '"boolean"', ["Add(_,_,TRY,)", '"integer"', ["@", 0, "i"], ["Literal(1)", '"integer"']]]
    )
    assert not attempts_in(["Cast(_,IntegerType,<UTC,>,TRY,)", '"integer"', ["@", 0, "s"]])
    assert not attempts_in(["Literal((,TRY,))", '"string"'])
    assert not attempts_in([SUM.format("ANSI"), '"long"', ["@", 0, "l"]])
