"""Which columns a client's queries ask for: what pinned rows are laid out by."""

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from grebe.predicate.tree import Column, Compare, In, Literal, Path, Predicate, StartsWith, walk

_MOST_COLUMNS = 256


@dataclass(frozen=True, slots=True)
class Wishes:
    """Columns by how often they were asked for, most often first: by single values, and by ranges."""

    points: Sequence[tuple[Path, int]] = ()
    ranges: Sequence[tuple[Path, int]] = ()

    @property
    def any(self) -> bool:
        return bool(self.points or self.ranges)


class Asked:
    """Counts the columns of predicates. Threads may share it."""

    def __init__(self) -> None:
        self._points: Counter[Path] = Counter()
        self._ranges: Counter[Path] = Counter()
        self._lock = threading.Lock()

    def hear(self, predicate: Predicate) -> None:
        """Of a predicate that is bound and normalised, each column once."""
        points: set[Path] = set()
        ranges: set[Path] = set()
        for part in walk(predicate):
            match part:
                case Compare("=" | "<=>", Column(path), Literal()) | In(Column(path)):
                    points.add(path)
                case Compare("<" | "<=" | ">" | ">=", Column(path), Literal()) | StartsWith(Column(path)):
                    ranges.add(path)
        with self._lock:
            for count, paths in ((self._points, points), (self._ranges, ranges)):
                count.update(path for path in paths if path in count or len(count) < _MOST_COLUMNS)

    def wishes(self) -> Wishes:
        with self._lock:
            return Wishes(self._points.most_common(), self._ranges.most_common())
