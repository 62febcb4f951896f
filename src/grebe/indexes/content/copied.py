"""What all kinds that keep a copy of some columns share: which columns and rows those are, as asked for and as read."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from grebe.errors import InvalidIndex, Unsupported
from grebe.formats import Reading
from grebe.indexes import columns, where
from grebe.indexes.classic import functions
from grebe.indexes.columns import Chosen
from grebe.indexes.content.by_range import quoted
from grebe.indexes.content.shape import Shape, shape_of
from grebe.indexes.kind import FILE_COLUMN
from grebe.log.entry import IndexSpec
from grebe.predicate.text import to_sql
from grebe.predicate.tree import columns_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WRITER = {
    # Small enough that a range of the key reads a part of a file, large enough for columns to compress and scans to run.
    "parquet.block.size": str(32 * 1024 * 1024),
    # A fifth of the default: a key reads a page, and smaller pages were seen to cost neither bytes nor time of whole scans.
    "parquet.page.row.count.limit": "4000",
    # Bounds of text are exact, or there are none.
    "parquet.statistics.truncate.length": str(2**31 - 1),
    # Where rows lie, the bounds of pages find them: a filter would only add bytes.
    "parquet.bloom.filter.enabled": "false",
}
"""Options of the Parquet writer."""
OWN_NAMES = "_grebe_"
"""What names of columns begin with that are there only while rows are arranged."""


def require_named(kind: str, name: object) -> None:
    if not isinstance(name, str) or not name:
        raise InvalidIndex(f"an index needs a name: {kind}(name, on=…)", detail="NAME")


def require_own_names(reading: Reading, index: str) -> None:
    """That the table has no column that is named as those are which are there only while rows are arranged."""
    for column in reading.columns:
        if column.name.lower().startswith(OWN_NAMES):
            raise InvalidIndex(
                f"index {index}: the table has a column {column.name}, a name that Grebe needs for itself; rename it",
                detail="RESERVED_NAME",
            )


def require_lineage(lineage: object, index: str) -> None:
    if not isinstance(lineage, bool):
        raise InvalidIndex(f"index {index}: lineage is True or False", detail="LINEAGE")


def columns_named(on: object, include: object, index: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    keys, others = columns.names_of(on, "on", index), columns.names_of(include, "include", index)
    if not keys:
        raise InvalidIndex(f"index {index}: on names no column", detail="COLUMNS")
    for name in (*keys, *others):
        columns.path_of(name, index)
    return keys, others


def spec_of(
    kind: str,
    index: str,
    names: tuple[Sequence[str], Sequence[str]],
    condition: str | None,
    properties: Mapping[str, Any],
    reading: Reading,
    case_sensitive: bool,
    time_zone: str,
    ansi: bool,
) -> IndexSpec:
    """`names`: of the columns indexed on and of those included."""
    on, include = (columns.choose(some, reading, case_sensitive, index) for some in names)
    columns.require_no_clash((*on, *include), reading, index)
    columns.require_keys(on, index)
    columns.require_kept(include, index)
    meant = None if condition is None else where.understood(condition, reading, case_sensitive, time_zone, ansi, index)
    used = [column.path for column in (*on, *include)]
    kept = columns.restricted(reading, used if meant is None else [*used, *columns_of(meant)])
    return IndexSpec(
        kind=kind,
        columns=_names(on),
        properties={
            "include": list(_names(include)),
            **properties,
            "where": None if meant is None else to_sql(meant),
            "reading": kept.to_dict(),
        },
    )


def reads_of(index: str, spec: IndexSpec) -> frozenset[str]:
    shape = shape_of(index, spec)
    condition = columns_of(where.recalled(shape.where, shape.reading)) if shape.where is not None else ()
    return frozenset(path[0] for path in (*(column.path for column in shape.columns), *condition))


def kept_of(frame: "DataFrame", shape: Shape) -> "DataFrame":
    """The rows and columns of the index, under their names in the content."""
    if shape.where is not None:
        # Written anew from the tree that our own parser makes of the log's text: that text itself never reaches Spark.
        condition = to_sql(where.recalled(shape.where, shape.reading))
        _require_plain_literals(frame, condition)
        frame = frame.where(condition)
    chosen = [functions.col(quoted(*column.path)).alias(column.content) for column in shape.columns]
    return frame.select(*chosen, *([FILE_COLUMN] if shape.lineage else []))


def _require_plain_literals(frame: "DataFrame", condition: str) -> None:
    setting = "spark.sql.parser.escapedStringLiterals"
    if "\\" in condition and frame.sparkSession.conf.get(setting) == "true":
        raise Unsupported(
            f"with {setting}=true a text with backslashes means something else, and the condition of the index has one; "
            "set it to false while indexes are built",
            detail="ESCAPED_LITERALS",
        )


def _names(chosen: Sequence[Chosen]) -> tuple[str, ...]:
    return tuple(column.name for column in chosen)
