"""Which rows are pinned, of which files, and for which files and queries of a table's state they may stand in.

The rows of a pin are those of a known set of files under a known reading. They serve a query if its predicate implies that of the
pin and its columns are pinned; and then for exactly those files that the table still has, unchanged, with the same deleted rows.
All other files are read directly.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from grebe.files import FileList
from grebe.files.listing import NOWHERE, match
from grebe.formats import Reading
from grebe.lookup.pin.asked import Asked
from grebe.lookup.pin.rows import FILE, PinnedRows
from grebe.planner.implication import implies
from grebe.predicate.evaluate import Evaluator, can_be_evaluated
from grebe.predicate.text import to_sql
from grebe.predicate.tree import TRUE, Predicate, columns_of
from grebe.shown.records import Records
from grebe.sources import Deleted, Version

Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PinInfo:
    """What is pinned, and how often it served. `table_version` and `log_version` are those it was read at."""

    predicate: str
    columns: tuple[str, ...]
    rows: int
    bytes: int
    blocks: int
    files: int
    hits: int
    table_version: Version | None
    log_version: int | None


@dataclass(frozen=True, slots=True)
class State:
    """Of a table: its files, how they are read, and what else their rows depend on."""

    files: FileList
    reading: Reading
    partitions: pa.Table
    deleted: Callable[[], Deleted]
    """Asked only where rows are pinned."""
    table_version: Version | None = None
    log_version: int | None = None


@dataclass(frozen=True, eq=False)
class Pinned:
    """Rows of the predicate, of the files of `state` that are `held`; a row's number of its file is the place in that list."""

    predicate: Predicate
    columns: tuple[str, ...]
    state: State
    held: Flags
    rows: PinnedRows
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _hits: list[int] = field(default_factory=lambda: [0], repr=False)

    def hit(self) -> None:
        with self._lock:
            self._hits[0] += 1

    @property
    def info(self) -> PinInfo:
        rows, state = self.rows, self.state
        return PinInfo(
            to_sql(self.predicate),
            self.columns,
            rows.count,
            rows.nbytes,
            rows.blocks,
            int(self.held.sum()),
            self._hits[0],
            state.table_version,
            state.log_version,
        )

    def serves(self, predicate: Predicate, names: Iterable[str]) -> bool:
        """`predicate` is bound and normalised."""
        if not set(self.columns).issuperset((*names, *(path[0] for path in columns_of(predicate)))):
            return False
        if not can_be_evaluated(predicate):
            return False
        return self.predicate == TRUE or implies(predicate, self.predicate)


class Pins:
    """Those of one handle, and what its queries ask for. Threads may share it."""

    def __init__(self) -> None:
        self.asked = Asked()
        self.all: tuple[Pinned, ...] = ()
        self._lock = threading.Lock()

    def add(self, pin: Pinned) -> None:
        with self._lock:
            self.all = (*self.all, pin)

    def remove(self, pin: Pinned | None = None) -> None:
        """One, or all; one that is gone already is no error. What a query is about to read stays until it has."""
        with self._lock:
            self.all = () if pin is None else tuple(one for one in self.all if one is not pin)


class Pin:
    """What `Table.pin` gives: the rows stay until `unpin`, or to the end of a `with`."""

    def __init__(self, pins: Pins, pinned: Pinned) -> None:
        self._pins = pins
        self._pinned = pinned

    @property
    def info(self) -> PinInfo:
        return self._pinned.info

    def unpin(self) -> None:
        self._pins.remove(self._pinned)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.unpin()

    def __repr__(self) -> str:
        return repr(self.info)


def described(pins: Pins) -> Records[PinInfo]:
    shown = ("predicate", "columns", "rows", "bytes", "blocks", "files", "hits", "table_version", "log_version")
    return Records([one.info for one in pins.all], shown, "Nothing is pinned.")


@dataclass(frozen=True, slots=True)
class _View:
    """A pin as one state of the table sees it."""

    pin: Pinned
    place_of: Numbers
    """Of each file of the pin its place in the state's list, or NOWHERE."""
    held: Flags
    """Of each file of the state whether its rows of the predicate are those of the pin."""


