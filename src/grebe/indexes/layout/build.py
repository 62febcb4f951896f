"""The rows of an index laid out by a tree, in Spark: DataFrame in, DataFrame out, each partition a stretch of leaves.

The tree is learned once, from a sample, when the index is made, and kept in the log: new rows are laid out by it too. Wherever a
row is sent, queries go by the true bounds of files, row groups and pages, so that no answer hangs on the tree.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from grebe.formats.spark_types import arrow_type, type_json
from grebe.indexes import where
from grebe.indexes.classic import functions
from grebe.indexes.columns import Chosen
from grebe.indexes.content.by_range import column as column_named
from grebe.indexes.content.by_range import cut_by
from grebe.indexes.content.copied import WRITER, kept_of
from grebe.indexes.content.parts import parts_for, rows_per_file
from grebe.indexes.content.shape import Shape, shape_of
from grebe.indexes.kind import FILE_COLUMN, Arranged, Facts, Rows
from grebe.indexes.layout.learn import learn
from grebe.indexes.layout.shares import sides_of
from grebe.indexes.layout.tree import Tree, route, tree_of
from grebe.indexes.layout.workload import Query
from grebe.indexes.workers import map_in_arrow
from grebe.log.entry import IndexSpec
from grebe.predicate.about import renamed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LEAF = "_grebe_leaf"
_KEY = Chosen((_LEAF,), "long")
_PAGE_ROWS = 500
"""Against pages of 1,000 rows, these were seen to cost 5% more bytes, and queries to read an eighth less."""
_DICTIONARY_BYTES = 16 * 1024
"""Who reads one page of a column reads its dictionary too. Against dictionaries of any size, these were seen to cost 1.5% more
bytes, and queries to read up to a quarter less."""
_LEAF_ROWS = 500
"""At the least; leaves that no cut fits any more have up to twice as many."""
_MOST_LEAVES = 8_192
"""The tree is a part of the log, some ten bytes a leaf. Leaves of larger tables are of several pages each."""
_FEW_PARTS = 2
_SAMPLED_PER_LEAF = 16
_LEAST_SAMPLED = 20_000
_SEED = 42


def arrange(index: str, spec: IndexSpec, rows: Rows) -> Arranged:
    shape = shape_of(index, spec)
    facts = rows.facts
    expected = facts.bytes_of([*(column.path for column in shape.columns), (FILE_COLUMN,)])
    wanted = parts_for(expected)
    # A small run is one file: finding where to cut it would take longer than writing it, and its pages are found as well.
    parts = wanted if wanted > _FEW_PARTS else 1
    kept = rows.counted(kept_of(rows.frame(again=True), shape), whole=shape.where is None)
    known = "tree" in spec.properties
    sample, share = _sampled(kept, shape, facts) if parts > 1 or not known else (None, 1.0)
    if known:
        tree, layout = tree_of(spec.properties["tree"], index), spec.properties["layout"]
    else:
        assert sample is not None
        tree, layout = learned(spec, shape, sample, facts, share)
    cuts = sorted(route(tree, sample).tolist()) if sample is not None and parts > 1 else []
    others = [column.content for column in shape.columns]
    laid, _ = cut_by([str(leaf) for leaf in cuts], _routed(kept, tree), _KEY, others, parts)
    order = [column_named(_LEAF)]
    if facts.rows > 2 * _LEAF_ROWS * tree.leaves:
        order.append(column_named(shape.on[0].content))
    return Arranged(
        frame=laid.sortWithinPartitions(*order).drop(_LEAF),
        options={
            **WRITER,
            "parquet.page.row.count.limit": str(_PAGE_ROWS),
            "parquet.dictionary.page.size": str(_DICTIONARY_BYTES),
            "maxRecordsPerFile": str(rows_per_file(expected, facts.rows)),
        },
        properties={"layout": layout, "tree": tree.text()},
    )


def learned(spec: IndexSpec, shape: Shape, sample: pa.Table, facts: Facts, share: float) -> tuple[Tree, dict[str, Any]]:
    """From a sample, under the names of the content, which is about this share of all rows; and how rows lie by that tree."""
    tree = learn(sample, _queries(spec, shape), leaf_share(facts, share * facts.rows))
    return tree, _described(tree, sample, shape)


def leaf_share(facts: Facts, sampled: float) -> float:
    """Of so many sampled rows, those of a leaf at the least."""
    return sampled / max(1, facts.rows) * max(_LEAF_ROWS, facts.rows / _MOST_LEAVES)


def _described(tree: Tree, sample: pa.Table, shape: Shape) -> dict[str, Any]:
    return {
        "buckets": 0,
        "bucket_by": [],
        "sort_by": [],
        "along": [column.content for column in shape.on],
        "sides": [round(side, 6) for side in sides_of(tree, sample)],
        "reason": f"in {tree.leaves} leaves of a tree that cuts {', '.join(tree.names) or 'nothing'}",
    }


def _queries(spec: IndexSpec, shape: Shape) -> list[Query]:
    """Over the columns of the content."""
    names = {column.path: column.content for column in shape.on}
    asked = [(where.recalled(text, shape.reading), weight) for text, weight in spec.properties["queries"]]
    return [Query(renamed(predicate, names), weight) for predicate, weight in asked]


def _sampled(kept: "DataFrame", shape: Shape, facts: Facts) -> tuple[pa.Table, float]:
    """Some rows of the columns that may be cut, and about which share of all rows they are."""
    wanted = max(_LEAST_SAMPLED, _SAMPLED_PER_LEAF * min(_MOST_LEAVES, facts.rows // _LEAF_ROWS))
    share = min(1.0, wanted / max(1, facts.rows))
    taken = kept.select(*(column_named(column.content) for column in shape.on))
    # The limit is there for the case that the number of rows was guessed far too low.
    some = (taken if share == 1.0 else taken.sample(share, seed=_SEED)).limit(4 * wanted)
    return collected(some, shape.on), share


def collected(frame: "DataFrame", of: Sequence[Chosen]) -> pa.Table:
    """The rows of a frame that has just these columns."""
    packed = map_in_arrow(_numbered(frame), _packed, "packed binary").collect()
    tables = [pa.ipc.open_stream(row[0]).read_all() for row in packed]
    if tables:
        return pa.concat_tables(tables).rename_columns([column.content for column in of])
    return pa.schema([(column.content, arrow_type(type_json(column.type))) for column in of]).empty_table()


def _numbered(frame: "DataFrame") -> "DataFrame":
    """With other names: Spark takes those of whole columns for paths where rows go to Python."""
    return frame.toDF(*(f"c{number}" for number in range(len(frame.columns))))


def _packed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        yield pa.record_batch([pa.array([sink.getvalue().to_pybytes()], pa.binary())], names=["packed"])


@dataclass(frozen=True)
class _Router:
    tree: Tree
    names: tuple[str, ...]
    """Of the columns that come."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            leaf = route(self.tree, pa.record_batch(batch.columns, names=list(self.names)))
            yield pa.record_batch([*batch.columns, pa.array(leaf, pa.int64())], names=[*batch.schema.names, _LEAF])


def _routed(frame: "DataFrame", tree: Tree) -> "DataFrame":
    """With one column more: the number of each row's leaf."""
    if tree.leaves == 1:
        return frame.withColumn(_LEAF, functions.lit(0).cast("long"))
    from pyspark.sql.types import LongType, StructField, StructType

    names, plain = frame.columns, _numbered(frame)
    schema = StructType([*plain.schema.fields, StructField(_LEAF, LongType())])
    return map_in_arrow(plain, _Router(tree, tuple(names)), schema).toDF(*names, _LEAF)
