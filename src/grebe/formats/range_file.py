"""A data file as a Python file, for readers that seek: Parquet and ORC."""

import contextlib
import io
from collections.abc import Iterator

from grebe.errors import GrebeError, UnreadableFile
from grebe.files.untrusted import FOREIGN
from grebe.formats.protocol import DataFile

# The end of a file holds its footer; one request for this much spares most readers a second one.
_TAIL_BYTES = 64 * 1024


class RangeFile(io.RawIOBase):
    """Reads ranges as they are asked for; keeps the tail of the file, and the first error."""

    def __init__(self, file: DataFile) -> None:
        super().__init__()
        self.file = file
        self.failure: GrebeError | None = None
        self._place = 0
        self._tail_start = max(0, file.size - _TAIL_BYTES)
        self._tail: bytes | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._place = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self.file.size}[whence]
        return self._place

    def size(self) -> int:
        return self.file.size

    def read(self, size: int = -1) -> bytes:
        size = self.file.size - self._place if size < 0 else size
        start, self._place = self._place, min(self._place + size, self.file.size)
        try:
            if start < self._tail_start:
                return self.file.read(start, size)
            tail = self._read_tail()
        except GrebeError as error:
            self.failure = self.failure or error
            raise
        return tail[start - self._tail_start : start - self._tail_start + size]

    def readall(self) -> bytes:
        return self.read()

    def keep_tail(self, length: int) -> bytes:
        """Return so many bytes of the end of the file, or some more, and keep them for reads to come. Each is read once."""
        tail, start = self._read_tail(), max(0, self.file.size - length)
        if start < self._tail_start:
            tail = self._tail = self.file.read(start, self._tail_start - start) + tail
            self._tail_start = start
        return tail

    def _read_tail(self) -> bytes:
        if self._tail is None:
            self._tail = self.file.read(self._tail_start, _TAIL_BYTES)
        return self._tail


@contextlib.contextmanager
def arrow_errors(raw: RangeFile, kind: str) -> Iterator[None]:
    """Errors of Arrow as ours. What went wrong in a read of ours comes out as it was: some readers of Arrow wrap it
    up in text."""
    try:
        yield
    except FOREIGN as error:
        if raw.failure is not None:
            raise raw.failure from error
        reason = str(error).partition("\n")[0]
        raise UnreadableFile(
            f"{raw.file.uri} is no {kind} file that can be read: {reason}", detail=kind.upper()
        ) from error
