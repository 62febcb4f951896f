"""Small Parquet files of an index, read whole: footer and pages are checked before Arrow gets them, the table afterwards."""

import pyarrow as pa
import pyarrow.parquet as pq

from grebe.errors import CorruptIndex
from grebe.files.untrusted import decoding, validated
from grebe.formats.parquet_pages.structure import check_whole

_STRING_LIMIT = 64 * 1024 * 1024


def read_parquet(data: bytes, uri: str, detail: str = "DAMAGED") -> pa.Table:
    """Return the table of a file, or raise `CorruptIndex`."""
    with decoding(lambda why: refused(uri, why, detail)):
        check_whole(data)
        file = pq.ParquetFile(
            pa.BufferReader(data), thrift_string_size_limit=_STRING_LIMIT, page_checksum_verification=True
        )
        return validated(file.read(use_threads=False))


def refused(uri: str, why: str, detail: str) -> CorruptIndex:
    return CorruptIndex(f"{uri} is damaged ({why}); refresh the index with mode='full'", detail=detail)
