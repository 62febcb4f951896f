"""Small Parquet files of an index, read whole: footer and pages are checked before Arrow gets them, the table afterwards."""

import pyarrow as pa

from grebe.errors import CorruptIndex
from grebe.files.untrusted import decoding
from grebe.formats.parquet_file import parse_table


def read_parquet(data: bytes, uri: str, detail: str = "DAMAGED") -> pa.Table:
    """Return the table of a file, or raise `CorruptIndex`."""
    with decoding(lambda why: refused(uri, why, detail)):
        return parse_table(data, checksums=True)


def refused(uri: str, why: str, detail: str) -> CorruptIndex:
    return CorruptIndex(f"{uri} is damaged ({why}); refresh the index with mode='full'", detail=detail)
