"""A data file as a Python file, for readers that seek: Parquet and ORC."""

import io

from grebe.formats.protocol import DataFile

# The end of a file holds its footer; one request for this much spares most readers a second one.
_TAIL_BYTES = 64 * 1024


class RangeFile(io.RawIOBase):
    """Reads ranges as they are asked for and keeps the tail of the file."""

    def __init__(self, file: DataFile) -> None:
        super().__init__()
        self._file = file
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
        self._place = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._file.size}[whence]
        return self._place

    def size(self) -> int:
        return self._file.size

    def read(self, size: int = -1) -> bytes:
        size = self._file.size - self._place if size < 0 else size
        start, self._place = self._place, min(self._place + size, self._file.size)
        if start < self._tail_start:
            return self._file.read(start, size)
        if self._tail is None:
            self._tail = self._file.read(self._tail_start, _TAIL_BYTES)
        return self._tail[start - self._tail_start : start - self._tail_start + size]

    def readall(self) -> bytes:
        return self.read()
