"""Bounds of columns from the footer of a Parquet file, where they can be trusted.

They can for whole numbers, booleans, dates, timestamps and decimals that are kept as numbers, if every row group tells them and its
NULLs. Not for floating point, of which writers leave out NaN or not; not for text, which may be cut; not where it is silent, and
not for moments that lie in another calendar.
"""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from grebe.formats.calendars import is_old
from grebe.formats.parquet_file import CheckedParquet, open_parquet
from grebe.formats.parquet_pages.schema import BOOLEAN, INT32, INT64
from grebe.formats.parquet_pages.stored_types import field_ids
from grebe.formats.protocol import DataFile
from grebe.formats.reading import Column
from grebe.formats.unite import find_column

_NUMBERS = (INT32, INT64, BOOLEAN)


@dataclass(frozen=True, slots=True)
class Statistics:
    """Of one column of one file, as Parquet stores values; `low` and `high` are None if all are NULL."""

    low: Any
    high: Any
    nulls: int


@dataclass(frozen=True, slots=True)
class Footer:
    """Of a file: how many rows it has, and what it says of columns."""

    opened: CheckedParquet
    schema: pa.Schema

    @property
    def rows(self) -> int:
        return self.opened.footer.rows

    def statistics(self, column: Column) -> Statistics | None:
        """None where they cannot be trusted, or the column is stored otherwise than it is read."""
        with self.opened.errors():
            return self._statistics(column)

    def _statistics(self, column: Column) -> Statistics | None:
        names = self.schema.names
        name = find_column(column, names, field_ids(self.schema), "the file") if _told_apart(column) else column.name
        stored = self.schema.field(name).type if name in names else None
        if stored != column.arrow.type or names.count(name) != 1:
            return None
        leaves = self.opened.footer.schema.leaves
        number = next((number for number, leaf in enumerate(leaves) if leaf.path == (str(name).encode(),)), None)
        dated = pa.types.is_temporal(stored)
        if number is None or leaves[number].physical not in _NUMBERS or (dated and self._other_calendar):
            return None
        groups = None if leaves[number].max_repetition else self.opened.statistics(number)
        if groups is None:
            return None
        valued = [group for group in groups if group.num_values]
        if any(not group.has_min_max for group in valued):
            return None
        nulls = sum(group.null_count for group in groups)
        if not valued:
            return Statistics(None, None, nulls) if nulls == self.rows else None
        return Statistics(min(group.min_raw for group in valued), max(group.max_raw for group in valued), nulls)

    @property
    def _other_calendar(self) -> bool:
        return is_old(self.opened.metadata.metadata)


def _told_apart(column: Column) -> bool:
    """By more than its name."""
    return column.stored is not None or bool(column.ids)


def footer_of(file: DataFile) -> Footer:
    opened = open_parquet(file)
    with opened.errors():
        return Footer(opened, opened.parquet.schema_arrow)