@dataclass(frozen=True, slots=True)
class Held:
    """What pins know of one query: `places` are the files that they stand in for."""

    places: Flags
    parts: Sequence[tuple[_View, Flags | None]] = ()
    """Each with the files (by their numbers in the pin) it is asked for; None: all."""

    @property
    def everything(self) -> bool:
        return bool(self.parts) and bool(self.places.all())

    def tables(self, predicate: Predicate, names: Sequence[str]) -> list[pa.Table]:
        evaluator = Evaluator(predicate)
        return [rows.select(names) for _, rows in self._rows(evaluator, names)]

    def count(self, predicate: Predicate) -> int:
        evaluator = Evaluator(predicate)
        return sum(view.pin.rows.number(evaluator, files) for view, files in self._asked())

    def some(self, predicate: Predicate) -> bool:
        return any(True for _ in self._rows(Evaluator(predicate), ()))

    def files(self, predicate: Predicate) -> Flags:
        """Places among those held that have a row of the predicate."""
        found = np.zeros(len(self.places), np.bool_)
        for view, rows in self._rows(Evaluator(predicate), ()):
            found[view.place_of[rows[FILE].to_numpy()]] = True
        return found

    def _rows(self, evaluator: Evaluator, names: Sequence[str]) -> Iterator[tuple[_View, pa.Table]]:
        for view, files in self._asked():
            for rows in view.pin.rows.matching(evaluator, names, files):
                yield view, rows

    def _asked(self) -> Iterator[tuple[_View, Flags | None]]:
        for view, files in self.parts:
            view.pin.hit()
            yield view, files


class PinsSeen:
    """Pins as one state of the table sees them."""

    def __init__(self, pins: Pins, state: State) -> None:
        self.pins = pins
        self.state = state
        self._views: dict[int, tuple[Pinned, _View | None]] = {}
        self._nothing = Held(np.zeros(len(state.files), np.bool_))

    def held(self, predicate: Predicate, names: Iterable[str]) -> Held:
        """What is pinned of the rows of the predicate, with these columns, the smallest pin first."""
        pins = self.pins.all
        if not pins:
            return self._nothing
        wanted = tuple(names)
        places = np.zeros(len(self.state.files), np.bool_)
        parts: list[tuple[_View, Flags | None]] = []
        for pin in sorted(pins, key=lambda one: one.rows.count):
            view = self._view(pin) if pin.serves(predicate, wanted) else None
            own = None if view is None else view.held & ~places
            if view is None or own is None or not own.any():
                continue
            places |= own
            there = view.place_of != NOWHERE
            files = there.copy()
            files[there] = own[view.place_of[there]]
            parts.append((view, None if files.all() else files))
        return Held(places, parts) if parts else self._nothing

    def _view(self, pin: Pinned) -> _View | None:
        known = self._views.get(id(pin))
        if known is None:
            # Whoever makes it twice makes the same. The pin is kept beside it, so that no other has its id meanwhile.
            gone = {key for key, (one, _) in list(self._views.items()) if one not in self.pins.all}
            self._views = {key: one for key, one in list(self._views.items()) if key not in gone}
            known = self._views[id(pin)] = (pin, _seen(pin, self.state))
        return known[1]


def _seen(pin: Pinned, state: State) -> _View | None:
    """None where the table is read in another way now."""
    if not state.reading.agrees_on(pin.state.reading, pin.columns):
        return None
    numbers = match(pin.state.files, state.files)
    held = numbers != NOWHERE
    held[held] = pin.held[numbers[held]]
    held[held] = _same_partitions(pin, state, numbers[held], np.flatnonzero(held))
    before, deleted = pin.state.deleted(), state.deleted()
    place_of = np.full(len(pin.held), NOWHERE, np.int64)
    place_of[numbers[held]] = np.flatnonzero(held)
    for number in np.flatnonzero(place_of != NOWHERE).tolist() if deleted or before else ():
        one, other = before.get(number), deleted.get(int(place_of[number]))
        if (one is None) != (other is None) or not (one is None or other is None or np.array_equal(one, other)):
            held[place_of[number]] = False
            place_of[number] = NOWHERE
    return _View(pin, place_of, held)


def _same_partitions(pin: Pinned, state: State, numbers: Numbers, places: Numbers) -> Flags:
    same = np.ones(len(numbers), np.bool_)
    for column in state.reading.partition_columns:
        if column.name in pin.columns:
            one = pin.state.partitions[column.name].take(pa.array(numbers))
            other = state.partitions[column.name].take(pa.array(places))
            equal = pc.fill_null(pc.equal(one, other), False)
            none = pc.and_(pc.is_null(one), pc.is_null(other))
            same &= pc.or_(equal, none).to_numpy(zero_copy_only=False)
    return same
