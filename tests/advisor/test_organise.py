"""Layouts that the recorded queries ask for: made within a budget, changed as queries change, and never seen in an answer."""

import random
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import grebe
from grebe.errors import InvalidConfig, InvalidIndex, InvalidStatement
from grebe.maintenance import reorganise
from grebe.maintenance.steps import carried_out
from tests.spark.served import Served, serving

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark]
FILES, ROWS = 4, 30_000


@pytest.fixture
def served(spark: "SparkSession") -> Iterator[Served]:
    with serving(spark, grebe.Config(record_workload=True, hybrid_max_appended=1.0, hybrid_max_deleted=1.0)) as served:
        yield served


@pytest.fixture
def rides(served: Served, tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "rides"
    folder.mkdir()
    for number in range(FILES):
        pq.write_table(rows(number), folder / f"{number}.parquet")
    served.view("rides", folder)
    yield folder
    served.lake.table(str(folder)).forget_workload()  # nobody else is to be advised on these


def rows(seed: int) -> pa.Table:
    chance = random.Random(seed)
    some = range(ROWS)
    return pa.table(
        {
            "lon": [chance.gauss(0, 10) for _ in some],
            "lat": [chance.gauss(0, 10) for _ in some],
            "day": pa.array([19_000 + chance.randrange(365) for _ in some], pa.int32()).cast(pa.date32()),
            "fare": pa.array([chance.randrange(10_000) for _ in some], pa.int64()),
            "note": [f"{chance.random()}" for _ in some],
        }
    )


def boxes(seed: int, count: int = 40) -> list[str]:
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        x, y = chance.gauss(0, 6), chance.gauss(0, 6)
        found.append(f"lon BETWEEN {x:.3f} AND {x + 2:.3f} AND lat BETWEEN {y:.3f} AND {y + 2:.3f}")
    return found


def days(seed: int, count: int = 40) -> list[str]:
    chance = random.Random(seed)
    first = [date(2022, 1, 8) + timedelta(days=chance.randrange(300)) for _ in range(count)]
    return [
        f"day BETWEEN DATE '{day}' AND DATE '{day + timedelta(days=5)}' AND fare > {9_000 + day.toordinal() % 300}"
        for day in first
    ]


def sums(conditions: list[str]) -> list[str]:
    return [f"SELECT sum(fare) FROM rides WHERE {one}" for one in conditions]


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
    for query in (*asked[:3], *sums(boxes(2, 3))):
        assert served.same(query, "layout").used
        assert served.read()["bytes"] < 0.25 * whole
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
    for query in (*other[:3], *sums(boxes(1, 2))):
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
    assert table.verify(deep=True).ok

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
