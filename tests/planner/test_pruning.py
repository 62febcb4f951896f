"""Content files are left out only if no row in them can match."""

from dataclasses import replace
from datetime import date
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grebe.errors import InvalidPredicate, Unsupported
from grebe.files import FileIds
from grebe.formats import Reading
from grebe.indexes.kind import Copy, Layout, Run
from grebe.planner.content import content_of
from grebe.planner.pruning import files_to_read
from grebe.planner.spark_hash import bucket_of
from grebe.predicate.arrow_types import from_arrow, to_physical
from grebe.predicate.bind import bind
from grebe.predicate.evaluate import matches
from grebe.predicate.normalise import normalise
from grebe.predicate.parse import parse
from grebe.predicate.tree import (
    Column,
    Compare,
    In,
    IsNotNull,
    IsNull,
    Literal,
    Operator,
    Predicate,
    StartsWith,
    columns_of,
)
from grebe.predicate.types import STRING, Type
from tests.planner.lake import content
from tests.predicate.generators import FIELDS, SCHEMA, Field, predicates, tables

SIMPLE = [field for field in FIELDS if len(field.path) == 1]


def copy_of(table: pa.Table, layout: Layout, key: str = "") -> Copy:
    """A copy with this content; only what pruning looks at is filled in."""
    return Copy(
        name="i",
        reading=Reading.of("parquet", {}, [], "UTC", local_times=False),
        columns={(name,): name for name in ("a", *SCHEMA.names)},
        schema="{}",
        layout=layout,
        where=None,
        lineage=True,
        rows_numbered=False,
        covered=FileIds.of([0]),
        content=table,
        runs=(Run(tuple(range(table.num_rows))),),
        key=key,
        bounded=layout.sort_by[:1],
    )


def read(copy: Copy, predicate: Predicate) -> list[int]:
    normal = normalise(predicate)
    return [int(place) for place in files_to_read(copy, normal, columns_of(normal))]


def by_a(bounds: list[tuple[Any, Any]], kind: pa.DataType | None = None, nulls: list[int | None] | None = None) -> Copy:
    """Files of ten rows each, sorted by a column `a`."""
    count = len(bounds)
    table = content([100] * count, [10] * count, [-1] * count, bounds, nulls, kind)
    return copy_of(table, Layout(0, (), ("a",)))


def asked(text: str, kind: pa.DataType) -> Predicate:
    return bind(parse(text), pa.schema([("a", kind), ("b", pa.int64())]))


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("a = 15", [1]),
        ("a = 10", [0, 1]),
        ("a < 10", [0]),
        ("a <= 10", [0, 1]),
        ("a > 20", [2]),
        ("a >= 20", [1, 2]),
        ("a IN (1, 29, 99)", [0, 2]),
        ("a BETWEEN 11 AND 19", [1]),
        ("a = 15 OR a = 25", [1, 2]),
        ("a = 15 AND b = 1", [1]),
        ("a = 15 OR b = 1", [0, 1, 2]),
        ("b = 1", [0, 1, 2]),
        ("a IS NULL", []),
        ("a IS NOT NULL", [0, 1, 2]),
        ("a <=> 15", [1]),
        ("a <> 15", [0, 1, 2]),
        ("a = 99", []),
        ("a = 1 AND a = 29", []),
    ],
)
def test_bounds_leave_out_files(text: str, files: list[int]) -> None:
    copy = by_a([(0, 10), (10, 20), (20, 30)])
    assert read(copy, asked(text, pa.int64())) == files


