"""The entries of a lookup index in Spark: key, file, row, sorted, each partition a range of the key.

They are written as small row groups, the *chunks* that a lookup reads one of, each with a Bloom filter of its keys. Parquet's
writer puts all filters of a file right before its footer, so that one request brings both.
"""

from collections.abc import Sequence

from grebe.indexes.classic import functions
from grebe.indexes.content import entries
from grebe.indexes.content.by_range import by_range, column, quoted
from grebe.indexes.content.shape import Shape, shape_of
from grebe.indexes.kind import FILE_COLUMN, Arranged, Rows
from grebe.log.entry import IndexSpec

CHUNK_ROWS = 6_150
"""As many keys as a filter of 8 KB holds with one percent of false answers."""
_FALSE_ANSWERS = "0.01"


def arrange(index: str, spec: IndexSpec, rows: Rows) -> Arranged:
    shape = shape_of(index, spec)
    keys = [one.content for one in shape.on]
    taken = entries.taken(rows, {one.path[0] for one in shape.columns}, shape.locators, spec.properties["file_level"])
    if shape.layout is not None:
        entries.require_located_alike(index, taken, shape.locators)
    places = [FILE_COLUMN, *taken.locators]
    kept = taken.frame.select(*(functions.col(quoted(*one.path)).alias(one.content) for one in shape.columns), *places)
    counted = rows.counted(kept, whole=True)
    count = rows.facts.rows if taken.rows is None else taken.rows
    laid, spread = by_range(counted, shape.on[0], places, entries.parts_for(count), count)
    return Arranged(
        frame=laid.sortWithinPartitions(*map(column, [*keys, *places])),
        options={**_writer(shape, taken.locators), "maxRecordsPerFile": str(entries.FILE_ROWS)},
        properties={
            "locators": list(taken.locators),
            "file_level": taken.file_level,
            "layout": {
                "buckets": 0,
                "bucket_by": [],
                "sort_by": keys[:1]
                if spread or (shape.layout is not None and len(shape.layout.sort_by) == 1)
                else keys,
                "reason": "sorted as a whole: a lookup index",
            },
        },
        maps=bool(taken.locators),
    )


def _writer(shape: Shape, locators: Sequence[str]) -> dict[str, str]:
    options = {
        # Numbers as differences to their neighbours: of sorted keys that is next to what there is to tell at all.
        "parquet.writer.version": "v2",
        "parquet.block.row.count.limit": str(CHUNK_ROWS),
        "parquet.page.row.count.limit": str(CHUNK_ROWS),
        "parquet.statistics.truncate.length": str(2**31 - 1),
        "parquet.bloom.filter.fpp": _FALSE_ANSWERS,
    }
    keys = CHUNK_ROWS
    if not entries.cuts_by_rows():
        keys *= 2
        options["parquet.block.size"] = str(CHUNK_ROWS * sum(_WIDTHS.get(one.type, _OTHERS) for one in shape.columns))
    for one in shape.on:
        options[f"parquet.bloom.filter.enabled#{one.content}"] = "true"
        options[f"parquet.bloom.filter.expected.ndv#{one.content}"] = str(keys)
        # A dictionary would take the filter's place, and sorted keys need none.
        options[f"parquet.enable.dictionary#{one.content}"] = "false"
    for name in locators:
        options[f"parquet.enable.dictionary#{name}"] = "false"
    return options


# What an entry takes before it is compressed, about: differences of sorted keys, and the place.
_WIDTHS = {
    "byte": 5,
    "short": 5,
    "integer": 6,
    "long": 10,
    "date": 6,
    "boolean": 5,
    "float": 8,
    "double": 12,
    "timestamp": 11,
}
_OTHERS = 24
