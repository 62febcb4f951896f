"""Skipping indexes choose by themselves: the smallest structure that prunes nearly as well as the best."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from grebe.formats import Column, Reading
from grebe.formats.spark_types import spark_type, type_text
from grebe.indexes.columns import Chosen
from grebe.indexes.kind import FileFold
from grebe.indexes.skipping.choice import Choice, choose
from grebe.indexes.skipping.spec import Skipping

FILES, ROWS = 60, 3000


@dataclass(frozen=True)
class InMemory:
    """Files as tables: folds them as Spark's tasks would."""

    tables: Sequence[pa.Table]

    @property
    def files(self) -> int:
        return len(self.tables)

    def folded(self, fold: FileFold, columns: Collection[str]) -> "InMemory.Frame":
        made = []
        for number, table in enumerate(self.tables):
            batches = table.select(sorted(columns)).combine_chunks().to_batches(max_chunksize=1000)
            states = [fold.state(batch) for batch in batches] or [fold.state(_nothing(table))]
            made += fold.rows([number], [fold.joined(states)]).to_pylist()
        return InMemory.Frame(made)

    @dataclass(frozen=True)
    class Frame:
        rows: list[dict[str, Any]]

        def collect(self) -> list["InMemory.Row"]:
            return [InMemory.Row(row) for row in self.rows]

    @dataclass(frozen=True)
    class Row:
        row: dict[str, Any]

        def asDict(self) -> dict[str, Any]:
            return self.row


def _nothing(table: pa.Table) -> pa.RecordBatch:
    return pa.record_batch([pa.nulls(0, field.type) for field in table.schema], names=table.schema.names)


def chosen(files: Sequence[Any], kind: pa.DataType | None = None, together: bool = False) -> Choice:
    tables = [pa.table({"k": pa.array(values, kind)}) for values in files]
    column = Chosen(("k",), type_text(spark_type(tables[0].schema.field("k").type)))
    return choose([column], together, InMemory(tables))  # type: ignore[arg-type]  # as much of Rows as is asked for


def taken(choice: Choice) -> str:
    if choice.sieves:
        return "sieve"
    return choice.sketches[-1].sketch


def late_times(number: int, random: np.random.Generator) -> np.ndarray:
    """A file's own hours, and one row in fifty up to thirty files late."""
    own = number * 10**9 + random.integers(0, 10**9, ROWS)
    return np.where(random.random(ROWS) < 0.02, own - random.integers(0, 30 * 10**9, ROWS), own)


def distribution(name: str) -> list[np.ndarray]:
    random = np.random.default_rng(7)
    pairs = random.permutation(FILES)

    def two_months(number: int) -> np.ndarray:
        month = np.where(random.random(ROWS) < 0.5, number, pairs[number] + 500)
        return month * 10**6 + random.integers(0, 10**6, ROWS)

    made: dict[str, Callable[[int], np.ndarray]] = {
        "sorted": lambda number: np.arange(ROWS) + number * ROWS,
        "late": lambda number: late_times(number, random),
        "two months": two_months,
        "random": lambda number: random.integers(0, 2**60, ROWS),
    }
    return [made[name](number) for number in range(FILES)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("sorted", "min_max"), ("two months", "sieve"), ("late", "sieve"), ("random", "bloom")],
)
def test_each_distribution_gets_what_fits_it(name: str, expected: str) -> None:
    assert taken(chosen(distribution(name))) == expected


def test_few_values_lie_in_a_list() -> None:
    random = np.random.default_rng(3)
    files = [[f"city {n}" for n in random.choice(5000, 3)] * 1000 for _ in range(FILES)]
    assert taken(chosen(files)) == "value_list"


@pytest.mark.parametrize(
    "kind", [pa.int64(), pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.float64(), pa.decimal128(38, 2)], ids=str
)
def test_late_values_of_every_type_get_a_sieve(kind: pa.DataType) -> None:
    files = [pa.array(values).cast(kind) for values in distribution("late")]
    assert taken(chosen(files, kind)) == "sieve"


def test_late_texts_get_a_sieve() -> None:
    files = [[f"{value:016d}" for value in values + 10**12] for values in distribution("late")]
    assert taken(chosen(files)) == "sieve"


def test_the_reason_names_what_was_kept_and_what_was_tried() -> None:
    (why,) = chosen(distribution("late")).why
    assert why.startswith("k: a sieve of ")
    assert "the files that hold rows: 1.0 and" in why
    assert "bounds keeps" in why
    (why,) = chosen(distribution("random")).why
    assert "Bloom filter (15.6% of the column), for equality only" in why
    assert "Lookup" in why


def test_a_column_without_values_gets_its_bounds() -> None:
    choice = chosen([[None] * 5] * 3, pa.int64())
    assert (taken(choice), choice.why) == ("min_max", ("k: bounds, as there are no values to learn from",))


def test_a_table_without_files_gets_bounds() -> None:
    column = Chosen(("k",), "long")
    assert taken(choose([column], False, InMemory([]))) == "min_max"  # type: ignore[arg-type]  # as above


def test_all_texts_share_one_sketch_where_all_columns_are_meant() -> None:
    tables = [pa.table({"a": [f"a{n}"], "b": [f"b{n}"], "n": [n]}) for n in range(4)]
    columns = [Chosen(("a",), "string"), Chosen(("b",), "string"), Chosen(("n",), "long")]
    choice = choose(columns, True, InMemory(tables))  # type: ignore[arg-type]  # as above
    assert [sketch.columns for sketch in choice.sketches if sketch.sketch == "ngram"] == [("a", "b")]
    assert {"a", "b", "n"} == {sketch.columns[0] for sketch in choice.sketches if sketch.sketch == "min_max"}


def test_every_scalar_column_is_meant_by_a_star() -> None:
    columns = [("a", "long"), ("x.y", "string"), ("c", '{"containsNull":true,"elementType":"long","type":"array"}')]
    reading = Reading("parquet", (), tuple(Column(name, kind) for name, kind in columns))
    assert Skipping("s", on="*").spec(reading, False).properties["on"] == ["a", "`x.y`"]