@pytest.mark.parametrize(
    ("kind", "bounds", "text", "files"),
    [
        (
            pa.date32(),
            [(date(1994, 1, 1), date(1994, 9, 1)), (date(1995, 1, 1), date(1995, 9, 1))],
            "a > DATE '1995-01-01'",
            [1],
        ),
        (pa.string(), [("a", "azz"), ("b", "c")], "a LIKE 'b%'", [1]),
        (pa.string(), [("a", "azz"), ("b", "c")], "a LIKE 'az%'", [0]),
        (pa.string(), [("aza", "azz"), ("b", "c")], "a LIKE 'az%'", [0]),
        (pa.string(), [("a", "z"), ("\uffff", "\U0001f426")], "a = '\U0001f426'", [1]),
        (pa.decimal128(9, 2), [(Decimal("0.00"), Decimal("1.00")), (Decimal("1.01"), Decimal("2.00"))], "a > 1", [1]),
        (pa.bool_(), [(False, False), (False, True)], "a", [1]),
        (pa.float64(), [(0.0, 1.0), (2.0, 3.0)], "a < 2", [0]),
        (pa.float64(), [(0.0, 1.0), (2.0, 3.0)], "a > 2", [1]),
        # There may be a NaN above a bound that is not known.
        (pa.float64(), [(0.0, None), (2.0, 3.0), (0.0, 1.0)], "a > 2", [0, 1]),
        (pa.float64(), [(float("nan"), float("nan")), (2.0, 3.0)], "a < 1", [0]),
        (pa.binary(), [(b"a", b"b"), (b"c", b"d")], "a = X'61'", [0]),
    ],
)
def test_bounds_are_trusted_by_the_order_of_their_type(
    kind: pa.DataType, bounds: list[tuple[Any, Any]], text: str, files: list[int]
) -> None:
    assert read(by_a(bounds, kind), asked(text, kind)) == files


def test_a_file_of_unknown_bounds_is_read() -> None:
    copy = by_a([(0, 10), (None, None), (20, 30)], nulls=[0, None, 0])
    assert read(copy, asked("a = 25", pa.int64())) == [1, 2]
    assert read(copy, asked("a IN (25, 26)", pa.int64())) == [1, 2]
    assert read(copy, asked("a IS NULL", pa.int64())) == [1]


def test_null_counts_answer_questions_about_null() -> None:
    copy = by_a([(0, 10), (None, None), (20, 30)], nulls=[0, 10, 3])
    assert read(copy, asked("a IS NULL", pa.int64())) == [1, 2]
    assert read(copy, asked("a IS NOT NULL", pa.int64())) == [0, 2]
    assert read(copy, asked("a < 100", pa.int64())) == [0, 2]


def test_a_long_list_of_texts_is_judged_by_its_ends() -> None:
    copy = by_a([("a", "b"), ("m", "n"), ("x", "z")], pa.string())
    names = ", ".join(f"'l{number}'" for number in range(100))
    assert read(copy, asked(f"a IN ({names}, 'n')", pa.string())) == [1]


def test_an_equality_on_the_only_bucket_column_opens_one_bucket() -> None:
    table = content([100] * 8, [10] * 8, [0, 1, 2, 3] * 2)
    copy = copy_of(table, Layout(4, ("a",), ("b",)))
    kind = pa.int64()

    def bucket(value: int) -> int:
        found = bucket_of(Literal(value, from_arrow(kind)), 4)
        assert found is not None
        return found

    assert read(copy, asked("a = 7", kind)) == [bucket(7), bucket(7) + 4]
    both = sorted({bucket(7), bucket(8)})
    assert read(copy, asked("a IN (7, 8)", kind)) == [*both, *(one + 4 for one in both)]
    assert read(copy, asked("a IS NULL", kind)) == [42 % 4, 42 % 4 + 4]
    assert read(copy, asked("a > 7", kind)) == list(range(8))


def test_a_file_of_an_unknown_bucket_is_read() -> None:
    copy = copy_of(content([100] * 3, [10] * 3, [0, 1, -1]), Layout(2, ("a",), ("b",)))
    assert read(copy, asked("a = 7", pa.int64())) == [bucket_of(Literal(7, from_arrow(pa.int64())), 2), 2]


def test_a_bucket_by_several_columns_is_not_guessed_from_one() -> None:
    copy = copy_of(content([100] * 2, [10] * 2, [0, 1]), Layout(2, ("a", "b"), ("a",)))
    assert read(copy, asked("a = 7", pa.int64())) == [0, 1]


def test_all_files_are_one_and_the_same_array() -> None:
    copy = by_a([(0, 10), (10, 20)])
    predicate = normalise(asked("b = 1", pa.int64()))
    assert files_to_read(copy, predicate, columns_of(predicate)) is content_of(copy).everything


