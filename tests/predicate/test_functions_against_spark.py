"""Functions of columns: whatever Grebe makes of a predicate, Spark's answer is never contradicted, in any time zone.

What is rewritten over the bare column has Spark's truth value in every row, NULL included. What is only weakened is true in every
row in which Spark says true, or raises an error.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grebe.errors import GrebeError
from grebe.predicate.about import about
from grebe.predicate.bind import bind
from grebe.predicate.bounds import bounds_of, by_bounds
from grebe.predicate.evaluate import evaluate
from grebe.predicate.normalise import normalise
from grebe.predicate.parse import parse
from grebe.predicate.text import to_sql
from grebe.predicate.tree import Predicate, opaque_terms
from grebe.predicate.verdicts import Verdict, Verdicts, judge
from tests.predicate import function_cases
from tests.predicate.oracle import Answer, ask, settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core]

ZONES = ["UTC", "America/New_York", "Pacific/Apia", "Asia/Kathmandu", "America/Sao_Paulo", "+05:30"]
PREDICATES = 100
TABLE = function_cases.table()
PATHS = [(name,) for name in TABLE.column_names]


@pytest.fixture
def frame(oracle: "SparkSession", tmp_path: Path) -> "DataFrame":
    """Read from its file each time: Spark 3.5 cannot hold the farthest days in a plan."""
    pq.write_table(TABLE, tmp_path / "table.parquet", store_schema=False)
    return oracle.read.parquet((tmp_path / "table.parquet").as_uri())


class Units:
    """Every row is a unit of its own, whose bounds are its values."""

    def __init__(self, table: pa.Table) -> None:
        self.rows = table.num_rows
        ones = np.ones(self.rows, np.int64)
        columns = {name: table[name].combine_chunks() for name in table.column_names}
        nulls = {
            name: np.asarray(column.is_null().to_numpy(zero_copy_only=False), np.int64)
            for name, column in columns.items()
        }
        self.bounds = [bounds_of((name,), column, column, ones, nulls[name]) for name, column in columns.items()]

    def judged(self, predicate: Predicate) -> Verdicts:
        return judge(predicate, self.rows, self._leaf)

    def _leaf(self, predicate: Predicate) -> Verdicts | None:
        answers = (by_bounds(bounds, predicate) for bounds in self.bounds if bounds is not None)
        return next((answer for answer in answers if answer is not None), None)


UNITS = Units(TABLE)


def check(text: str, theirs: Answer, time_zone: str, ansi: bool, counts: Counter[str]) -> Iterator[str]:
    """What contradicts Spark, of which there must be nothing."""
    bound = bind(parse(text), TABLE.schema, time_zone=time_zone, ansi=ansi)
    form = normalise(bound)
    implied = about(form, PATHS)
    assert not opaque_terms(implied)
    true = np.array([value is True for value in theirs])
    for one in (bound, form, implied):
        answer = ours(TABLE, one)
        if answer is None:
            counts["refused"] += 1
            continue
        wrong = [
            row
            for row, value in enumerate(answer)
            if (true[row] and not value if one is implied else value is not theirs[row])
        ]
        if wrong:
            yield f"{text}: {to_sql(one)} is {answer[wrong[0]]} in row {wrong[0]}, and not {theirs[wrong[0]]}"
    counts["weaker" if opaque_terms(form) else "exact"] += 1
    verdicts = UNITS.judged(form)
    if (true & (verdicts == Verdict.CANNOT_MATCH)).any():
        yield f"{text}: a row is ruled out"
    if (~true & (verdicts == Verdict.ALL_MATCH)).any():
        yield f"{text}: a row is said to match"
    counts["rows without a match"] += int((~true).sum())
    counts["ruled out"] += int((verdicts == Verdict.CANNOT_MATCH).sum())


@pytest.mark.parametrize(
    ("time_zone", "ansi"), [("UTC", True), ("Pacific/Apia", True), *((zone, False) for zone in ZONES)]
)
def test_no_row_of_spark_s_is_contradicted(
    oracle: "SparkSession", frame: "DataFrame", time_zone: str, ansi: bool
) -> None:
    contradict(oracle, frame, time_zone, ansi, PREDICATES, seed=100 * ZONES.index(time_zone) + ansi)


def contradict(session: "SparkSession", frame: "DataFrame", time_zone: str, ansi: bool, count: int, seed: int) -> None:
    texts = function_cases.predicates(seed, count)
    counts: Counter[str] = Counter()
    setting: dict[str, Any] = {
        "spark__sql__ansi__enabled": str(ansi).lower(),
        "spark__sql__session__timeZone": time_zone,
    }
    with settings(session, **setting):
        answers = ask(frame, texts)
    found = [
        problem
        for text, answer in zip(texts, answers, strict=True)
        for problem in check(text, answer, time_zone, ansi, counts)
    ]
    assert not found
    # Most of what is asked is understood, and most rows that do not match are known by their value alone.
    assert counts["exact"] > count // 3
    assert counts["weaker"] > count // 10
    assert counts["ruled out"] > 0.75 * counts["rows without a match"]


@pytest.mark.soak
@pytest.mark.parametrize("ansi", [True, False], ids=["ansi", "legacy"])
@pytest.mark.parametrize("time_zone", [*ZONES, "America/St_Johns", "Europe/Dublin", "Asia/Manila", "Etc/UTC"])
def test_no_row_of_spark_s_is_contradicted_at_length(
    oracle: "SparkSession", frame: "DataFrame", time_zone: str, ansi: bool
) -> None:
    for seed in range(10):
        contradict(oracle, frame, time_zone, ansi, 300, seed=10_000 + 100 * len(time_zone) + 2 * seed + ansi)


@pytest.mark.parametrize(("time_zone", "ansi"), [("UTC", True), ("America/New_York", False)], ids=["ansi", "legacy"])
def test_rows_in_which_spark_raises_or_wraps_around_are_not_ruled_out(
    oracle: "SparkSession", time_zone: str, ansi: bool
) -> None:
    outcomes: Counter[str] = Counter()
    with settings(oracle, spark__sql__ansi__enabled=str(ansi).lower(), spark__sql__session__timeZone=time_zone):
        for row, values in function_cases.ends():
            frame = oracle.sql(f"SELECT * FROM VALUES ({values}) AS t(a, b, d, ts)")
            units = Units(row)
            for text in function_cases.AT_THE_ENDS:
                theirs = answer_of(frame, text)
                outcomes[str(theirs)] += 1
                form = normalise(bind(parse(text), row.schema, time_zone=time_zone, ansi=ansi))
                verdict = units.judged(form)[0]
                assert verdict != Verdict.ALL_MATCH or theirs is True, (text, values)
                if theirs in (True, RAISED):
                    assert verdict != Verdict.CANNOT_MATCH, (text, values)
                    implied = about(form, [(name,) for name in row.column_names])
                    assert evaluate(row, implied).to_pylist() == [True], (text, values, to_sql(implied))
                assert ours(row, form) in ([theirs], None), (text, values, to_sql(form))
    assert outcomes[RAISED] >= (15 if ansi else 5)
    assert outcomes["True"] > 10
    assert outcomes["False"] > 10


RAISED = "raised"


def answer_of(frame: "DataFrame", text: str) -> bool | str | None:
    try:
        return ask(frame, [text])[0][0]
    except Exception as error:
        if "overflow" not in str(error):
            raise
        return RAISED


def ours(table: pa.Table, predicate: Predicate) -> Answer | None:
    """None where it is refused."""
    try:
        answer: Answer = evaluate(table, predicate).to_pylist()
    except GrebeError:
        return None
    return answer
