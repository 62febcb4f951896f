"""Recorded queries that somebody forged: no text of theirs becomes a part of a query."""

import json
from dataclasses import replace

import pytest

from grebe.advisor.recommend.replay import replayed
from grebe.advisor.workload.observed import Joined, Observed, Scan
from grebe.predicate.codec import to_json
from grebe.predicate.parse import parse

SCAN = Scan(
    table="s3://lake/t",
    columns=("a", "b.c"),
    predicate="a = 1",
    tree=to_json(parse("a = 1")),
    groups=("a",),
    aggregates=("sum(b.c)", "count(1)"),
)
OBSERVED = Observed(
    query="q",
    at_ms=0,
    client="c",
    origin="spark",
    call="query",
    shape="",
    digest="d",
    tables=("s3://lake/t",),
    indexes=(),
    milliseconds=1.0,
    limit=None,
    hashed=False,
    scans=(SCAN,),
)


def _texts(*scans: Scan) -> list[str]:
    return [one.sql for one in replayed([replace(OBSERVED, scans=scans)], lambda uri: "named")]


def test_a_recorded_query_is_written_anew() -> None:
    assert _texts(SCAN) == ["SELECT a, sum(b.c), count(1) FROM named WHERE a = 1 GROUP BY a"]


@pytest.mark.parametrize(
    "column",
    [
        "java_method('a', 'b')",
        "1 FROM x; DROP TABLE y",
        "(SELECT 1)",
        "a, reflect('x')",
        "a FROM other",
        "a -- b",
    ],
)
def test_a_column_is_never_more_than_a_name(column: str) -> None:
    """Of one that is not there: then Spark cannot plan the query, and it is left out."""
    name = f"`{column}`"
    assert _texts(replace(SCAN, columns=(column,), groups=(), aggregates=())) in (
        [],
        [f"SELECT {name} FROM named WHERE a = 1"],
    )
    grouped = f"SELECT {name}, count(*) FROM named WHERE a = 1 GROUP BY {name}"
    assert _texts(replace(SCAN, groups=(column,), aggregates=())) in ([], [grouped])
    for text in _texts(replace(SCAN, joins=(Joined(column, "s3://lake/t", "a"),)), replace(SCAN, groups=())):
        assert column not in text.replace(name, "")


@pytest.mark.parametrize(
    "function",
    ["java_method('a', 'b')", "sum(reflect('a'))", "sum((SELECT 1))", "count(1) FROM x", "`java_method`('a')"],
)
def test_a_function_that_is_not_known_is_left_out(function: str) -> None:
    assert _texts(replace(SCAN, aggregates=(function,))) == ["SELECT a, count(*) FROM named WHERE a = 1 GROUP BY a"]


def test_a_predicate_with_a_function_of_any_name_is_left_out() -> None:
    forged = json.loads(to_json(parse("upper(a) = 'x'")))
    text = json.dumps(forged).replace("upper", "java_method")
    assert "java_method" in text
    assert _texts(replace(SCAN, tree=text, groups=(), aggregates=())) == ["SELECT a, b.c FROM named"]
