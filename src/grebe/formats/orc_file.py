"""A data file for Arrow's reader of ORC, with bytes at hand that were read beforehand."""

from bisect import bisect_right
from collections.abc import Sequence

from grebe.formats.protocol import DataFile
from grebe.formats.range_file import RangeFile


class HeldFile(RangeFile):
    """`tail` is what another of the same file has kept."""

    def __init__(self, file: DataFile, tail: bytes | None = None) -> None:
        super().__init__(file)
        self._tail = tail
        self._starts: list[int] = []
        self._parts: list[bytes] = []

    def tail(self) -> bytes:
        """The end of the file, as far as it is kept."""
        return self._tail or b""

    def hold(self, spans: Sequence[tuple[int, int]]) -> None:
        """Reads these (start, length) at once, in place of what was held before."""
        joined: list[list[int]] = []
        for start, length in sorted(spans):
            if joined and start <= joined[-1][1]:
                joined[-1][1] = max(joined[-1][1], start + length)
            else:
                joined.append([start, start + length])
        self._starts = [start for start, _ in joined]
        self._parts = self.file.read_spans([(start, stop - start) for start, stop in joined])

    def read(self, size: int = -1) -> bytes:
        place = bisect_right(self._starts, self._place) - 1
        if place >= 0 and size >= 0:
            offset = self._place - self._starts[place]
            if offset + size <= len(self._parts[place]):
                self._place += size
                return self._parts[place][offset : offset + size]
        return super().read(size)