def _written(data: pa.Table, field: Field, cuts: list[int], buckets: int) -> tuple[list[pa.Table], Copy]:
    """The rows as a builder would write them: in buckets, sorted, cut into files, with exact bounds."""
    name, kind = field.path[0], field.kind
    column = data[name].combine_chunks()
    physical = to_physical(column, from_arrow(column.type))
    numbers = [bucket_of(Literal(value, kind), buckets) for value in physical.to_pylist()] if buckets else []
    hashable = bool(buckets) and None not in numbers
    parts, places = [], []
    for bucket in range(buckets if hashable else 1):
        inside = data.filter(pa.array([number == bucket for number in numbers])) if hashable else data
        order = pc.sort_indices(to_physical(inside[name].combine_chunks(), from_arrow(column.type)))
        ends = [0, *sorted(min(cut, inside.num_rows) for cut in cuts), inside.num_rows]
        for start, stop in pairwise(ends):
            parts.append(inside.take(order[start:stop]))
            places.append(bucket if hashable else -1)
    bounds = [_ends(part[name].combine_chunks(), kind) for part in parts]
    table = content(
        [100] * len(parts),
        [part.num_rows for part in parts],
        places,
        [(None, None)] * len(parts),
        [part[name].null_count for part in parts],
    )
    low, high = (pa.concat_arrays([pa.array([None], column.type), *(end[i] for end in bounds)])[1:] for i in (0, 1))
    table = table.set_column(4, "min", low).set_column(5, "max", high)
    layout = Layout(buckets if hashable else 0, (name,) if hashable else (), (name,))
    return parts, copy_of(table, layout)


def _ends(column: pa.Array, kind: Type) -> tuple[pa.Array, pa.Array]:
    """The least and greatest value, each as an array of one; of numbers the greatest is unknown where there is a NaN."""
    values = column.drop_null()
    numbers = values.filter(pc.invert(pc.is_nan(values))) if kind.is_floating else values
    if not len(numbers):
        return pa.nulls(1, column.type), pa.nulls(1, column.type)
    order = pc.sort_indices(to_physical(numbers, from_arrow(column.type)))
    greatest = numbers.take(order[-1:]) if len(numbers) == len(values) else pa.nulls(1, column.type)
    return numbers.take(order[:1]), greatest


_OPERATORS: list[Operator] = ["=", "<=>", "<>", "<", "<=", ">", ">="]


@st.composite
def about(draw: st.DrawFn, field: Field) -> Predicate:
    """A predicate on this column, or one on any."""
    column = Column(field.path, field.kind)
    values = st.sampled_from([*field.pool, None]).map(lambda value: Literal(value, field.kind))
    choices: list[st.SearchStrategy[Predicate]] = [
        st.builds(Compare, st.sampled_from(_OPERATORS), st.just(column), values),
        st.lists(values, min_size=1, max_size=4).map(lambda items: In(column, tuple(items))),
        st.just(IsNull(column)),
        st.just(IsNotNull(column)),
        predicates().map(lambda one: bind(one, SCHEMA)),
    ]
    if field.kind == STRING:
        choices.append(st.sampled_from(["", "a", "ab", "ä"]).map(lambda text: StartsWith(column, text)))
    one, other = draw(st.one_of(choices)), draw(st.one_of(choices))
    return draw(st.sampled_from([one, ~one, one & other, one | other, ~(one | other)]))


@settings(max_examples=120, deadline=None)
@given(
    st.data(),
    tables(rows=16),
    st.sampled_from(SIMPLE),
    st.lists(st.integers(0, 16), max_size=3),
    st.sampled_from([0, 0, 3, 4]),
)
def test_no_file_with_a_matching_row_is_left_out(
    data: st.DataObject, rows: pa.Table, field: Field, cuts: list[int], buckets: int
) -> None:
    parts, copy = _written(rows, field, cuts, buckets)
    try:
        predicate = data.draw(about(field))
        holding = [number for number, part in enumerate(parts) if pc.any(matches(part, predicate)).as_py()]
    except (InvalidPredicate, Unsupported):
        return  # a cast that does not fit, or what only Spark can evaluate
    kept = read(copy, predicate)
    assert set(holding) <= set(kept)
    assert kept == sorted(kept)


def test_content_is_derived_once_and_anew_for_other_content() -> None:
    copy = by_a([(0, 10)])
    assert content_of(copy) is content_of(replace(copy, name="j"))
    other = replace(copy, content=content([7], [1], [-1]))
    assert content_of(other).bytes == 7
    assert np.array_equal(content_of(copy).sizes, [100])
