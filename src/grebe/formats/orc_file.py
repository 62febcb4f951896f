"""The bytes of a data file for a decoder of ORC: its tail, and spans that were read beforehand."""

from collections.abc import Sequence

from grebe.formats.protocol import DataFile
from grebe.formats.range_file import RangeFile


class HeldFile(RangeFile):
    """`tail` is what another of the same file has kept."""

    def __init__(self, file: DataFile, tail: bytes | None = None) -> None:
        super().__init__(file)
        self._tail = tail

    def tail(self) -> tuple[int, bytes]:
        """The end of the file by its start, read once."""
        return self._tail_start, self.ask(self._tail_start, self.file.size - self._tail_start)

    def ask(self, start: int, size: int) -> bytes:
        """Read bytes that a decoder lacks."""
        self.seek(start)
        return self.read(size)

    def spans(self, wanted: Sequence[tuple[int, int]]) -> list[tuple[int, bytes]]:
        """Read these (start, length) at once, each byte once; and the tail. Ascending."""
        joined: list[list[int]] = []
        for start, length in sorted(wanted):
            if joined and start <= joined[-1][1]:
                joined[-1][1] = max(joined[-1][1], start + length)
            else:
                joined.append([start, start + length])
        parts = self.file.read_spans([(start, stop - start) for start, stop in joined]) if joined else []
        held = [(start, part) for (start, _), part in zip(joined, parts, strict=True)]
        return sorted([*held, self.tail()])
