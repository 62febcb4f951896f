"""What a table is laid out by in place: leaves that Spark finds as we do, and files that queries read by what a format tells."""

import random
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grebe.advisor.organise.in_place import files_met
from grebe.indexes.layout.laid_out import with_leaves
from grebe.indexes.layout.learn import learn
from grebe.indexes.layout.tree import route
from grebe.indexes.layout.workload import Query
from grebe.predicate.arrow_types import from_arrow, to_physical
from grebe.predicate.evaluate import matches
from grebe.predicate.tree import And, Column, Compare, IsNotNull, IsNull, Literal, Or, Predicate
from grebe.sources import open_source
from grebe.sources.delta import DeltaSource
from grebe.sources.file_bounds import bounds_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.core]
TYPES = {
    "b": pa.bool_(),
    "d": pa.date32(),
    "f": pa.float32(),
    "g": pa.float64(),
    "i": pa.int32(),
    "l": pa.int64(),
    "n": pa.decimal128(9, 2),
    "o": pa.decimal128(30, 3),
    "s": pa.string(),
    "t": pa.timestamp("us", "UTC"),
    "x y": pa.binary(),
}


def values(chance: random.Random, kind: pa.DataType, count: int) -> pa.Array:
    numbers = [chance.choice([None, *(chance.randrange(-40, 40) for _ in range(6))]) for _ in range(count)]
    if pa.types.is_boolean(kind):
        return pa.array([None if one is None else one > 0 for one in numbers])
    if pa.types.is_floating(kind):
        special = {0: float("nan"), 1: -0.0, 2: float("inf"), 3: float("-inf")}
        return pa.array([None if one is None else special.get(one, one / 8) for one in numbers], kind)
    if kind in (pa.string(), pa.binary()):
        texts = [None if one is None else chr(0x100 + 37 * abs(one)) * (one % 3) for one in numbers]
        return pa.array(texts, pa.string()).cast(kind)
    if pa.types.is_decimal(kind):
        return pa.array([None if one is None else Decimal(one) / 4 for one in numbers], kind)
    return pa.array(numbers, pa.int32() if pa.types.is_date(kind) else pa.int64()).cast(kind)


@pytest.mark.spark
@pytest.mark.parametrize("deepest", [3, 24])
def test_spark_finds_the_same_leaf_for_values_of_every_type(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deepest: int
) -> None:
    monkeypatch.setattr("grebe.indexes.layout.laid_out._DEEPEST", deepest)
    chance = random.Random(deepest)
    held = pa.table({name: values(chance, kind, 600) for name, kind in TYPES.items()})
    asked = []
    for name in TYPES:
        one = held.column(name).drop_null()[0]
        kind = from_arrow(held.schema.field(name).type)
        physical = to_physical(pa.array([one.as_py()], one.type), kind)[0].as_py()
        asked.append(
            Query(Compare(chance.choice(["<", "<=", ">", ">="]), Column((name,), kind), Literal(physical, kind)))
        )
        asked.append(Query(IsNull(Column((name,), kind))))
    tree = learn(held, asked, 4)
    assert set(tree.names) == set(TYPES)
    pq.write_table(held.append_column("at", pa.array(range(600))), tmp_path / "rows.parquet")
    found = with_leaves(spark.read.parquet(str(tmp_path / "rows.parquet")), tree).orderBy("at").select("_grebe_leaf")
    assert [row[0] for row in found.collect()] == route(tree, held).tolist()


def comparing(chance: random.Random, name: str, among: pa.Array) -> Predicate:
    kind = from_arrow(among.type)
    held = to_physical(among.drop_null().unique(), kind).to_pylist()
    column = Column((name,), kind)
    if chance.random() < 0.2:
        return IsNull(column) if chance.random() < 0.5 else IsNotNull(column)
    return Compare(chance.choice(["<", "<=", ">", ">=", "="]), column, Literal(chance.choice(held), kind))


def test_no_file_with_a_matching_row_is_taken_for_skipped(tmp_path: Path) -> None:
    """By what Delta keeps of its files, NULLs and partitions among them, against the rows themselves."""
    from deltalake import write_deltalake

    chance, names = random.Random(5), ("d", "i", "n", "s")
    parts = []
    for number in range(12):
        part = pa.table({name: values(chance, TYPES[name], 3) for name in names})
        parts.append(part.append_column("p", pa.array([number % 3 or None] * 3, pa.int64())))
        write_deltalake(str(tmp_path / "t"), parts[-1], mode="append", partition_by=["p"])
    lake, whole = open_source(str(tmp_path / "t"), format="delta"), pa.concat_tables(parts)
    assert isinstance(lake, DeltaSource)
    bounds = bounds_of(lake, lake.columns)
    own = [
        pq.read_table(pa.BufferReader(one.read(0, one.size)), partitioning=None).append_column(
            "p", pa.array([bounds.low.column("p")[place].as_py()] * 3, pa.int64())
        )
        for place, one in enumerate(lake.data_files(lake.files()))
    ]
    asked = []
    for _ in range(200):
        some = chance.sample([*names, "p"], 2)
        below = [comparing(chance, name, whole.column(name).combine_chunks()) for name in some]
        asked.append(Query(And(tuple(below)) if chance.random() < 0.7 else Or(tuple(below))))
    met = files_met(bounds, [*names, "p"], asked)
    there = np.array([[matches(rows, one.predicate).true_count > 0 for rows in own] for one in asked])
    assert not (there & ~met).any()
    assert 0.2 < met.mean() < 0.8
    assert bounds.rows.tolist() == [3] * 12
    assert sorted(Counter(bounds.group.tolist()).values()) == [4, 4, 4]
