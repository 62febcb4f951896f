"""Trees of cuts: rows go where comparing them one by one sends them, boxes hold the rows of their queries, which read less."""

import math
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grebe.indexes.layout.axes import axis_among
from grebe.indexes.layout.boxes import box_of, constants_of
from grebe.indexes.layout.drift import Benefit, affordable, benefits, grafted
from grebe.indexes.layout.learn import learn
from grebe.indexes.layout.shares import expected_share
from grebe.indexes.layout.tree import LEAF, Tree, route, tree_of
from grebe.indexes.layout.workload import Query, workload_of
from grebe.predicate.bind import bind
from grebe.predicate.evaluate import matches
from grebe.predicate.normalise import normalise
from grebe.predicate.parse import parse
from grebe.predicate.text import to_sql
from grebe.predicate.tree import Literal, Predicate
from grebe.predicate.types import parse_type
from tests.indexes.key_types import KEYS, keys_table

TABLE = keys_table(200).drop_columns(["number"])
NAMES = TABLE.column_names


def constant(name: str, value: Any) -> str:
    """As SQL, in the column's own type."""
    physical = TABLE.schema.field(name).type
    plain = pa.scalar(value, physical)
    if pa.types.is_timestamp(physical):
        kind = "timestamp" if physical.tz else "timestamp_ntz"
        return to_sql_of(plain.cast(pa.int64()).as_py(), kind)
    if pa.types.is_date(physical):
        return to_sql_of(plain.cast(pa.int32()).as_py(), "date")
    return to_sql_of(value, TYPES[name])


TYPES = {
    "boolean": "boolean",
    "byte": "tinyint",
    "short": "smallint",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "small_decimal": "decimal(9,2)",
    "decimal": "decimal(18,4)",
    "large_decimal": "decimal(38,10)",
    "text": "string",
    "binary": "binary",
}


def to_sql_of(value: Any, kind: str) -> str:
    return to_sql(Literal(value, parse_type(kind)))


def understood(text: str, table: pa.Table = TABLE) -> Predicate:
    return normalise(bind(parse(text), table.schema))


@st.composite
def conditions(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from(NAMES))
    one, other = (constant(name, draw(st.sampled_from(KEYS[name][1]))) for _ in range(2))
    forms = [f"{name} {sign} {one}" for sign in ("=", "<", "<=", ">", ">=", "<>", "<=>")]
    forms += [f"{name} IN ({one}, {other})", f"NOT {name} IN ({one}, {other})", f"{name} BETWEEN {one} AND {other}"]
    forms += [f"{name} IS NULL", f"{name} IS NOT NULL", f"NOT ({name} <=> {one})", f"{name} IN ({one}, NULL)"]
    if name == "text":
        forms += ["text LIKE 'a%'", "NOT text LIKE 'a%'", "text LIKE '\U0001f426%'", "text LIKE '%b'"]
    return draw(st.sampled_from(forms))


QUERIES = st.recursive(
    conditions(),
    lambda below: st.tuples(below, st.sampled_from(["AND", "OR"]), below).map(lambda of: f"({of[0]} {of[1]} {of[2]})"),
    max_leaves=6,
)
TREES = st.tuples(
    st.lists(QUERIES, min_size=1, max_size=8), st.integers(1, 40), st.sets(st.sampled_from(NAMES), min_size=1)
)


def key(value: Any) -> tuple[int, Any]:
    """As Spark sorts: NULL, then the values, with NaN above all."""
    if value is None:
        return 0, 0
    if isinstance(value, float) and math.isnan(value):
        return 2, 0
    return 1, value.encode() if isinstance(value, str) else value


