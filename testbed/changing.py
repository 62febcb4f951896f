"""A table whose files change while it is read, and every state that it was ever in.

Each file holds rows of its own keys. Each generation of a file has other values; all generations but the longer ones have the same
size. So a row that joins values of two generations, or rows of two generations in one answer, show themselves.
"""

import io
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq

from grebe.clock import SYSTEM
from grebe.store.local import LocalStore
from grebe.store.protocol import ObjectInfo, Store

Row = tuple[int, str, str]
Change = Literal["overwrite", "lengthen", "append", "delete", "rename over", "restore"]
CHANGES: tuple[Change, ...] = ("overwrite", "lengthen", "append", "delete", "rename over", "restore")
KEYS_OF_A_FILE = 1_000
_ROWS = 120
# Times of change come in ticks of the kernel's clock.
_TICK_SECONDS = 0.012
COLUMNS = ("id", "value", "text")
SCHEMA = "id LONG, value STRING, text STRING"


@dataclass(frozen=True)
class Content:
    """What a file holds: its rows from one generation, and how many were appended to it by which later ones."""

    file: int
    generation: int
    rows: int = _ROWS
    appended: tuple[int, ...] = ()

    def all_rows(self) -> list[Row]:
        parts: list[tuple[int, Sequence[int]]] = [(self.generation, range(self.rows))]
        parts += [(generation, [self.rows + n]) for n, generation in enumerate(self.appended)]
        return [
            (self.file * KEYS_OF_A_FILE + n, f"value {generation:04d} {n:04d}", f"text {generation:04d}")
            for generation, numbers in parts
            for n in numbers
        ]

    def bytes(self, format: str) -> bytes:
        columns = list(zip(*self.all_rows(), strict=True))
        if format == "csv":
            return "".join(f"{id:07d},{value},{text}\n" for id, value, text in self.all_rows()).encode()
        sink = io.BytesIO()
        table = pa.table(dict(zip(COLUMNS, map(list, columns), strict=True)))
        pq.write_table(table, sink, row_group_size=60, data_page_size=256, write_page_index=True, compression="none")
        return sink.getvalue()


State = Mapping[int, Content]


@dataclass
class ChangingTable:
    """`folder` is that of the table if it is on this disk. `states` are all that it was in, the newest last."""

    store: Store
    format: str
    folder: Path | None
    states: list[State] = field(default_factory=lambda: [{}])
    _generation: int = 0

    def add(self, *files: int) -> None:
        for file in files:
            content = Content(file, 0)
            self.store.put(self.name(file), content.bytes(self.format))
            self._now(file, content)

    def name(self, file: int) -> str:
        return f"part-{file:04d}.{self.format}"

    @property
    def now(self) -> State:
        return self.states[-1]

    def change(self, file: int, how: Change) -> None:
        """Change one file. One that is gone comes back, whatever is asked."""
        before = self.now.get(file)
        self._generation += 1
        if before is None:
            self._replaced(Content(file, self._generation))
        elif how == "delete":
            self.store.delete(self.name(file))
            self._now(file, None)
        elif how == "append":
            self._appended(before)
        elif how == "rename over":
            self._replaced(Content(file, self._generation))
        elif how == "restore":
            self._restored(replace(before, generation=self._generation))
        else:
            rows = before.rows + (5 if how == "lengthen" else 0)
            self._overwritten(Content(file, self._generation, rows, before.appended if how == "overwrite" else ()))

    def _overwritten(self, content: Content) -> None:
        """In place, where that is possible: the file stays the same one."""
        if self.folder is None:
            self._replaced(content)
            return
        SYSTEM.sleep(_TICK_SECONDS)
        with (self.folder / self.name(content.file)).open("r+b") as file:
            file.write(content.bytes(self.format))
            file.truncate()
        self._now(content.file, content)

    def _appended(self, before: Content) -> None:
        content = replace(before, appended=(*before.appended, self._generation))
        data = content.bytes(self.format)
        if self.folder is None or self.format != "csv":
            self._replaced(content)
            return
        SYSTEM.sleep(_TICK_SECONDS)
        with (self.folder / self.name(content.file)).open("ab") as file:
            file.write(data[file.tell() :])
        self._now(content.file, content)

    def _replaced(self, content: Content) -> None:
        self.store.put(self.name(content.file), content.bytes(self.format))
        self._now(content.file, content)

    def _restored(self, content: Content) -> None:
        """Other bytes of the same size and, where the store lets anybody set it, of the same time: as `cp -p` leaves them."""
        if self.folder is None:
            self._replaced(content)
            return
        path = self.folder / self.name(content.file)
        SYSTEM.sleep(_TICK_SECONDS)
        facts = path.stat()
        path.write_bytes(content.bytes(self.format))
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        assert (path.stat().st_size, path.stat().st_mtime_ns) == (facts.st_size, facts.st_mtime_ns)
        self._now(content.file, content)

    def _now(self, file: int, content: Content | None) -> None:
        state = {**self.now, file: content} if content is not None else {k: v for k, v in self.now.items() if k != file}
        self.states.append(state)


def rows_of(state: State, wanted: Callable[[Row], bool], files: Sequence[int]) -> list[Row]:
    """The rows of these files in one state, in order."""
    return sorted(row for file in files if file in state for row in state[file].all_rows() if wanted(row))


class HookedStore:
    """Calls `hook` before every request, so that something can happen between two of one call."""

    def __init__(self, store: Store, hook: Callable[[], None]) -> None:
        self._store = store
        self._hook = hook

    @property
    def uri(self) -> str:
        return self._store.uri

    def get(self, path: str, most: int | None = None) -> bytes:
        self._hook()
        return self._store.get(path, most)

    def get_range(self, path: str, start: int, length: int) -> bytes:
        return self.get_ranges(path, [(start, length)])[0]

    def get_ranges(
        self, path: str, ranges: Sequence[tuple[int, int]], expected: ObjectInfo | None = None
    ) -> list[bytes]:
        self._hook()
        if not isinstance(self._store, LocalStore) or len(ranges) < 2:
            return self._store.get_ranges(path, ranges, expected)
        # On a disk several ranges are several reads: something may happen between any two of them.
        parts = []
        for one in ranges:
            parts += self._store.get_ranges(path, [one], expected)
            self._hook()
        return parts

    def put_if_absent(self, path: str, data: bytes) -> None:
        self._store.put_if_absent(path, data)

    def put(self, path: str, data: bytes) -> None:
        self._store.put(path, data)

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[ObjectInfo]:
        """A listing is one moment here; no store promises that of many files."""
        self._hook()
        return iter(list(self._store.list(prefix, start_after)))

    def delete(self, path: str) -> None:
        self._store.delete(path)

    def stat(self, path: str) -> ObjectInfo:
        self._hook()
        return self._store.stat(path)
