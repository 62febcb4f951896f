"""The content of an index of summaries, in Spark: one row a file with its sketches, and the pieces of its sieves.

Sketches take one pass over the files and no shuffle. A sieve needs the keys of all files together: pairs of key and file are spread
by ranges of the key, and each partition makes a piece.
"""

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from grebe.formats.spark_types import arrow_type, type_json
from grebe.indexes.classic import functions
from grebe.indexes.columns import Chosen, spark_schema
from grebe.indexes.content.by_range import column, cut_by, distinct_sample, quoted
from grebe.indexes.content.sealed import sealed, unsealed
from grebe.indexes.kind import FILE_COLUMN, Arranged, Rows
from grebe.indexes.sieving.keys import Keys, keys_for, pack_separators, separators_of, unpack_separators
from grebe.indexes.sketches.columns import physical, width_of
from grebe.indexes.summary.fold import SketchFold
from grebe.indexes.summary.pieces import KEY, PieceBuilder, PieceMerger, bytes_of
from grebe.indexes.summary.shape import HIGH, LOW, PAYLOAD, SIEVE, HeldSieve, Shape, shape_of
from grebe.indexes.workers import map_in_arrow
from grebe.log.entry import IndexSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FILES_A_FILE = 100_000
"""Summaries of so many files lie in one file of the content."""
_PAIRS_A_PIECE = 1_250_000
_PIECES_A_FILE = 64
_SAMPLED = 100_000
_SEED = 42
_TEXTS = ("string", "binary")
_PIECE_FIELDS = [(SIEVE, "integer"), (LOW, "long"), (HIGH, "long"), (PAYLOAD, "binary")]


def arrange(index: str, spec: IndexSpec, rows: Rows) -> Arranged:
    shape = shape_of(index, spec)
    parts = [_sketched(shape, rows), *(part for sieve in shape.sieves for part in _sieved(shape, sieve, rows))]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.union(part)
    return Arranged(whole, {}, {})


def _sketched(shape: Shape, rows: Rows) -> "DataFrame":
    made = rows.folded(SketchFold(shape.sketches), {on.path[0] for held in shape.sketches for on in held.on})
    older = rows.older(shape.fields)
    own = _filled(made, shape)
    if older is not None:
        own = own.unionByName(older.where(functions.col(FILE_COLUMN).isNotNull()))
    return own.coalesce(max(1, rows.files // _FILES_A_FILE)).sortWithinPartitions(FILE_COLUMN)


def _filled(frame: "DataFrame", shape: Shape) -> "DataFrame":
    """With all columns of the content, in their order."""
    there = set(frame.columns)
    return frame.select(
        *(
            column(name) if name in there else functions.lit(None).cast(_ddl(kind)).alias(name)
            for name, kind in shape.fields
        )
    )


def _ddl(kind: str) -> Any:
    from pyspark.sql.types import StructType

    return StructType.fromJson(spark_schema([("one", kind)])).fields[0].dataType


def _sieved(shape: Shape, sieve: HeldSieve, rows: Rows) -> "list[DataFrame]":
    from pyspark.sql.types import StructType

    key = functions.col(quoted(*sieve.column.path)).alias(KEY)
    pairs = rows.frame(again=True).select(key, FILE_COLUMN).where(column(KEY).isNotNull())
    kept = _separators_there(sieve, rows, shape)
    keys, width = _keys(sieve, pairs, kept, rows)
    schema = StructType.fromJson(spark_schema(_PIECE_FIELDS))
    count = rows.facts.rows
    # A key that many rows of a file have counts once: it is one pair for the sieve, and must not take the bytes of others.
    keyed, by = Chosen((KEY,), sieve.column.type), [FILE_COLUMN]
    sample, distinct = distinct_sample(pairs, keyed, by, count) if count > _PAIRS_A_PIECE else ([], count)
    parts = max(1, -(-distinct // _PAIRS_A_PIECE))
    ranged, _ = cut_by(sample, pairs, keyed, by, parts)
    budget = int(sieve.budget * count * width / parts)
    made = map_in_arrow(ranged, PieceBuilder(sieve.number, keys, budget), schema)
    older = rows.older(shape.fields)
    if older is not None:
        before = older.where((column(SIEVE) == sieve.number) & column(LOW).isNotNull()).select(*made.columns)
        merger = PieceMerger(sieve.number, rows.left_out)
        made = map_in_arrow(made.union(before).repartition(1), merger, schema)
    files = max(1, parts // _PIECES_A_FILE)
    laid = (made.repartitionByRange(files, LOW) if files > 1 else made.repartition(1)).sortWithinPartitions(LOW)
    found = [_filled(laid, shape)]
    if keys.separators is not None:
        packed = sealed(pack_separators(keys.separators))
        one = pairs.sparkSession.createDataFrame([(sieve.number, None, None, bytearray(packed))], schema)
        found.append(_filled(one.coalesce(1), shape))
    return found


def _keys(sieve: HeldSieve, pairs: "DataFrame", kept: pa.Array | None, rows: Rows) -> tuple[Keys, float]:
    """And how many bytes a value takes."""
    separators = kept
    width = width_of(sieve.on.type)
    if sieve.on.type.name in _TEXTS:
        share = min(1.0, _SAMPLED / max(1, rows.facts.rows))
        sampled = pairs.select(KEY).sample(share, seed=_SEED).limit(2 * _SAMPLED).collect()
        stored = arrow_type(type_json(sieve.column.type))
        texts = [bytes(row[0]) if isinstance(row[0], bytearray) else row[0] for row in sampled]
        values = physical(pa.array(texts, stored), sieve.on.type)
        separators = separators_of(values) if separators is None else separators
        width = bytes_of(values) / max(1, len(values))
    keys = keys_for(sieve.on.type, separators)
    assert keys is not None  # the spec lets no other types pass
    return keys, width


def _separators_there(sieve: HeldSieve, rows: Rows, shape: Shape) -> pa.Array | None:
    """Those of the index as it is: runs that share them can be merged."""
    if sieve.on.type.name not in _TEXTS:
        return None
    existing = rows.existing(shape.fields)
    if existing is None:
        return None
    found = existing.where((column(SIEVE) == sieve.number) & column(LOW).isNull()).select(PAYLOAD).limit(1).collect()
    return unpack_separators(unsealed(bytes(found[0][0]), "the separators"), sieve.on.type) if found else None