def one_by_one(tree: Tree, table: pa.Table) -> list[int]:
    """As `route`, by the words of the tree's definition."""
    values = {name: [compared(value) for value in table[name].to_pylist()] for name in tree.names}
    cuts = [[compared_plain(value, axis.type.scale) for value in axis.values.tolist()] for axis in tree.axes]

    def leaf(row: int) -> int:
        node = 0
        while tree.column[node] != LEAF:
            column, cut = int(tree.column[node]), int(tree.cut[node])
            value = values[tree.names[column]][row]
            if cut == 1:
                less = value[0] == 0
            else:
                at = cuts[column][cut // 2 - 1]
                less = value <= at if cut % 2 else value < at
            node = node + 1 if less else int(tree.second[node])
        return int(tree.first_leaf[node])

    return [leaf(row) for row in range(table.num_rows)]


def compared(value: Any) -> tuple[int, Any]:
    """Days and microseconds of dates and times, as the axes have them."""
    if hasattr(value, "year"):
        kind = pa.scalar(value).type
        return 1, pa.scalar(value, kind).cast(pa.int32() if pa.types.is_date(kind) else pa.int64()).as_py()
    return key(value)


def compared_plain(value: Any, scale: int) -> tuple[int, Any]:
    return key(Decimal(value).scaleb(-scale) if scale and isinstance(value, int) else value)


@settings(max_examples=60, deadline=None)
@given(TREES)
def test_rows_go_where_comparing_them_one_by_one_sends_them(asked: tuple[list[str], int, set[str]]) -> None:
    texts, leaf_rows, names = asked
    sample = TABLE.select(sorted(names))
    queries = [Query(understood(text)) for text in texts]
    tree = learn(sample, queries, leaf_rows)
    leaves = route(tree, TABLE)
    assert leaves.tolist() == one_by_one(tree, TABLE)
    assert (np.bincount(leaves, minlength=tree.leaves) >= min(leaf_rows, TABLE.num_rows)).all()
    assert (route(tree_of(tree.text(), "i"), TABLE) == leaves).all()


@settings(max_examples=200, deadline=None)
@given(QUERIES)
def test_a_box_holds_every_row_of_its_query(text: str) -> None:
    predicate = understood(text)
    constants: dict[str, list[Any]] = {name: [] for name in NAMES}
    for name, value in constants_of(predicate):
        constants[name].append(value)
    # Of half of the values only the constants tell apart, as in a sample.
    axes = {name: axis_among(TABLE[name].slice(0, 3), constants[name]) for name in NAMES}
    kept = matches(TABLE, predicate).to_numpy(zero_copy_only=False)
    codes = np.stack([axes[name].codes(TABLE[name]) for name in NAMES])
    for name, spans in box_of(predicate, axes).items():
        if name:
            own = codes[NAMES.index(name)]
            inside = np.zeros(len(own), np.bool_)
            for low, high in spans:
                inside |= (own >= low) & (own <= high)
            assert not (kept & ~inside).any(), (text, name, spans)
    met = workload_of([Query(predicate)], NAMES, list(axes.values())).meets(codes, codes)
    assert not (kept & ~met[0]).any(), text


@pytest.mark.parametrize("name", NAMES)
def test_numbers_follow_the_order_of_every_type(name: str) -> None:
    column = TABLE[name]
    codes = axis_among(column, ()).codes(column)
    ranked = sorted({(int(code), key(value)) for code, value in zip(codes, column.to_pylist(), strict=True)})
    values = [value for _, value in ranked]
    assert values == sorted(values, key=lambda one: one)
    assert ranked[0] == (0, (0, 0))


def points(count: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    x, kind = rng.normal(0, 1, count), rng.choice(["cash", "card", "none", "other"], count, p=[0.6, 0.3, 0.07, 0.03])
    return pa.table({"x": x, "y": x + rng.normal(0, 0.3, count), "z": rng.random(count), "kind": kind})


def boxes(table: pa.Table, count: int, seed: int) -> list[Query]:
    """Small squares of x and y where rows are; slices of z of one kind or two."""
    rng = np.random.default_rng(seed)
    texts = []
    for number in rng.integers(0, table.num_rows, count):
        x, y, z = (table[name][int(number)].as_py() for name in ("x", "y", "z"))
        kinds = rng.choice(["'none'", "'other'", "'none', 'other'", "'card'"])
        square = f"x BETWEEN {x - 0.1}D AND {x + 0.1}D AND y BETWEEN {y - 0.1}D AND {y + 0.1}D"
        texts.append(square if rng.random() < 0.6 else f"kind IN ({kinds}) AND z BETWEEN {z}D AND {z + 0.05}D")
    return [Query(understood(text, table)) for text in texts]


def test_queries_like_the_logged_ones_read_little() -> None:
    table = points(20_000, 1)
    logged, others = boxes(table, 150, 2), boxes(table, 150, 3)
    tree = learn(table, logged, 100)
    by_x = learn(table, [Query(understood("x > 0", table))], 100)
    least = np.mean([matches(table, query.predicate).true_count / table.num_rows for query in others])
    shares = {
        name: expected_share(by, table, others).mean() for name, by in (("learned", tree), ("x", by_x), ("none", None))
    }
    assert shares["none"] == 1.0
    assert shares["learned"] < 0.5 * shares["x"]
    assert least < shares["learned"] < 0.1
    assert expected_share(tree, table, logged).mean() <= 1.1 * shares["learned"]


def test_some_queries_are_enough_to_learn_from() -> None:
    table = points(20_000, 1)
    others = boxes(table, 150, 3)
    few, many = (expected_share(learn(table, boxes(table, count, 2), 100), table, others).mean() for count in (15, 300))
    assert many < few < 3 * many


def test_weights_count() -> None:
    table = points(5_000, 1)
    queries = ["x BETWEEN 0.5 AND 0.52", "z BETWEEN 0.2 AND 0.22"]
    for heavy in (0, 1):
        weighed = [Query(understood(text, table), 100.0 if n == heavy else 1.0) for n, text in enumerate(queries)]
        shares = expected_share(learn(table, weighed, 1_000), table, weighed)
        assert shares[heavy] < shares[1 - heavy]


def test_without_rows_or_anything_to_cut_there_is_one_leaf() -> None:
    for table in (TABLE.slice(0, 0), pa.table({"a": [7] * 100}), pa.table({"a": pa.nulls(100, pa.int32())})):
        tree = learn(table, [Query(understood(f"{table.column_names[0]} IS NULL", table))], 5)
        assert tree.leaves == 1
        assert (route(tree, table) == 0).all()


def test_rows_that_gain_most_are_laid_out_anew_first() -> None:
    table = points(20_000, 1)
    before = learn(table, boxes(table, 100, 2), 100)
    asked = [Query(understood(f"z BETWEEN {z}D AND {z + 0.02}D AND x > 1", table)) for z in np.arange(0, 1, 0.02)]
    anew = learn(table, asked, 100)
    found = benefits(before, table, asked, 100)
    now, best = (expected_share(tree, table, asked).mean() for tree in (before, anew))
    recovered = []
    for share in (0.0, 0.2, 0.4, 1.0):
        chosen = affordable(found, share)
        assert sum(one.share for one in chosen) <= share + 1e-9
        spans = sorted(one.leaves for one in chosen)
        assert all(one[1] <= other[0] for one, other in pairwise(spans))
        tree = grafted(before, chosen)
        after = expected_share(tree, table, asked).mean()
        assert after == pytest.approx(now - sum(one.gain for one in chosen) / len(asked))
        recovered.append((now - after) / (now - best))
    assert recovered[0] == 0.0
    assert recovered[1] >= 0.5
    assert recovered[2] >= 0.75
    assert recovered[3] >= 1.0


@settings(max_examples=20, deadline=None)
@given(TREES, TREES)
def test_a_tree_takes_sub_trees_of_another(
    one: tuple[list[str], int, set[str]], other: tuple[list[str], int, set[str]]
) -> None:
    trees = [
        learn(TABLE.select(sorted(names)), [Query(understood(text)) for text in texts], rows)
        for texts, rows, names in (one, other)
    ]
    node = len(trees[0].column) // 2
    leaves = (int(trees[0].first_leaf[node]), int(trees[0].first_leaf[trees[0].ends[node]]))
    tree = grafted(trees[0], [Benefit(node, leaves, 1.0, 1.0, trees[1])])
    before, below = route(trees[0], TABLE), route(trees[1], TABLE)
    inside = (before >= leaves[0]) & (before < leaves[1])
    beyond = before - (leaves[1] - leaves[0]) + trees[1].leaves
    expected = np.where(inside, leaves[0] + below, np.where(before >= leaves[1], beyond, before))
    assert (route(tree, TABLE) == expected).all()
    assert tree.leaves == trees[0].leaves - (leaves[1] - leaves[0]) + trees[1].leaves
