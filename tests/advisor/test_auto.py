"""Indexes that come and go by themselves: within a budget, for a reason that stands in the history, and never seen in an answer."""

import itertools
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest

import grebe
from grebe.advisor.auto.paying import paid_by
from grebe.advisor.auto.report import AutoReport
from grebe.advisor.measured.scales import pace_of, scales_of
from grebe.advisor.organise.regret import regret_of
from grebe.advisor.workload import blocks
from grebe.advisor.workload.observed import Observed, Scan, from_table, to_table
from grebe.clock import SYSTEM
from grebe.errors import InvalidConfig, Unsupported
from grebe.files import canonical_uri
from grebe.log.entry import NO_FILES, IndexSpec, Measured, Prediction
from grebe.log.location import beside
from grebe.log.states import ACTIVE, IndexState, TableState
from grebe.session.lake_table import LakeTable
from grebe.store.opening import open_store
from tests.advisor.rides import boxes, rows, sums
from tests.spark.served import Served

if TYPE_CHECKING:
    pass


def _index(name: str = "auto_i", **more: object) -> IndexState:
    state = IndexState(name, IndexSpec("covering", ("a",)), ACTIVE, 0, (), NO_FILES, "", 1000, 1000)
    return replace(state, **more)  # type: ignore[arg-type]


_numbers = itertools.count()


def _asked(
    milliseconds: float, *indexes: str, at_ms: int = 2000, expected: tuple[float, float] | None = None, shape: str = "s"
) -> Observed:
    scan = Scan(table="t", columns=("a",), predicate="a = 1", tree=None, bytes=10, bytes_of=1000)
    without, with_them = expected or (None, None)
    return Observed(
        query=str(next(_numbers)),
        at_ms=at_ms,
        client="c",
        origin="spark",
        call="query",
        shape=shape,
        digest=shape,
        tables=("t",),
        indexes=indexes,
        milliseconds=milliseconds,
        limit=None,
        hashed=False,
        scans=(scan,),
        expected_without=without,
        expected=with_them,
    )


def test_an_index_has_saved_what_queries_alike_take_without_it() -> None:
    plain = [_asked(100.0, at_ms=500) for _ in range(3)]
    with_it = [_asked(10.0, "auto_i") for _ in range(60)]
    paid = paid_by(_index(), [*plain, *with_it])
    assert (paid.queries, paid.used, paid.complaint) == (60, 60, None)
    assert paid.saved_seconds == pytest.approx(60 * 0.09)


def test_where_no_query_went_without_the_planner_says_what_it_would_have_taken() -> None:
    paid = paid_by(_index(), [_asked(10.0, "auto_i", "other", expected=(500.0, 100.0)) for _ in range(50)])
    assert paid.saved_seconds == pytest.approx(50 * 0.040 / 2)


def test_what_is_no_longer_used_or_costs_more_than_it_saves_does_not_pay() -> None:
    used, unused = [_asked(10.0, "auto_i", expected=(20.0, 10.0))] * 60, [_asked(10.0, at_ms=3000)] * 50
    assert paid_by(_index(), unused[:49]).complaint is None, "too few to tell"
    assert paid_by(_index(), [*used, *unused]).complaint == "none of the last 50 queries used it"
    assert paid_by(_index(upkeep_seconds=0.5), used).complaint is None
    assert "its upkeep took 0.7 s" in (paid_by(_index(upkeep_seconds=0.7), used).complaint or "")


def test_laying_out_anew_is_due_once_as_much_was_lost_as_it_costs() -> None:
    lost = np.full(10, 0.5)
    asked = [(1000 - n, 2.0) for n in range(10)]
    regret = regret_of(asked, lost, read_seconds=3.0, price=20.0)
    assert regret.moments == tuple(range(991, 1001))
    assert regret.seconds[0] == pytest.approx(3.0)
    assert regret.lost == pytest.approx(30.0)
    assert regret.is_due
    assert not regret_of(asked, lost, read_seconds=1.0, price=20.0).is_due
    assert not regret_of([], np.zeros(0), 1.0, 0.0).is_due
    assert regret.picture().startswith("<svg")


def test_measured_builds_and_queries_make_the_next_predictions_better() -> None:
    def built(name: str, bytes: int, seconds: float, told: Prediction) -> IndexState:
        return _index(name, measured=Measured(told, bytes, seconds))

    first = TableState(indexes={"a": built("a", 200, 8.0, Prediction(100, 2.0))})
    learned = scales_of(first).predicted("covering", 100, 2.0)
    assert learned.bytes == 141, "one build moves it half of the way"
    assert learned.seconds == pytest.approx(4.0)
    # What was predicted by what had been learned is not learned twice.
    more = {f"b{n}": built(f"b{n}", 200, 8.0, learned) for n in range(20)}
    assert scales_of(TableState(indexes=more)).predicted("covering", 100, 2.0).bytes == pytest.approx(197, abs=4)
    assert scales_of(first).predicted("zorder", 100, 2.0) == Prediction(100, 2.0)
    assert pace_of([_asked(30.0, "i", expected=(0.0, 10.0))] * 5) == pytest.approx(3.0)
    assert pace_of([_asked(30.0, "i", expected=(0.0, 10.0))] * 4) == 1.0


