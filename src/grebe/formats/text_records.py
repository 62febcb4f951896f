"""Cutting text files into records with their byte offsets.

Without `multiLine` Spark cuts a file as Hadoop does: at LF, CR and CRLF, whatever stands between quotes, or at
`lineSep` alone if that is given; a byte order mark at the very start is no part of the first record. With `multiLine`
(CSV) a line break between quotes does not end a record: a break counts where the number of quotes before it is even.

Work goes by chunks. A chunk is one buffer seen as an Arrow array of pieces (record, break, record, break, …), so that
records are taken out by Arrow and not by Python.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from grebe.errors import UnreadableFile, Unsupported
from grebe.formats.protocol import BYTE_SPAN, DataFile

_CHUNK_BYTES = 8 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LF, _CR = 10, 13
# Of Hadoop's codecs those that Arrow can decompress as a stream.
_COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_OTHER_COMPRESSIONS = (".snappy", ".lz4", ".deflate", ".lzo", ".xz")
COMPRESSION_SUFFIXES = (*_COMPRESSIONS, *_OTHER_COMPRESSIONS)

Longs = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Breaks = Callable[[npt.NDArray[np.uint8], bool], tuple[Longs, Longs]]
"""Of a buffer and whether the file ends with it: where breaks start and where they end. A break that the next chunk
may prolong is left out."""


@dataclass(frozen=True, slots=True)
class Records:
    """Some records of one file: their bytes, and where in the file they lie."""

    values: pa.LargeBinaryArray
    offsets: Longs

    def __len__(self) -> int:
        return len(self.offsets)

    def __getitem__(self, part: slice) -> "Records":
        return Records(self.values[part], self.offsets[part])

    def filter(self, keep: pa.BooleanArray) -> "Records":
        return Records(self.values.filter(keep), self.offsets[keep.to_numpy(zero_copy_only=False)])

    def locators(self) -> pa.RecordBatch:
        lengths = pc.binary_length(self.values).cast(pa.int64())
        return pa.record_batch([pa.array(self.offsets), lengths], schema=BYTE_SPAN.schema)


def records(file: DataFile, breaks: Breaks) -> Iterator[Records]:
    """All records of a file, in order."""
    base, rest, first = 0, b"", True
    for chunk, last in _chunks(file):
        buffer = rest + chunk
        if first and len(buffer) < len(_BYTE_ORDER_MARK) and not last:
            rest = buffer
            continue
        skipped = len(_BYTE_ORDER_MARK) if first and buffer.startswith(_BYTE_ORDER_MARK) else 0
        first = False
        buffer, base = buffer[skipped:], base + skipped
        starts, ends = breaks(np.frombuffer(buffer, np.uint8), last)
        if last and len(buffer) and (not len(ends) or ends[-1] < len(buffer)):
            starts, ends = np.append(starts, len(buffer)), np.append(ends, len(buffer))
        if len(starts):
            yield _cut(buffer, starts, ends, base)
            rest, base = buffer[ends[-1] :], base + int(ends[-1])
        else:
            rest = buffer


def fetched(file: DataFile, locators: pa.RecordBatch) -> Records:
    """The records at these spans, in that order."""
    offsets = locators.column("offset").to_numpy()
    lengths = locators.column("length").to_numpy()
    if compression_of(file.path) is None:
        filled = [(int(o), int(n)) for o, n in zip(offsets, lengths, strict=True) if n]
        if any(o < 0 or n < 0 or o + n > file.size for o, n in filled):
            raise Unsupported(
                f"{file.uri} has {file.size} bytes; a record was asked for beyond its end", detail="LOCATOR"
            )
        parts = iter(file.read_spans(filled))
        values = [next(parts) if n else b"" for n in lengths]
    else:
        # Compressed bytes cannot be entered in the middle.
        whole = b"".join(chunk for chunk, _ in _chunks(file))
        values = [whole[o : o + n] for o, n in zip(offsets, lengths, strict=True)]
    return Records(pa.array(values, pa.large_binary()), offsets)


def line_breaks(separator: bytes) -> Breaks:
    """Breaks of lines: at `separator`, or where that is empty at LF, CR and CRLF."""

    def at_separator(buffer: npt.NDArray[np.uint8], last: bool) -> tuple[Longs, Longs]:
        single = len(separator) == 1
        starts = np.flatnonzero(buffer == separator[0]) if single else _occurrences(buffer.tobytes(), separator)
        return starts, starts + len(separator)

    def at_line_end(buffer: npt.NDArray[np.uint8], last: bool) -> tuple[Longs, Longs]:
        starts = np.flatnonzero((buffer == _LF) | (buffer == _CR))
        if not len(starts):
            return starts, starts
        kinds = buffer[starts]
        after_cr = np.concatenate(([False], (kinds[:-1] == _CR) & (np.diff(starts) == 1)))
        second = after_cr & (kinds == _LF)
        ends = starts + 1
        ends[:-1][second[1:]] += 1
        starts, ends = starts[~second], ends[~second]
        if not last and buffer[-1] == _CR:
            return starts[:-1], ends[:-1]
        return starts, ends

    return at_separator if separator else at_line_end


def text_of(found: Records, file: DataFile) -> pa.LargeStringArray:
    """The records as text. Bytes that are no UTF-8 are refused: Spark replaces some and keeps others, by the kind of
    file."""
    try:
        return found.values.cast(pa.large_string())
    except pa.ArrowInvalid as error:
        raise Unsupported(f"{file.uri} is not UTF-8 throughout; read it through Spark", detail="ENCODING") from error


def spans_of(values: pa.LargeBinaryArray) -> tuple[Bytes, Longs, Longs]:
    """All their bytes, and where in these each record starts and ends."""
    _, offsets, data = values.buffers()
    bounds = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    used = np.frombuffer(data if data is not None else b"", np.uint8)[bounds[0] : bounds[-1]]
    bounds = bounds - bounds[0]
    return used, bounds[:-1], bounds[1:]


def compression_of(path: str) -> str | None:
    """Arrow's name of the compression that the suffix tells, None for none."""
    for suffix, codec in _COMPRESSIONS.items():
        if path.lower().endswith(suffix):
            return codec
    if path.lower().endswith(_OTHER_COMPRESSIONS):
        raise Unsupported(
            f"text compressed as {path.rpartition('.')[2]} cannot be read without Spark", detail="COMPRESSION"
        )
    return None


