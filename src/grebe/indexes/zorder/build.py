"""The rows of an index along a curve, in Spark: DataFrame in, DataFrame out, each partition a stretch of the curve.

One pass over the data, and one over the columns of the curve alone, for a sample. Each run is ranked by a sample of its own rows:
it is laid out as suits them, also where new rows are of other days or places than the old ones, and runs that are merged are laid
out anew.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from grebe.indexes.classic import functions
from grebe.indexes.columns import Chosen
from grebe.indexes.content.by_range import column as column_named
from grebe.indexes.content.by_range import cut_by
from grebe.indexes.content.copied import WRITER, kept_of
from grebe.indexes.content.parts import parts_for, rows_per_file
from grebe.indexes.content.shape import shape_of
from grebe.indexes.kind import FILE_COLUMN, Arranged, Rows
from grebe.indexes.zorder.curve import spread, turns
from grebe.indexes.zorder.ranks import Ranks, ranks_of, stepped
from grebe.log.entry import IndexSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_CURVE = "_grebe_curve"
_KEY = Chosen((_CURVE,), "long")
_ADDRESS = "_grebe_address"
_PLACE = "_grebe_place"
_STEP = "_grebe_step"
_PAGE_ROWS = 1_000
"""A box meets the fewer rows the smaller pages are; these were seen to cost 1% more bytes than pages of 4,000 rows, and boxes of
two to four columns to read a third less."""
_CELLS_PER_PAGE = 4
"""Along each column: pages are cut anywhere on the curve, so cells must be finer than pages."""
_FEWEST_LEVELS, _MOST_LEVELS = 5, 10
_MOST_BITS = 62
_FEW_PARTS = 2
_SAMPLED_PER_STEP = 40
_SAMPLED_PER_PART = 400
_LEAST_SAMPLED, _MOST_SAMPLED = 20_000, 500_000
_SEED = 42


def arrange(index: str, spec: IndexSpec, rows: Rows) -> Arranged:
    shape = shape_of(index, spec)
    facts = rows.facts
    expected = facts.bytes_of([*(column.path for column in shape.columns), (FILE_COLUMN,)])
    wanted = parts_for(expected)
    # A small run is one file: finding where to cut it would take longer than writing it, and its pages are found as well.
    parts = wanted if wanted > _FEW_PARTS else 1
    kept = rows.counted(kept_of(rows.frame(again=True), shape), whole=shape.where is None)
    levels = levels_for(facts.rows, len(shape.on))
    sample = _sampled(kept, shape.on, facts.rows, parts, levels)
    try:
        ranked = _ranked(sample, shape.on, levels)
        curve = spec.properties["curve"]
        cuts = _cuts(_along(sample, curve, ranked, levels), parts) if parts > 1 else []
    finally:
        sample.unpersist()
    others = [column.content for column in shape.columns]
    laid, _ = cut_by(cuts, _along(kept, curve, ranked, levels), _KEY, others, parts)
    return Arranged(
        frame=laid.sortWithinPartitions(_CURVE).drop(_CURVE),
        options={
            **WRITER,
            "parquet.page.row.count.limit": str(_PAGE_ROWS),
            "maxRecordsPerFile": str(rows_per_file(expected, facts.rows)),
        },
        properties={
            "layout": {
                "buckets": 0,
                "bucket_by": [],
                "sort_by": [],
                "along": [column.content for column in shape.on],
                "reason": f"along a {curve} curve through {len(shape.on)} columns",
            }
        },
    )


def levels_for(rows: int, columns: int) -> int:
    """Of the grid that the curve goes through: so that pages are boxes of many cells."""
    pages = max(1.0, rows / _PAGE_ROWS)
    wanted = math.ceil(math.log2(_CELLS_PER_PAGE * pages ** (1 / columns)))
    return min(_MOST_LEVELS, max(_FEWEST_LEVELS, wanted), _MOST_BITS // columns)


def _sampled(kept: "DataFrame", on: Sequence[Chosen], rows: int, parts: int, levels: int) -> "DataFrame":
    """Some rows of the columns of the curve, at hand. To be let go."""
    wanted = max(_LEAST_SAMPLED, parts * _SAMPLED_PER_PART, _SAMPLED_PER_STEP << levels)
    taken = kept.select(*(column_named(column.content) for column in on))
    share = min(1.0, wanted / max(1, rows))
    some = taken if share == 1.0 else taken.sample(share, seed=_SEED)
    return some.limit(_MOST_SAMPLED).repartition(1).persist()


def _ranked(sample: "DataFrame", on: Sequence[Chosen], levels: int) -> list[Ranks]:
    """Columns that have but one value say nothing of where a row lies."""
    steps = stepped(sample, on, 1 << levels)
    ranked = [ranks_of(column, texts, 1 << levels) for column, texts in zip(on, steps, strict=True)]
    return [one for one in ranked if one.tell]


def _along(frame: "DataFrame", curve: str, ranked: Sequence[Ranks], levels: int) -> "DataFrame":
    """With one column more: the number of each row's cell along the curve."""
    if not ranked:
        return frame.withColumn(_CURVE, functions.lit(0).cast("long"))
    names, count = frame.columns, len(ranked)
    places = [f"{_PLACE}{number}" for number in range(count)]
    frame = frame.withColumns({place: functions.lit(0) for place in places})
    for step in range(max(one.steps for one in ranked)):
        halved = {at: one.halved(at, step) for at, one in zip(places, ranked, strict=True) if step < one.steps}
        frame = frame.withColumns({place: functions.expr(sql) for place, sql in halved.items()})
    codes = [spread(np.arange(1 << levels), column, count, levels).tolist() for column in range(count)]
    address = " | ".join(one.code(places[column], codes[column].__getitem__) for column, one in enumerate(ranked))
    if curve == "z" or count == 1:
        return frame.select(*map(column_named, names), functions.expr(address).alias(_CURVE))
    known = turns(count)
    mask = (1 << known.bits) - 1
    table = f"CAST(split('{','.join(map(str, known.table.tolist()))}', ',') AS ARRAY<BIGINT>)"
    frame = frame.withColumn(_ADDRESS, functions.expr(address))
    steps = -(
        -levels // known.levels
    )  # levels that are too many are those of a larger grid with this one in its first corner
    state = "0L"
    for step in range(steps):
        part = f"shiftright({_ADDRESS}, {(steps - 1 - step) * known.bits}) & {mask}L"
        found = f"element_at({table}, CAST(({state} | {part}) + 1 AS INT))"
        frame = frame.withColumn(f"{_STEP}{step}", functions.expr(found))
        state = f"({_STEP}{step} & {~mask}L)"
    numbers = (f"shiftleft({_STEP}{step} & {mask}L, {(steps - 1 - step) * known.bits})" for step in range(steps))
    return frame.select(*map(column_named, names), functions.expr(" | ".join(numbers)).alias(_CURVE))


def _cuts(sample: "DataFrame", parts: int) -> list[str | None]:
    """Numbers along the curve that cut the sample into so many equal parts."""
    (numbers,) = stepped(sample, [_KEY], parts)
    return [text for text in numbers if text is not None]
