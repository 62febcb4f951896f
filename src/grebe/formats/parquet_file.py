"""Where Parquet bytes of a store become objects of Arrow. No other module lets Arrow read them, as a test of the project says.

Arrow believes a footer: over some that contradict themselves it ends the process, since its exceptions do not reach Python there.
So `parquet_pages.structure` checks the footer first, and what Arrow raises afterwards becomes an error of ours.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from grebe.files.untrusted import validated
from grebe.formats.parquet_pages.failures import naming
from grebe.formats.parquet_pages.footer import Footer
from grebe.formats.parquet_pages.schema import BYTE_ARRAY, FIXED, Leaf
from grebe.formats.parquet_pages.structure import check_footer, check_whole, require_structure
from grebe.formats.parquet_pages.thrift import Struct
from grebe.formats.protocol import DataFile
from grebe.formats.range_file import RangeFile, arrow_errors

_STRING_LIMIT = 64 * 1024 * 1024
_BATCH_ROWS = 64 * 1024
_META, _CRYPTO = 3, 8
"""Fields of a column chunk."""
_STATISTICS = 12
_ENDS = (1, 2, 5, 6)
"""Fields of statistics: the greatest and the least value, by the old rules and by the new ones."""


@dataclass(frozen=True, slots=True)
class OpenedParquet:
    """A file whose footer has the right structure. What Arrow makes of its pages may still fail: use `parquet` within `errors`.

    The column chunks of `parquet.metadata` are not to be looked at: Arrow raises there what ends the process. `CheckedParquet` has
    their statistics, its footer all else.
    """

    parquet: pq.ParquetFile
    raw: RangeFile

    @property
    def metadata(self) -> pq.FileMetaData:
        return self.parquet.metadata

    def errors(self) -> contextlib.AbstractContextManager[None]:
        """Errors of Arrow become errors of ours that name the file."""
        return arrow_errors(self.raw, "Parquet")


@dataclass(frozen=True, slots=True)
class CheckedParquet(OpenedParquet):
    footer: Footer
    """As it was checked."""

    def statistics(self, leaf: int) -> list[pq.Statistics] | None:
        """Return what each row group says of a column of values; None where one says nothing, or no count of NULLs, or what Arrow
        would not take."""
        stored = self.footer.schema.leaves[leaf]
        if any(not _has_statistics(stored, group[1][leaf]) for group in self.footer.groups):
            return None
        metadata = self.metadata
        found = [metadata.row_group(number).column(leaf).statistics for number in range(metadata.num_row_groups)]
        return None if any(one is None or not one.has_null_count for one in found) else found


def open_parquet(file: DataFile) -> CheckedParquet:
    """Read and check the footer, in one request unless it is a long one. Raise `UnreadableFile` for what is no Parquet file, or an
    encrypted one."""
    raw = RangeFile(file)
    footer = require_structure(raw)
    return CheckedParquet(_opened(raw, None), raw, footer)


def open_with(file: DataFile, metadata: pq.FileMetaData) -> OpenedParquet:
    """Open a file without reading anything, with what `parse_metadata` made of its footer."""
    raw = RangeFile(file)
    return OpenedParquet(_opened(raw, metadata), raw)


def parse_metadata(file: DataFile, footer: Footer) -> pq.FileMetaData:
    """Return the footer of a file as Arrow has it."""
    with naming(file.uri):
        check_footer(footer)
    with arrow_errors(RangeFile(file), "Parquet"):
        return pq.read_metadata(pa.BufferReader(footer.tail))


def parse_table(data: bytes, columns: Sequence[str] | None = None, *, checksums: bool = False) -> pa.Table:
    """Return the table of a small file, or some leaves of it, footer and pages checked before and all values afterwards. Raise what
    `untrusted.decoding` turns into an error of ours."""
    check_whole(data, columns)
    return validated(_parsed(data, checksums=checksums).read(columns=columns, use_threads=False))


def parse_batches(data: bytes, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield some leaves of a file of any number of rows, checked as by `parse_table`; only a page must not be too large."""
    check_whole(data, columns, by_page=True)
    for batch in _parsed(data, checksums=False).iter_batches(_BATCH_ROWS, columns=columns, use_threads=False):
        batch.validate(full=True)
        yield batch


def _opened(raw: RangeFile, metadata: pq.FileMetaData | None) -> pq.ParquetFile:
    with arrow_errors(raw, "Parquet"):
        source = pa.PythonFile(raw, "r")
        return pq.ParquetFile(source, metadata=metadata, coerce_int96_timestamp_unit="us", pre_buffer=True)


def _parsed(data: bytes, *, checksums: bool) -> pq.ParquetFile:
    return pq.ParquetFile(
        pa.BufferReader(data), thrift_string_size_limit=_STRING_LIMIT, page_checksum_verification=checksums
    )


def _has_statistics(leaf: Leaf, column: Struct) -> bool:
    """Tell whether Arrow can be asked for the statistics of a chunk: it is not encrypted, and no value is shorter than its type."""
    if _CRYPTO in column or _META not in column:
        return False
    known = column[_META].get(_STATISTICS)
    if not isinstance(known, dict):
        return False
    least = 0 if leaf.physical == BYTE_ARRAY else leaf.width if leaf.physical == FIXED else max(1, leaf.width)
    ends = [known[field] for field in _ENDS if field in known]
    return all(isinstance(one, bytes) and len(one) >= least for one in ends)
