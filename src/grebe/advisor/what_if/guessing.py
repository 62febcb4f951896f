"""An index that prunes and is not there, asked all the same: which files it would leave is guessed from sampled rows.

The rows that are about to match are counted in the sample, file by file. Where a value is too rare to be met there, the number of
different values says how many rows have it, and whether the sampled files' values overlap says in how many files these lie.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from grebe.errors import GrebeError
from grebe.files import FileIds
from grebe.formats import Reading
from grebe.indexes.kind import FILE_COLUMN, Entries, Pruner, Totals
from grebe.indexes.reading import Reader
from grebe.indexes.supposed import Sample
from grebe.planner.selectivity import Statistics, share_of
from grebe.predicate.about import about
from grebe.predicate.evaluate import matches
from grebe.predicate.tree import Column, Compare, In, Literal, Path, Predicate

_SEED = 42
_FEW = 5
"""Of fewer matching rows in the sample nothing is concluded but that they are rare."""


@dataclass(frozen=True, slots=True)
class Guess:
    """What an index would answer: `Hits`."""

    records: int
    files: npt.NDArray[np.int64]
    by_file: bool

    @property
    def likely(self) -> int:
        return 0 if self.by_file else self.records

    def entries(self, reader: Reader) -> Entries:
        return Entries(self.files, None, None)


@dataclass(frozen=True)
class Guessing:
    """`indexes.kind.Pruner` of an index that is not there. `real` knows what such an index can tell."""

    real: Pruner
    sample: Sample
    bytes: int
    exact: bool
    """Whether it tells values themselves, and not just between which they lie."""
    distinct: Mapping[Path, float]
    _known: dict[Predicate, Guess] = field(default_factory=dict, repr=False, compare=False)

    @property
    def name(self) -> str:
        return self.real.name

    @property
    def reading(self) -> Reading:
        return self.real.reading

    @property
    def covered(self) -> FileIds:
        return self.real.covered

    @property
    def columns(self) -> Mapping[Path, str]:
        return self.real.columns

    @property
    def rows(self) -> int:
        return self.sample.facts.rows

    @property
    def by_file(self) -> bool:
        return self.real.by_file

    @property
    def chosen(self) -> str:
        return ""

    def leads(self, column: Path) -> bool:
        return self.real.leads(column)

    def helps(self, predicate: Predicate) -> bool:
        return self.real.helps(predicate)

    def hits(self, predicate: Predicate, reader: Reader) -> Guess:
        if predicate not in self._known:
            self._known[predicate] = self._guess(about(predicate, self.columns))
        return self._known[predicate]

    def certain(self, predicate: Predicate, reader: Reader) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        return np.empty(0, np.int64), np.empty(0, np.int64)

    def totals(self, predicate: Predicate, files: FileIds, reader: Reader) -> Totals | None:
        return None

    def maps(self, reader: Reader) -> Mapping[int, Any]:
        return {}

    def warm(self, reader: Reader, pin: bool) -> None:
        """There is nothing to read."""

    def _guess(self, predicate: Predicate) -> Guess:
        every = self.covered.to_numpy().astype(np.int64)
        count = self.sample.rows.num_rows
        try:
            met = np.asarray(matches(self.sample.rows, predicate).to_numpy(zero_copy_only=False), np.bool_)
        except GrebeError:
            return Guess(self.rows, every, self.by_file)
        found = int(met.sum())
        share = found / count if found >= _FEW else min(max(found, 1) / max(1, count), self._rare(predicate))
        records = max(1, round(share * self.rows))
        left = self._share_of_files(predicate, met, records, len(every))
        kept = max(1, min(len(every), math.ceil(left * len(every)))) if len(every) else 0
        chosen = np.random.default_rng(_SEED).permutation(every)[:kept]
        return Guess(records, np.sort(chosen), self.by_file)

    def _rare(self, predicate: Predicate) -> float:
        return share_of(predicate, Statistics({}, self.distinct))

    def _share_of_files(self, predicate: Predicate, met: npt.NDArray[np.bool_], records: int, files: int) -> float:
        """Sampled files with a row that matches count; others by how likely it is that they have one that was not sampled."""
        ids = self.sample.rows[FILE_COLUMN].to_numpy()
        sampled = np.unique(ids)
        if not len(sampled):
            return 1.0
        having = np.unique(ids[met])
        possible = np.array(
            [number in having or self._within(predicate, ids == number) for number in sampled], np.bool_
        )
        if not self.exact:
            return float(possible.mean())
        spread = max(1.0, float(possible.mean()) * files)
        chance = 1.0 - math.exp(-records / spread)
        hit = np.where(np.isin(sampled, having), 1.0, np.where(possible, chance, 0.0))
        # A single value that was met by chance in one of few sampled files is not in that share of all.
        return min(float(hit.mean()), records / files) if records < files else float(hit.mean())

    def _within(self, predicate: Predicate, rows: npt.NDArray[np.bool_]) -> bool:
        """Whether values of the predicate lie between the least and the greatest of a file's sampled ones."""
        parts = getattr(predicate, "predicates", (predicate,))
        for part in parts:
            match part:
                case Compare("=" | "<=>", Column(path), Literal(value)) if value is not None:
                    wanted = [value]
                case In(Column(path), items):
                    wanted = [one.value for one in items if isinstance(one, Literal) and one.value is not None]
                case _:
                    continue
            values = self.sample.rows[path[0]] if len(path) == 1 else None
            if values is None:
                continue
            bounds = pc.min_max(values.filter(rows)).as_py()
            try:
                if not any(bounds["min"] is not None and bounds["min"] <= one <= bounds["max"] for one in wanted):
                    return False
            except TypeError:
                continue
        return not any(
            isinstance(part, Compare) and part.operator[0] in "<>" and part.operator != "<>" for part in parts
        )
