"""Whatever breaks, in Grebe or on the lake: the query is answered as if there were no Grebe."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import grebe
from grebe.spark import rewrite
from tests.spark.data import rows
from tests.spark.served import Served, multiset, write
from tests.spark.streams import forget_ends

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("spark failures")]

QUERY = "SELECT k, sum(v), count(*) FROM {0} WHERE w < 6 GROUP BY k"


@pytest.fixture
def table(served: Served, tmp_path: Path) -> Iterator[str]:
    """Its name; it has the indexes first and second."""
    name = f"t_{tmp_path.name}"
    served.view(name, write(tmp_path / "t", rows(500, 1), rows(400, 2)))
    served.lake.table(str(tmp_path / "t")).create(
        grebe.Covering("first", on="k", include=["v", "w"], buckets=4),
        grebe.Covering("second", on="k", include=["v", "w", "s"], buckets=4),
    )
    yield name
    served.spark.catalog.dropTempView(name)


def _answers_in_spite_of(served: Served, query: str, failures: int) -> str:
    """The right rows, so many failures counted; gives the newest."""
    expected = served.plain(query).rows
    before = served.counters()
    assert multiset(served.spark.sql(query).collect()) == expected
    after = served.counters()
    assert after["rewritten"] == before["rewritten"]
    assert after["failed"] - before["failed"] >= failures
    return str(after["last_failure"])


def test_a_planner_that_fails_leaves_the_plan_and_says_so_once(
    served: Served, table: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*arguments: Any, **named: Any) -> None:
        raise ZeroDivisionError("a value of the user's")

    monkeypatch.setattr("grebe.spark.planning.choose", broken)
    with caplog.at_level(logging.WARNING, "grebe"):
        said = _answers_in_spite_of(served, QUERY.format(table), 1)
    assert "ZeroDivisionError" in said
    assert "value of the user's" not in said
    told = {record.getMessage().rpartition(":")[0] for record in caplog.records}
    assert told == {"event=planning_failed error=ZeroDivisionError where=test_failures.py"}
    assert "value of the user's" not in caplog.text
    monkeypatch.undo()


@pytest.mark.parametrize(
    "garbage",
    [
        "no json at all",
        "{}",
        '{"stand_ins": [{"relation": 99}], "answers": []}',
        '{"stand_ins": [], "answers": [{"relation": 0, "values": ["x"]}]}',
    ],
)
def test_an_answer_that_makes_no_sense_is_not_carried_out(
    served: Served, table: str, monkeypatch: pytest.MonkeyPatch, garbage: str
) -> None:
    monkeypatch.setattr("grebe.spark.planning.rewrite.to_text", lambda *arguments: garbage)
    _answers_in_spite_of(served, QUERY.format(table), 1)


@pytest.mark.parametrize(
    ("said", "instead"),
    [('"c1"', '"c9"'), ('"bigint"', '"string"'), ('"long"', '"string"'), ('"buckets": 4', '"buckets": 3')],
)
def test_a_decision_with_wrong_columns_or_types_is_noticed(
    served: Served, table: str, monkeypatch: pytest.MonkeyPatch, said: str, instead: str
) -> None:
    right = rewrite.to_text
    texts: list[str] = []

    def wrong(*arguments: Any) -> str:
        texts.append(right(*arguments))
        return texts[-1].replace(said, instead).replace(said.replace('"', '\\"'), instead.replace('"', '\\"'))

    monkeypatch.setattr("grebe.spark.planning.rewrite.to_text", wrong)
    expected = served.plain(QUERY.format(table)).rows
    assert multiset(served.spark.sql(QUERY.format(table)).collect()) == expected
    assert texts


def _content(tmp_path: Path, index: str) -> list[Path]:
    return sorted((tmp_path / "_grebe" / "t" / "data" / index).rglob("*_*.gix"))


def test_files_that_are_gone_before_planning_send_the_query_to_the_next_index(
    served: Served, table: str, tmp_path: Path
) -> None:
    with served.lake.only("first"):
        served.same(QUERY.format(table), "first")
    for file in _content(tmp_path, "first"):
        file.unlink()
    served.same(QUERY.format(table), "second")


@pytest.mark.parametrize("damage", ["gone", "cut", "garbage"])
def test_a_file_lost_while_the_query_runs_is_named_and_the_second_run_succeeds(
    served: Served, table: str, tmp_path: Path, damage: str
) -> None:
    query = QUERY.format(table)
    served.same(query, *served.run(query).used)
    used = served.run(query).used[0]
    frame = served.spark.sql(query)
    frame._jdf.queryExecution().executedPlan()
    for file in _content(tmp_path, used):
        if damage == "gone":
            file.unlink()
        else:
            whole = file.read_bytes()
            file.write_bytes(whole[: len(whole) // 2] if damage == "cut" else b"x" * len(whole))
    forget_ends(served)
    with pytest.raises(Exception, match=rf"\[CORRUPT_INDEX_\w+\] .*gix of index {used} "):
        frame.collect()
    expected = served.plain(query).rows
    assert multiset(served.spark.sql(query).collect()) == expected
    assert used in {reason.index for reason in served.lake.why_not(query)}
    served.lake.table(str(tmp_path / "t")).refresh(mode="full")
    served.same(query, *served.run(query).used)


@pytest.mark.parametrize("damage", ["directory", "log", "hint and log", "folder"])
def test_a_damaged_log_is_no_reason_for_a_query_to_fail(
    served: Served, table: str, tmp_path: Path, damage: str
) -> None:
    folder = tmp_path / "_grebe" / "t"
    query = QUERY.format(table)
    match damage:
        case "directory":
            for file in (folder / "data").rglob("*"):
                if file.name == "directory.gix":
                    file.write_bytes(b"x")
        case "log":
            for file in (folder / "log").glob("0*.json"):
                file.write_bytes(b"{")
        case "hint and log":
            for file in (folder / "log").iterdir():
                file.write_bytes(b"{")
        case _:
            import shutil

            shutil.rmtree(folder)
    lake = grebe.attach(served.spark, grebe.Config(hybrid_max_appended=1.0))
    expected = served.plain(query).rows
    assert multiset(served.spark.sql(query).collect()) == expected
    assert lake.explain(query).to_dict()["used"] == [] or damage == "log"