def _chunks(file: DataFile) -> Iterator[tuple[bytes, bool]]:
    """The uncompressed bytes, and with each part whether it is the last."""
    codec = compression_of(file.path)
    if codec is None:
        for start in range(0, file.size, _CHUNK_BYTES):
            yield file.read(start, _CHUNK_BYTES), start + _CHUNK_BYTES >= file.size
        return
    try:
        with pa.CompressedInputStream(pa.BufferReader(file.read(0, file.size)), codec) as stream:
            chunk = stream.read(_CHUNK_BYTES)
            while chunk:
                following = stream.read(_CHUNK_BYTES)
                yield chunk, not following
                chunk = following
    except OSError as error:
        raise UnreadableFile(f"{file.uri} cannot be decompressed as {codec}: {error}", detail="COMPRESSION") from error


def _cut(buffer: bytes, starts: Longs, ends: Longs, base: int) -> Records:
    bounds = np.empty(2 * len(starts) + 1, np.int64)
    bounds[0], bounds[1::2], bounds[2::2] = 0, starts, ends
    pieces = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), 2 * len(starts), [None, pa.py_buffer(bounds), pa.py_buffer(buffer)]
    )
    return Records(pieces.take(pa.array(np.arange(0, 2 * len(starts), 2))), bounds[0:-1:2] + base)


def _occurrences(data: bytes, pattern: bytes) -> Longs:
    found = []
    place = data.find(pattern)
    while place >= 0:
        found.append(place)
        place = data.find(pattern, place + len(pattern))
    return np.array(found, np.int64)
