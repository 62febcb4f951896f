"""What a sample says of a table: close enough to choose by, and nothing of it where values are not to be stored."""

import importlib.util
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from grebe.advisor.workload import statistics
from grebe.advisor.workload.estimate import selectivity
from grebe.advisor.workload.sampling import sampled
from grebe.advisor.workload.statistics import TableStatistics
from grebe.clock import SimulatedClock
from grebe.config import Config
from grebe.errors import Unsupported
from grebe.predicate.arrow_types import schema_type
from grebe.predicate.bind import bind
from grebe.predicate.evaluate import matches
from grebe.predicate.normalise import normalise
from grebe.predicate.parse import parse
from grebe.predicate.tree import Predicate
from grebe.session.table import open as open_table
from grebe.store.memory import MemoryStore

ROWS = 40_000


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Skewed, normal, few texts, NULLs, days, and a field inside a struct."""
    chance = np.random.default_rng(7)
    number = np.arange(ROWS)
    return pa.table(
        {
            "a": pa.array(chance.zipf(1.5, ROWS) % 1000),
            "d": pa.array(np.where(number % 100 == 0, np.nan, chance.normal(0, 1, ROWS))),
            "s": pa.array([f"c{n}" for n in chance.integers(0, 500, ROWS)]),
            "x": pa.array(number, mask=number % 5 == 0),
            "day": pa.array(chance.integers(18_000, 19_000, ROWS).astype(np.int32)).cast(pa.date32()),
            "in": pa.array([{"b": int(n)} for n in chance.integers(0, 10, ROWS)]),
            "bytes": pa.array([bytes([n % 256]) for n in range(ROWS)]),
            "money": pa.array(number % 700).cast(pa.decimal128(22, 2)),
            "list": pa.array([[1]] * ROWS),
            "none": pa.nulls(ROWS),
        }
    )


@pytest.fixture(scope="module")
def known(table: pa.Table) -> TableStatistics:
    chosen = np.random.default_rng(1).choice(ROWS, 8000, replace=False)
    return statistics.of_sample(table.take(chosen), ROWS)


def bound(text: str, table: pa.Table) -> Predicate:
    return normalise(bind(parse(text), schema_type(table.schema), time_zone="UTC"))


@pytest.mark.parametrize(
    "text",
    [
        "a = 1",
        "a = 3",
        "a BETWEEN 2 AND 9",
        "a IN (1, 2, 3)",
        "a <> 1",
        "NOT (a = 1)",
        "a = -5",
        "d < 0",
        "d > 1 AND d < 2",
        "d > 0",
        "d = double('NaN')",
        "s = 'c7'",
        "s LIKE 'c1%'",
        "s >= 'c3' AND s < 'c4'",
        "x IS NULL",
        "x IS NOT NULL",
        "x < 20000",
        "x <=> 77",
        "x <=> NULL",
        "NOT (x IN (1, 2))",
        "day >= DATE '2020-01-01'",
        "`in`.b = 3",
        "bytes < X'40'",
        "money < 70.5",
        "a = 1 OR x < 20000",
        "TRUE",
    ],
)
def test_what_a_predicate_takes_is_about_known(text: str, table: pa.Table, known: TableStatistics) -> None:
    predicate = bound(text, table)
    truth = (pc.sum(matches(table, predicate)).as_py() or 0) / ROWS
    assert selectivity(predicate, known) == pytest.approx(truth, abs=0.02)


def test_what_nothing_is_known_of_is_a_guess_of_the_planner(table: pa.Table, known: TableStatistics) -> None:
    for text in ("s LIKE '%7%'", "upper(s) = 'C1'", "a = x"):
        assert 0 < selectivity(bound(text, table), known) < 1
    nothing = TableStatistics(ROWS, {})
    for text in ("a = 1", "a < 3 AND a > 1", "s IN ('a', 'b')", "x IS NULL", "NOT (a = 1)"):
        assert 0 < selectivity(bound(text, table), nothing) < 1


def test_distinct_values_are_reckoned_for_the_whole_table(table: pa.Table, known: TableStatistics) -> None:
    truth = {path: pc.count_distinct(table[path[0]]).as_py() for path in [("s",), ("x",), ("day",)]}
    for path, count in truth.items():
        assert known.columns[path].distinct == pytest.approx(count, rel=0.1)
    assert set(known.columns).isdisjoint({("list",), ("none",), ("in",)})


def test_two_samples_are_united(table: pa.Table) -> None:
    halves = [statistics.of_sample(table.slice(first, ROWS // 2), ROWS).columns[("x",)] for first in (0, ROWS // 2)]
    assert statistics.united(*halves) == pytest.approx(ROWS * 0.8, rel=0.06)


def test_statistics_come_back(known: TableStatistics) -> None:
    store = MemoryStore()
    assert statistics.load(store) is None
    statistics.store(known, store, hashed=False)
    assert statistics.load(store) == known
    store.put(statistics.PATH, store.get(statistics.PATH)[:-1])
    assert statistics.load(store) is None


def test_where_values_are_not_stored_nothing_of_them_is(table: pa.Table) -> None:
    secret = pa.table({"s": [f"secret-{n}" for n in range(100)]})
    known, store = statistics.of_sample(secret, 100), MemoryStore()
    statistics.store(known, store, hashed=True)
    loaded = statistics.load(store)
    assert b"secret" not in store.get(statistics.PATH)
    assert loaded is not None
    assert selectivity(bound("s = 'secret-7'", secret), loaded) == pytest.approx(0.01)
    assert 0 < selectivity(bound("s < 'secret-7' AND s > 'a'", secret), loaded) < 1


def test_a_sample_of_files_tells_the_rows_of_all(table: pa.Table, tmp_path: Path) -> None:
    plain = table.select(["a", "s"])
    for number in range(10):
        pq.write_table(plain.slice(number * 1000, 1000), tmp_path / f"{number}.parquet")
    engine = open_table(str(tmp_path))._engine
    some, rows = sampled(engine, ["s", "a"], SimulatedClock(1), files=3, rows=500)
    assert some.column_names == ["s", "a"]
    assert some.num_rows == 500
    assert rows == pytest.approx(10_000, rel=0.1)
    assert sampled(engine, ["a"], SimulatedClock(1), files=10)[1] == 10_000


def test_without_the_package_it_is_said_what_to_install(table: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(Unsupported, match=r"grebe\[advisor\]") as refused:
        statistics.of_sample(table, ROWS)
    assert refused.value.code == "UNSUPPORTED_NO_SKETCHES"


def test_a_table_tells_of_its_columns_and_keeps_what_it_was_told(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    days = pa.array(range(1000), pa.int32()).cast(pa.date32())
    names = [None if n % 4 == 0 else f"n{n % 10:02d}" for n in range(1000)]
    pq.write_table(pa.table({"id": range(1000), "day": days, "name": names}), folder / "0.parquet")
    opened = open_table(str(folder), config=Config(record_workload=True))
    by_name = {one.column: one for one in opened.statistics()}
    assert (by_name["id"].least, by_name["id"].greatest, by_name["id"].distinct) == (0, 999, 1000)
    assert by_name["day"].least == "1970-01-01"
    assert "1971-04-20" < str(by_name["day"].median) < "1971-06-10"
    assert (by_name["name"].nulls, by_name["name"].least, by_name["name"].greatest) == (0.25, "n00", "n09")
    assert opened.selectivity("id < 250") == pytest.approx(0.25, abs=0.02)
    pq.write_table(pa.table({"id": range(5000, 5003), "day": days[:3], "name": names[:3]}), folder / "0.parquet")
    again = open_table(str(folder), config=Config(record_workload=True))
    assert again.statistics() == list(by_name.values())
    assert {one.column: one.least for one in again.statistics(anew=True)}["id"] == 5000
    assert open_table(str(folder)).selectivity("id >= 5000") == 1.0
    again.forget_workload()
    hashed = open_table(str(folder), config=Config(record_workload=True, workload_literals="hashed"))
    hashed.statistics()
    assert {one.median for one in open_table(str(folder), config=Config(record_workload=True)).statistics()} == {None}
