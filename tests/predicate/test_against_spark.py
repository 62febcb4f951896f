"""Evaluation gives Spark's answer in every row, true, false or NULL, over generated tables and predicates."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from grebe.errors import GrebeError
from grebe.predicate.bind import bind
from grebe.predicate.evaluate import evaluate, matches
from grebe.predicate.normalise import normalise
from grebe.predicate.parse import parse
from grebe.predicate.text import to_sql
from grebe.predicate.tree import Predicate
from tests.predicate import oracle as spark_oracle
from tests.predicate.generators import encoded, predicates, tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core]

PREDICATES_A_TABLE = 170
TABLES = 4
CAST_ERRORS = ("CAST_INVALID_INPUT", "CAST_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE")


def answer_of_ours(table: pa.Table, predicate: Predicate, time_zone: str, ansi: bool) -> spark_oracle.Answer:
    bound = bind(predicate, table.schema, time_zone=time_zone, ansi=ansi)
    answer: spark_oracle.Answer = evaluate(table, bound).to_pylist()
    assert evaluate(table, normalise(bound)).to_pylist() == answer, f"normalising changes {to_sql(predicate)}"
    return answer


@dataclass
class Comparison:
    """What became of the predicates: equal answers, refusals by their code, and differences, of which there must be none."""

    counts: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)

    def ask(self, frame: "DataFrame", answers: dict[str, spark_oracle.Answer]) -> None:
        """Asks Spark all at once; where one of the predicates makes it fail, by halves, to find out which."""
        texts = list(answers)
        try:
            theirs = spark_oracle.ask(frame, texts)
        except Exception:  # noqa: BLE001 - whichever predicate raised it, each half is asked again
            if len(texts) == 1:
                return self._failed_alone(texts[0], spark_oracle.failure(frame, texts[0]))
            for half in (texts[: len(texts) // 2], texts[len(texts) // 2 :]):
                self.ask(frame, {text: answers[text] for text in half})
            return None
        for text, expected in zip(texts, theirs, strict=True):
            rows = [row for row, pair in enumerate(zip(answers[text], expected, strict=True)) if pair[0] is not pair[1]]
            self.counts["different" if rows else "equal"] += 1
            if rows:
                self.differences.append(f"{text}: {answers[text][rows[0]]}, Spark {expected[rows[0]]} in row {rows[0]}")
        return None

    def _failed_alone(self, text: str, error: str | None) -> None:
        # Spark may fail on a cast in a part of a predicate that cannot change the answer, by evaluating it first.
        self.counts["spark failed"] += 1
        if error is None or not error.startswith(CAST_ERRORS):
            self.differences.append(f"{text}: Spark raises {error}")


def compare_with_spark(
    spark: "SparkSession", folder: Path, time_zone: str, ansi: bool, examples: int, start: int
) -> Comparison:
    found = Comparison()

    @seed(start)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def run(data: st.DataObject) -> None:
        table = data.draw(tables())
        stored = data.draw(encoded(table))
        asked = data.draw(st.lists(predicates(), min_size=PREDICATES_A_TABLE, max_size=PREDICATES_A_TABLE, unique=True))
        frame = spark_oracle.local_frame(spark, table, folder)
        answers: dict[str, spark_oracle.Answer] = {}
        for predicate in asked:
            text = to_sql(predicate)
            assert parse(text) == predicate
            try:
                answers[text] = answer_of_ours(stored, predicate, time_zone, ansi)
            except GrebeError as error:
                found.counts[error.code] += 1
                if error.code == "INVALID_PREDICATE_CAST_FAILED" and found.counts[error.code] % 8 == 1:
                    assert spark_oracle.failure(frame, text) is not None, text
        found.ask(frame, answers)

    ansi_setting = str(ansi).lower()
    with spark_oracle.settings(spark, spark__sql__ansi__enabled=ansi_setting, spark__sql__session__timeZone=time_zone):
        run()
    return found


@pytest.mark.parametrize("ansi", [True, False], ids=["ansi", "legacy"])
@pytest.mark.parametrize("time_zone", ["UTC", "America/New_York", "Asia/Kathmandu"])
def test_every_row_is_answered_as_by_spark(oracle: "SparkSession", tmp_path: Path, time_zone: str, ansi: bool) -> None:
    found = compare_with_spark(oracle, tmp_path, time_zone, ansi, TABLES, start=len(time_zone) * 2 + ansi)
    assert not found.differences
    # Refusals are honest but must stay the exception, or this test would show nothing.
    assert found.counts["equal"] > 0.75 * found.counts.total()
    assert found.counts["equal"] > 500  # of which six runs make over 3,000


@pytest.mark.soak
@pytest.mark.parametrize("ansi", [True, False], ids=["ansi", "legacy"])
@pytest.mark.parametrize("time_zone", ["America/Sao_Paulo", "Pacific/Apia", "Europe/Dublin", "+05:30"])
def test_every_row_is_answered_as_by_spark_at_length(
    oracle: "SparkSession", tmp_path: Path, time_zone: str, ansi: bool
) -> None:
    found = compare_with_spark(oracle, tmp_path, time_zone, ansi, 60, start=1000 + len(time_zone) * 2 + ansi)
    assert not found.differences
    assert found.counts["equal"] > 7_000


def test_a_where_keeps_the_rows_that_spark_keeps(oracle: "SparkSession", tmp_path: Path) -> None:
    table = pa.table(
        {"id": range(8), "a": [1, 2, None, 4, 5, None, 7, 8], "s": ["x", None, "y", "x", "", "y", "z", "x"]}
    )
    frame = spark_oracle.local_frame(oracle, table, tmp_path)
    for text in (
        "a > 2 OR s = 'y'",
        "NOT (a > 2 AND s = 'x')",
        "a IN (1, NULL)",
        "a NOT IN (1, NULL)",
        "s <> 'x'",
        "NULL OR a = 1",
    ):
        kept = table.filter(matches(table, bind(parse(text), table.schema)))["id"].to_pylist()
        assert kept == [row.id for row in frame.where(text).select("id").collect()], text
