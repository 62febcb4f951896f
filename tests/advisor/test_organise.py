"""Layouts that the recorded queries ask for: made within a budget, changed as queries change, and never seen in an answer."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import grebe
from grebe.errors import InvalidConfig, InvalidIndex, InvalidStatement
from grebe.maintenance import reorganise
from grebe.maintenance.steps import carried_out
from tests.advisor.rides import FILES, boxes, days, rows, sums
from tests.spark.served import Served

if TYPE_CHECKING:
    pass

pytestmark = [pytest.mark.spark]


def ask(rides: Path, conditions: list[str], columns: Sequence[str] = ("fare",)) -> None:
    """Without Spark, which is recorded just so, and quicker."""
    table = grebe.open(str(rides), config=grebe.Config(record_workload=True))
    for one in conditions:
        table.scan(one, columns)


def test_a_layout_is_learned_from_what_was_asked(served: Served, rides: Path) -> None:
    asked = sums(boxes(1))
    ask(rides, boxes(1)[2:])
    for query in asked[:2]:
        served.run(query)
    table = served.lake.table(str(rides))
    told = table.organise(budget="100%", dry_run=True)
    assert (told.done, table.indexes()) == ("created", [])
    assert told.read_after < 0.2 < told.read_before
    made = table.organise(budget="100%")
    assert made.done == "created"
    info = table.index("layout")
    assert info.kind == "layout"
    assert set(info.columns) == {"lon", "lat"}
    assert 0.6 < made.bytes / info.bytes < 1.6
    whole = sum(file.stat().st_size for file in rides.iterdir())
    for queries in (asked[:2], sums(boxes(2, 4))):
        read = [served.read()["bytes"] for query in queries if served.same(query, "layout").used]
        assert sum(read) < 0.25 * whole * len(queries)
    again = table.organise(budget="100%")
    assert again.done == "nothing"
    assert table.verify(deep=True).ok


def test_as_other_queries_are_asked_the_parts_that_help_most_are_laid_out_anew(served: Served, rides: Path) -> None:
    table = served.lake.table(str(rides))
    ask(rides, [*boxes(1, 30), *days(1, 2)])
    table.organise()
    before = table.index("layout")
    table.forget_workload()
    ask(rides, days(2, 40))
    other = sums(days(2, 40))
    told = table.organise(share=0.6)
    assert told.done == "rewritten", told
    assert told.read_after < told.read_before
    after = table.index("layout")
    assert (after.rows, after.version > before.version) == (before.rows, True)
    for query in (*other[:2], *sums(boxes(1, 1))):
        served.same(query, "layout")
    pq.write_table(rows(9), rides / "more.parquet")
    (rides / "0.parquet").unlink()
    served.view("rides", rides)
    for query in (other[0], *sums(boxes(1, 1))):
        served.same(query, "layout")
    table.refresh()
    for query in (other[0], *sums(boxes(1, 1))):
        served.same(query, "layout")
    assert table.verify(deep=True).ok


def test_answers_are_the_same_while_parts_are_laid_out_anew_and_others_leave_it(
    served: Served, rides: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, other = served.lake.table(str(rides)), served.lake.table(str(rides))
    ask(rides, [*boxes(1, 30), *days(1, 2)])
    table.organise()
    table.forget_workload()
    ask(rides, days(2, 40))
    query = sums(days(2, 1))[0]
    done: list[str] = []

    def disturbed(*given: Any) -> Any:
        """Between what is written and its commit."""
        made = carried_out(*given)
        served.same_rows(query)
        done.append(other.organise(share=0.6).done)
        return made

    monkeypatch.setattr(reorganise, "carried_out", disturbed)
    told = table.organise(share=0.6)
    assert (done, told.done) == (["left"], "rewritten"), str(told)
    served.same_rows(query)

    def killed(*given: Any) -> Any:
        carried_out(*given)
        raise KeyboardInterrupt

    before = table.index("layout")
    table.forget_workload()
    ask(rides, boxes(3, 40))
    monkeypatch.setattr(reorganise, "carried_out", killed)
    with pytest.raises(KeyboardInterrupt):
        table.organise(share=0.6)
    assert table.index("layout") == before
    served.same_rows(query)
    monkeypatch.setattr(reorganise, "carried_out", carried_out)
    assert table.organise(share=0.6).done == "rewritten"
    served.same_rows(sums(boxes(3, 1))[0])
    assert table.verify(deep=True).ok


def test_a_small_budget_takes_a_part(served: Served, rides: Path) -> None:
    ask(rides, [f"day >= DATE '2022-12-{20 + n % 5}' AND lon > {n % 7}" for n in range(30)])
    ask(rides, ["lat > 3"], ["note"])
    table = served.lake.table(str(rides))
    whole = table.organise(dry_run=True)
    part = table.organise(budget=whole.bytes // 4)
    made = table.index("layout")
    assert made.bytes <= whole.bytes // 4
    assert part.bytes <= whole.bytes // 4
    served.same("SELECT sum(fare) FROM rides WHERE day >= DATE '2022-12-24' AND lon > 2", "layout")
    ask(rides, [f"lat > {n % 7} AND lat < {n}" for n in range(20)])
    again = table.organise(budget=whole.bytes // 4)
    assert again.done in ("nothing", "rewritten"), "no other that fits would serve more"
    assert table.index("layout").created_at == made.created_at
    with pytest.raises(InvalidConfig, match=r"\[INVALID_CONFIG_BUDGET\].*too small for any layout"):
        table.organise(budget=100, name="tiny")


def test_what_cannot_be_learned_from_is_told(served: Served, rides: Path) -> None:
    table = served.lake.table(str(rides))
    with pytest.raises(InvalidStatement, match=r"\[INVALID_STATEMENT_WORKLOAD\].*no query with a condition"):
        table.organise()
    served.run("SELECT count(*) FROM rides WHERE note > '0.5'")
    table.create(grebe.Covering("layout", on="day"))
    with pytest.raises(InvalidIndex, match="is of the kind covering"):
        table.organise()
    for number in range(FILES):
        pq.write_table(rows(number).drop_columns(["note"]), rides / f"{number}.parquet")
    with pytest.raises(InvalidStatement, match="no query with a condition"):
        served.lake.table(str(rides)).organise(name="other")
