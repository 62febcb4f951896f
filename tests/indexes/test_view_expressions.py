"""Expressions of views and conditions of indexes as the log holds them: our own parser reads them, by a list of functions."""

import pytest

from grebe.errors import CorruptIndex
from grebe.formats import Column, Reading
from grebe.indexes import where
from grebe.indexes.view.allowed import AGGREGATES, FUNCTIONS
from grebe.indexes.view.expressions import parsed
from grebe.indexes.view.nodes import Refused

DANGEROUS = [
    "java_method('java.lang.System', 'exit', 1)",
    "JAVA_METHOD('a', 'b')",
    "`java_method`('a', 'b')",
    "reflect('a', 'b')",
    "try_reflect('a', 'b')",
    "(SELECT 1)",
    "EXISTS (SELECT 1)",
    "t0.a IN (SELECT 1)",
    "abs(java_method('a', 'b'))",
    "CAST(reflect('a') AS STRING)",
    "CASE WHEN reflect('a') = 1 THEN 1 END",
    "t0.a[reflect('x')]",
    "transform(array(1), x -> java_method('a', 'b'))",
    "from_json(t0.a, 'a INT')",
    "session_user()",
    "input_file_name()",
    "spark_catalog.default.f(t0.a)",
    "read_files('/etc')",
    "uuid()",
    "t0.a; DROP TABLE x",
    "t0.a -- \n; DROP TABLE x; (",
    "other.a",
    "t7.a",
    "a",
    "CAST(t0.a AS STRUCT<a: INT>)",
    "CAST(t0.a AS STRING) AS b",
    "sum(t0.a) OVER (ORDER BY 1)",
    "",
    "(",
    "(" * 5_000 + "1" + ")" * 5_000,
    "x" * 300_000,
    "1" + "+1" * 5_000,
    "- " * 500 + "t0.a",
    "1e99999999999999999999bd",
    "t0.a = 1e99999999bd",
    "-1e-99bd",
    "." + "1" * 50,
]


@pytest.mark.parametrize("text", DANGEROUS, ids=lambda text: text[:40])
def test_what_could_run_anything_is_no_expression_of_a_view(text: str) -> None:
    for aggregates in (False, True):
        with pytest.raises(Refused):
            parsed(text, 2, aggregates)


def test_functions_of_a_group_stand_in_measures_only() -> None:
    assert parsed("count(1)", 1, True) is not None
    with pytest.raises(Refused, match="the function count"):
        parsed("count(1)", 1)


def test_no_function_on_the_list_runs_code_reads_files_or_tells_the_time() -> None:
    parts = [
        "java",
        "reflect",
        "current",
        "now",
        "rand",
        "uuid",
        "file",
        "user",
        "session",
        "version",
        "schema",
        "xml",
        "json",
        "csv",
    ]
    assert not [name for name in FUNCTIONS | AGGREGATES for part in parts if part in name]


@pytest.mark.parametrize(
    "condition",
    [
        "java_method('a', 'b') = 1",
        "a >= 0 AND reflect('x') IS NULL",
        "a IN (SELECT 1)",
        "b = 1",
        "a = ",
        "",
        "a = 1; DROP TABLE x",
    ],
)
def test_a_condition_that_only_spark_would_understand_is_none(condition: str) -> None:
    reading = Reading.of("parquet", {}, [Column("a", "long")], "UTC", local_times=False)
    with pytest.raises(CorruptIndex) as refused:
        where.recalled(condition, reading)
    assert refused.value.code == "CORRUPT_INDEX_WHERE"
