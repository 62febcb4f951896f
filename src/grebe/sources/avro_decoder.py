"""A decoder of Avro for pyiceberg that checks every length: the compiled one of that package reads beyond the end of forged bytes,
and may end the process. Its codecs unpack whatever a block holds, so that they are replaced as well.
"""

import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from grebe.sources.avro_codecs import CODECS

_LONGEST_VARINT = 70
"""In bits: groups of seven."""
_LOCK = threading.Lock()
_replaced: list[tuple[Any, Any]] = []
"""pyiceberg's own way to make a decoder, and its codecs, once for each reader that does without them."""


class CheckedDecoder:
    """What pyiceberg's `BinaryDecoder` does, over bytes. Raises `ValueError` where they end too early, and `EOFError` for a number
    where there is nothing left: pyiceberg takes that for the end of a file, and nobody would miss blocks that were cut off."""

    __slots__ = ("_data", "_offset")

    def __init__(self, data: bytes) -> None:
        self._data, self._offset = data, 0

    def tell(self) -> int:
        return self._offset

    def read(self, n: int) -> bytes:
        start, stop = self._offset, self._offset + n
        if n < 0:
            raise ValueError("a negative length")
        if stop > len(self._data):
            raise ValueError("a value is longer than what is left")
        self._offset = stop
        return self._data[start:stop]

    def skip(self, n: int) -> None:
        if n < 0:
            raise ValueError("a negative length")
        if self._offset + n > len(self._data):
            raise ValueError("a value is longer than what is left")
        self._offset += n

    def read_int(self) -> int:
        data, offset = self._data, self._offset
        if offset >= len(data):
            raise EOFError("nothing is left")
        try:
            byte = data[offset]
            if byte < 0x80:
                self._offset = offset + 1
                return (byte >> 1) ^ -(byte & 1)
            value, shift = byte & 0x7F, 7
            while shift < _LONGEST_VARINT:
                offset += 1
                byte = data[offset]
                value |= (byte & 0x7F) << shift
                if byte < 0x80:
                    self._offset = offset + 1
                    return (value >> 1) ^ -(value & 1)
                shift += 7
        except IndexError:
            raise ValueError("a number is cut short") from None
        raise ValueError("a number of more than 64 bits")

    def read_ints(self, n: int) -> tuple[int, ...]:
        self._require(n)
        data, offset = self._data, self._offset
        values = []
        try:
            for _ in range(n):
                byte = data[offset]
                if byte < 0x80:
                    offset += 1
                    values.append((byte >> 1) ^ -(byte & 1))
                else:
                    self._offset = offset
                    values.append(self.read_int())
                    offset = self._offset
        except IndexError:
            raise ValueError("a number is cut short") from None
        self._offset = offset
        return tuple(values)

    def read_int_bytes_dict(self, n: int, dest: dict[int, bytes]) -> None:
        self._require(n)
        data, end = self._data, len(self._data)
        for _ in range(n):
            key, length = self.read_int(), self.read_int()
            start, stop = self._offset, self._offset + max(length, 0)
            if stop > end:
                raise ValueError("a value is longer than what is left")
            dest[key] = data[start:stop]
            self._offset = stop

    def read_boolean(self) -> bool:
        return self.read(1) == b"\x01"

    def read_float(self) -> float:
        return float(struct.unpack("<f", self.read(4))[0])

    def read_double(self) -> float:
        return float(struct.unpack("<d", self.read(8))[0])

    def read_bytes(self) -> bytes:
        if self._offset >= len(self._data):
            raise ValueError("a value is missing")
        length = self.read_int()
        return self.read(length) if length > 0 else b""

    def read_utf8(self) -> str:
        return self.read_bytes().decode()

    def skip_boolean(self) -> None:
        self.skip(1)

    def skip_int(self) -> None:
        self.read_int()

    def skip_float(self) -> None:
        self.skip(4)

    def skip_double(self) -> None:
        self.skip(8)

    def skip_bytes(self) -> None:
        self.skip(self.read_int())

    def skip_utf8(self) -> None:
        self.skip_bytes()

    def _require(self, count: int) -> None:
        """Each of so many values takes a byte at least."""
        if count > len(self._data) - self._offset:
            raise ValueError("more values than bytes are left")


@contextmanager
def checked_decoder() -> Iterator[None]:
    """Let pyiceberg decode Avro with `CheckedDecoder` and `CODECS` inside, in all its threads. Others who use it meanwhile get the
    same values, more slowly."""
    from pyiceberg.avro import file

    with _LOCK:
        own = (file.new_decoder, file.KNOWN_CODECS)  # type: ignore[attr-defined]  # imported by name
        _replaced.append(_replaced[-1] if _replaced else own)
        file.new_decoder = CheckedDecoder  # type: ignore[assignment,attr-defined]  # has the same methods
        file.KNOWN_CODECS = CODECS  # type: ignore[assignment,attr-defined]  # with the method that is called
    try:
        yield
    finally:
        with _LOCK:
            own = _replaced.pop()
            if not _replaced:
                file.new_decoder, file.KNOWN_CODECS = own  # type: ignore[attr-defined]  # imported there by name
