"""The entries of a lookup index in Spark: key, file, row, sorted, each partition a range of the key.

They are written as small row groups, the *chunks* that a lookup reads one of, each with a Bloom filter of its keys. Parquet's
writer puts all filters of a file right before its footer, so that one request brings both.
"""

from collections.abc import Sequence

from grebe.errors import Unsupported
from grebe.indexes.classic import functions
from grebe.indexes.content.by_range import by_range, column, quoted
from grebe.indexes.content.shape import Shape, shape_of
from grebe.indexes.kind import FILE_COLUMN, Arranged, LocatedRows, Rows
from grebe.log.entry import IndexSpec

CHUNK_ROWS = 6_150
"""As many keys as a filter of 8 KB holds with one percent of false answers."""
_FALSE_ANSWERS = "0.01"
_FILE_ROWS = 1_000_000
"""A file's filters and footer are read as a whole, and must stay about a megabyte."""
_FEWEST_ROWS, _FEW_FILES = 50_000, 8


def arrange(index: str, spec: IndexSpec, rows: Rows) -> Arranged:
    shape = shape_of(index, spec)
    keys = [one.content for one in shape.on]
    taken = _taken(shape, rows, spec.properties["file_level"])
    if shape.layout is not None and taken.locators != shape.locators:
        raise Unsupported(f"index {index}: {taken.file_level}; refresh with mode='full'", detail="LOCATORS_CHANGED")
    places = [FILE_COLUMN, *taken.locators]
    kept = taken.frame.select(*(functions.col(quoted(*one.path)).alias(one.content) for one in shape.columns), *places)
    counted = rows.counted(kept, whole=True)
    count = rows.facts.rows if taken.rows is None else taken.rows
    laid, spread = by_range(counted, shape.on[0], places, parts_for(count), count)
    return Arranged(
        frame=laid.sortWithinPartitions(*map(column, [*keys, *places])),
        options={**_writer(shape, taken.locators), "maxRecordsPerFile": str(_FILE_ROWS)},
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


def _taken(shape: Shape, rows: Rows, file_level: str | None) -> LocatedRows:
    if shape.locators:
        return rows.located({one.path[0] for one in shape.columns})
    return LocatedRows(rows.frame(again=parts_for(rows.facts.rows) > 1), (), file_level=file_level)


def parts_for(rows: int) -> int:
    """Files of at most so many rows; of a smaller table some, so that they are written side by side."""
    return max(-(-rows // _FILE_ROWS), min(_FEW_FILES, rows // _FEWEST_ROWS), 1)


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
    if not _cuts_by_rows():
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


def _cuts_by_rows() -> bool:
    """The Parquet of Spark 3.5 cuts row groups by bytes only, so that chunks are but about as large as they should be."""
    import pyspark

    return pyspark.__version__ >= "4"
