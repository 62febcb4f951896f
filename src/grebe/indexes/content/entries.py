"""What kinds share that keep one entry a row, with its place: whether records can be found again, how their rows are taken, and how
entries are cut into the small row groups (*chunks*) that a lookup reads one of."""

from collections.abc import Collection, Mapping, Sequence, Set
from typing import Any

import pyarrow as pa

from grebe.errors import CorruptIndex, Unsupported
from grebe.formats import Reading, format_named
from grebe.indexes import columns
from grebe.indexes.columns import Chosen
from grebe.indexes.kind import LocatedRows, Rows, locator_columns
from grebe.log.entry import IndexSpec

FILE_ROWS = 1_000_000
"""What is known of the chunks of a file is read as a whole, and must stay about a megabyte."""
_FEWEST_ROWS, _FEW_FILES = 50_000, 8
# Of these Spark itself tells the number of a row in its file, however the file is read.
_NUMBERED_BY_SPARK = ("parquet",)


def why_not_located(reading: Reading, names: Set[str]) -> str | None:
    """Why an index of these columns can tell files only; None where nothing speaks against telling records before the files have
    been looked at."""
    if reading.format in _NUMBERED_BY_SPARK:
        return None
    taken = [column.name for column in reading.columns if column.name.lower() in locator_columns(reading.format)]
    if taken:
        return f"the table has a column {taken[0]}, a name that Grebe needs for the places of records"
    try:
        format_named(reading.format).options.check_readable(reading.format, dict(reading.options))
        pa.schema([column.arrow for column in reading.columns if column.name in names])
    except Unsupported as refusal:
        return str(refusal.args[0])
    return None


def spec_of(
    kind: str, on: Sequence[Chosen], include: Sequence[Chosen], reading: Reading, properties: Mapping[str, Any]
) -> IndexSpec:
    """What the log remembers of a kind that keeps an entry of every row."""
    every = (*on, *include)
    file_level = why_not_located(reading, {column.path[0] for column in every})
    return IndexSpec(
        kind=kind,
        columns=tuple(column.name for column in on),
        properties={
            **properties,
            "include": [column.name for column in include],
            "buckets": 0,
            "lineage": True,
            "where": None,
            "locators": [] if file_level else list(locator_columns(reading.format)),
            "file_level": file_level,
            "reading": columns.restricted(reading, [column.path for column in every]).to_dict(),
        },
    )


def taken(rows: Rows, names: Collection[str], locators: Sequence[str], file_level: str | None) -> LocatedRows:
    """The rows with their places, if these can be told, or why not."""
    if locators:
        return rows.located(names)
    return LocatedRows(rows.frame(again=parts_for(rows.facts.rows) > 1), (), file_level=file_level)


def require_located_alike(index: str, found: LocatedRows, locators: Sequence[str]) -> None:
    """Of rows that join others in an index."""
    if found.locators != tuple(locators):
        raise Unsupported(f"index {index}: {found.file_level}; refresh with mode='full'", detail="LOCATORS_CHANGED")


def parts_for(rows: int) -> int:
    """Files of at most so many rows; of a smaller table some, so that they are written side by side."""
    return max(-(-rows // FILE_ROWS), min(_FEW_FILES, rows // _FEWEST_ROWS), 1)


def places_in(reading: Reading, locators: Sequence[str], found: pa.Table | None) -> pa.Table | None:
    """The places of entries as the format has them; None where only files are known."""
    if not locators:
        return None
    schema = format_named(reading.format).locator.schema
    if len(locators) != len(schema.names):
        raise CorruptIndex(
            f"an index of {reading.format} files names {len(locators)} columns for the places of records, not {len(schema.names)}; "
            "create it anew",
            detail="SPEC",
        )
    return schema.empty_table() if found is None else found.select(locators).rename_columns(schema.names)


def cuts_by_rows() -> bool:
    """The Parquet of Spark 3.5 cuts row groups by bytes only, so that chunks are but about as large as they should be."""
    import pyspark

    return pyspark.__version__ >= "4"
