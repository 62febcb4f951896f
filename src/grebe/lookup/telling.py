"""What is told of a lookup while it is carried out: to telemetry always, and to whoever records queries."""

import logging
from types import TracebackType
from typing import Self

import numpy as np

from grebe import telemetry
from grebe.clock import SYSTEM
from grebe.files import FileList
from grebe.indexes.reading import Reader
from grebe.lookup.answer import Found
from grebe.planner.observing import HearsLookups, LookedUp, Read
from grebe.predicate.tree import Predicate

_logger = logging.getLogger("grebe.lookup")


class Teller:
    """Of one state of a table."""

    def __init__(self, table: str, files: FileList, hears: HearsLookups | None) -> None:
        self.table = table
        self.hears = hears
        self.sizes = files.table["size"].to_numpy() if hears is not None else np.empty(0, np.int64)
        self.bytes = int(self.sizes.sum())

    def lookup(self, call: str, predicate: Predicate, columns: tuple[str, ...] = (), heard: bool = True) -> "Telling":
        return Telling(self, call, predicate, columns, heard)


class Telling:
    """One lookup. Only what is told before its end counts."""

    __slots__ = ("_call", "_columns", "_hears", "_predicate", "_read", "_since", "_span", "_teller", "_used")

    def __init__(self, teller: Teller, call: str, predicate: Predicate, columns: tuple[str, ...], heard: bool) -> None:
        self._teller = teller
        self._hears = teller.hears if heard else None
        self._call = call
        self._predicate = predicate
        self._columns = columns
        self._span = telemetry.lookup(_logger, call, teller.table)
        self._read: Read | None = None
        self._used: tuple[str, ...] = ()
        self._since = 0.0

    def found(self, found: Found, reader: Reader, rows: int | None = None) -> None:
        """Requests and bytes are those spent on indexes."""
        files = len(found.records) + len(found.whole)
        self._span.add(used=found.used, files=files, requests=reader.spent.requests, bytes=reader.spent.bytes)
        if rows is not None:
            self._span.add(rows=rows)
        teller = self._teller
        if self._hears is not None:
            # What single records take of their files is not counted, and little beside whole ones.
            spent = reader.spent.bytes + int(teller.sizes[found.whole].sum())
            self._used = found.used
            self._read = Read(files, len(teller.sizes), spent, teller.bytes, None, rows)

    def add(self, **facts: telemetry.Fact) -> None:
        self._span.add(**facts)

    def __enter__(self) -> Self:
        self._since = SYSTEM.monotonic()
        self._span.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._span.__exit__(kind, error, trace)
        if self._hears is None or error is not None:
            return
        took = (SYSTEM.monotonic() - self._since) * 1000
        read = self._read or Read(0, len(self._teller.sizes), 0, self._teller.bytes)
        self._hears(
            LookedUp(
                self._call,
                self._teller.table,
                self._predicate,
                self._columns,
                read,
                self._used,
                SYSTEM.now_ms(),
                took,
            )
        )