def _ask(served: Served, rides: Path, queries: list[str], times: int) -> None:
    """As if many clients had asked them, each so many times."""
    table = served.lake.table(str(rides))
    before = table._observed().num_rows
    for query in queries:
        served.run(query)
    asked = from_table(table._observed().slice(before))
    again = [replace(one, query=SYSTEM.new_id()) for one in asked for _ in range(times)]
    blocks.write(open_store(beside(canonical_uri(str(rides)))), to_table(again), SYSTEM)


def _files(folder: Path) -> dict[str, int]:
    return {str(one.relative_to(folder)): one.stat().st_size for one in folder.rglob("*") if one.is_file()}


def _in_all(table: LakeTable) -> int:
    return sum(one.bytes for one in table.indexes())


@pytest.mark.spark
def test_indexes_come_and_go_by_themselves(served: Served, rides: Path) -> None:
    table = served.lake.table(str(rides))
    asked = sums(boxes(1, 6))
    _ask(served, rides, asked, 3_000)
    there = _files(rides.parent)
    told = table.auto("60%")
    assert (_files(rides.parent), told.dry_run) == (there, True)
    assert [step.done for step in told.steps if step.verb == "create"], str(told)
    most = 0.6 * sum(size for name, size in there.items() if "_grebe" not in name)

    done = table.auto("60%", dry_run=False)
    made = [step.index for step in done.steps if (step.verb, step.done) == ("create", "done")]
    assert made, str(done)
    assert {one.name for one in table.indexes()} == set(made)
    assert all(name.startswith("auto_") for name in made)
    assert done.bytes_after == _in_all(table) <= most
    reasons = [text for entry in table.history() for text in entry.changes]
    assert any(text.startswith(f"create of {made[0]} begun: auto: saves") for text in reasons), reasons
    for query in (*asked[:2], *sums(boxes(2, 2))):
        assert served.same_rows(query).used
    assert {one.what for one in table.predictions()} >= {"bytes", "seconds", "milliseconds"}

    pq.write_table(rows(9), rides / "more.parquet")
    served.view("rides", rides)
    again = table.auto("60%", dry_run=False)
    assert [step.verb for step in again.steps if step.done == "done"][:1] == ["refresh"], str(again)
    assert all(one.files_stale == 0 for one in table.indexes())

    other = "SELECT count(note) FROM rides WHERE note LIKE '%77%'"
    _ask(served, rides, [other], 60)
    last = table.auto("60%", dry_run=False)
    assert set(made) <= {step.index for step in last.steps if (step.verb, step.done) == ("drop", "done")}, str(last)
    assert not set(made) & {one.name for one in table.indexes()}
    for query in (asked[0], other):
        served.same_rows(query)


@pytest.mark.spark
def test_what_somebody_made_by_hand_stays_and_counts(served: Served, rides: Path) -> None:
    table = served.lake.table(str(rides))
    table.create(grebe.Covering("own", on="note", include=["lon", "lat", "day", "fare"]))
    _ask(served, rides, sums(boxes(1, 6)), 3_000)
    report = table.auto(_in_all(table), dry_run=False)
    assert [one.name for one in table.indexes()] == ["own"], str(report)
    assert str(report).endswith("nothing to do")
    with pytest.raises(InvalidConfig):
        table.auto("many")


@pytest.mark.spark
def test_two_machines_at_once_keep_one_budget(served: Served, rides: Path) -> None:
    _ask(served, rides, sums(boxes(1, 6)), 3_000)
    tables = [served.lake.table(str(rides)) for _ in range(2)]
    reports: list[AutoReport] = []
    threads = [
        threading.Thread(target=lambda one=one: reports.append(one.auto("60%", dry_run=False))) for one in tables
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(reports) == 2
    whole = sum(file.stat().st_size for file in rides.glob("*.parquet"))
    assert 0 < _in_all(tables[0]) <= 0.6 * whole
    assert tables[0].verify(deep=True).ok
    for query in sums(boxes(2, 2)):
        served.same_rows(query)


@pytest.mark.spark
def test_nothing_recorded_nothing_done(served: Served, rides: Path) -> None:
    table = served.lake.table(str(rides))
    assert table.auto("20%", dry_run=False).steps == ()
    assert table.indexes() == []
    with pytest.raises(Unsupported) as raised:
        LakeTable(served.spark, str(rides)).auto("20%")
    assert raised.value.code == "UNSUPPORTED_NOT_ATTACHED"
