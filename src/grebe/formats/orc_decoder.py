"""Decode ORC with Arrow's reader, in this process or in a guarded one (`guarded`).

A guarded process runs the source of this module alone: it imports nothing of Grebe, so that the process starts fast, and it sees
neither stores nor credentials. It gets bytes of one file through its standard input, a socket, and returns a table there. Messages
are frames: one byte for the kind, eight for the length, then the content.
"""

import contextlib
import io
import json
import os
import signal
import struct
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple

import pyarrow as pa
from pyarrow import orc

FRAME = struct.Struct("<cQ")
READY, REQUEST, NEED, BYTES, UNREADABLE, TABLE, ERROR, MEMORY = b"R", b"Q", b"N", b"B", b"U", b"T", b"E", b"M"
SPAN = struct.Struct("<QQ")
"""What a frame NEED holds: the start and the length of bytes that the decoder lacks."""
TAIL, ROWS = b"grebe.tail", b"grebe.rows"
"""Metadata of the schema of a footer: the tail as Arrow serializes it, and the number of rows in the file."""
Ask = Callable[[int, int], bytes]
Bytes = bytes | memoryview


class Request(NamedTuple):
    """Stripes and columns to decode of a file of `size` bytes, with spans of its bytes by their start, ascending. Without stripes:
    its footer, as an empty table of all columns."""

    size: int
    spans: Sequence[tuple[int, Bytes]]
    stripes: Sequence[int] = ()
    names: Sequence[str] = ()


class SparseFile(io.RawIOBase):
    """A file of which some spans are at hand. Others are asked for."""

    def __init__(self, request: Request, ask: Ask) -> None:
        super().__init__()
        self._request, self._ask = request, ask
        self._starts = [start for start, _ in request.spans]
        self._offset = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._offset

    def size(self) -> int:
        return self._request.size

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._offset, io.SEEK_END: self._request.size}[whence]
        self._offset = base + offset
        return self._offset

    def read(self, size: int = -1) -> bytes:
        left = max(0, self._request.size - self._offset)
        size = left if size < 0 else min(size, left)
        start, self._offset = self._offset, self._offset + size
        position = bisect_right(self._starts, start) - 1
        if position >= 0:
            first, data = self._request.spans[position]
            if start + size <= first + len(data):
                return bytes(data[start - first : start - first + size])
        return self._ask(start, size)

    def readall(self) -> bytes:
        return self.read()


def decode(request: Request, ask: Ask) -> pa.Table:
    """Return the columns of the stripes, in the order of the request, or the footer. `ask` reads bytes that it lacks."""
    opened = orc.ORCFile(pa.PythonFile(SparseFile(request, ask), "r"))
    if not request.stripes:
        known = {TAIL: opened.reader.serialized_file_tail(), ROWS: str(opened.nrows)}
        return opened.schema.with_metadata(known).empty_table()
    batches = []
    for number in request.stripes:
        batch = opened.read_stripe(number, list(request.names)).select(list(request.names))
        batch.validate()
        batches.append(batch)
    return pa.Table.from_batches(batches)


def main() -> None:
    """Serve requests until the other end is closed."""
    with contextlib.suppress(OSError, ValueError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    _send(READY)
    while True:
        kind, content = _receive()
        if kind != REQUEST:
            os._exit(2)
        _send(*_reply(content))


def _reply(content: memoryview) -> tuple[bytes, Bytes]:
    (length,) = struct.unpack_from("<I", content)
    head = json.loads(bytes(content[4 : 4 + length]))
    place, spans = 4 + length, []
    for start, size in head["spans"]:
        spans.append((start, content[place : place + size]))
        place += size
    try:
        _limit(head["memory"], head["seconds"])
        table = decode(Request(head["size"], spans, head["stripes"], head["names"]), _ask)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return TABLE, memoryview(sink.getvalue())
    except MemoryError:
        return MEMORY, b""
    except Exception as problem:  # noqa: BLE001 - whatever a library raises over these bytes is the answer
        kind = MEMORY if "alloc" in str(problem) else ERROR
        return kind, f"{str(problem).partition(chr(10))[0][:500] or type(problem).__name__}".encode()


def _limit(memory: int, seconds: int) -> None:
    """Limit what this request may take beyond what the process has taken before, where the platform can."""
    try:
        import resource
    except ImportError:
        return
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError, ValueError):
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        used = resource.getrusage(resource.RUSAGE_SELF)
        resource.setrlimit(resource.RLIMIT_CPU, (_below(hard, int(used.ru_utime + used.ru_stime) + 1 + seconds), hard))
    with contextlib.suppress(OSError, ValueError), io.FileIO("/proc/self/statm") as pages:
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        taken = int(pages.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (_below(hard, taken + memory), hard))


def _below(hard: int, wanted: int) -> int:
    return wanted if hard < 0 else min(wanted, hard)


def _ask(start: int, size: int) -> bytes:
    _send(NEED, SPAN.pack(start, size))
    kind, content = _receive()
    if kind != BYTES:
        raise OSError("the bytes cannot be read")
    return bytes(content)


def _receive() -> tuple[bytes, memoryview]:
    kind, length = FRAME.unpack(_exactly(FRAME.size))
    return kind, _exactly(length)


def _exactly(length: int) -> memoryview:
    made = memoryview(bytearray(length))
    done = 0
    while done < length:
        count = os.readv(0, [made[done:]])
        if not count:
            os._exit(0)
        done += count
    return made


def _send(kind: bytes, content: Bytes = b"") -> None:
    for part in (FRAME.pack(kind, len(content)), content):
        rest = memoryview(part)
        while rest:
            rest = rest[os.write(0, rest) :]


if __name__ == "__main__":
    main()
