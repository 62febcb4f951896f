"""One table with a column for each way in which keys lie in files, the same at every run, made once into the cache."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from testbed.cached import made_once

Keys = npt.NDArray[np.int64]
KEY_BYTES = 8
"""What the index's size is told in percent of, for each row."""

_FORM = 1
"""To be raised whenever the same arguments give other data."""
_SPACE = 2**40
_DAY = 86_400
_LATE_SHARE, _LATEST_DAYS, _YEAR_DAYS = 0.02, 30, 365
_CLUSTERS = 5
_ZIPF, _ZIPF_VALUES = 1.3, 1_000_000


@dataclass(frozen=True)
class Shape:
    """How many files of how many rows; what the keys of one file depend on beyond its own number."""

    files: int
    rows: int

    @cached_property
    def second_cluster(self) -> Keys:
        return np.random.default_rng(11).permutation(self.files)

    @cached_property
    def centres(self) -> Keys:
        return np.random.default_rng(12).integers(0, _SPACE, (self.files, _CLUSTERS))

    @cached_property
    def widths(self) -> npt.NDArray[np.float64]:
        return np.exp(np.random.default_rng(13).normal(18, 1.5, (self.files, _CLUSTERS)))


Maker = Callable[[Shape, int, np.random.Generator], npt.NDArray[np.int64]]


def _order_keys(shape: Shape, file: int, rng: np.random.Generator) -> Keys:
    """As TPC-H numbers its orders: eight of every 32 numbers, about four lines an order, in order."""
    order = np.arange(file * shape.rows, (file + 1) * shape.rows) // 4
    return order // 8 * 32 + order % 8


def late_times(shape: Shape, file: int, rng: np.random.Generator) -> Keys:
    """Milliseconds of a year, in the order of arrival: half of each day something happens, and two in a hundred come up to a
    month late."""
    row = np.arange(file * shape.rows, (file + 1) * shape.rows)
    arrived = row * (_YEAR_DAYS * _DAY / (shape.files * shape.rows))
    day = np.floor(arrived / _DAY) * _DAY
    happened = day + 8 * 3600 + (arrived - day) * 0.5 + rng.exponential(60, shape.rows)
    late = rng.random(shape.rows) < _LATE_SHARE
    happened[late] -= rng.random(late.sum()) * _LATEST_DAYS * _DAY
    return np.asarray(np.maximum(happened, 0) * 1000, np.int64)


def _january_and_december(shape: Shape, file: int, rng: np.random.Generator) -> Keys:
    """Two clusters a file, far apart."""
    width = _SPACE // shape.files
    cluster = np.where(rng.random(shape.rows) < 0.5, file, shape.second_cluster[file])
    return cluster * width + rng.integers(0, width, shape.rows)


def _clustered(shape: Shape, file: int, rng: np.random.Generator) -> Keys:
    """Some clusters a file anywhere, of very different widths, as of tenants or devices."""
    cluster = rng.integers(0, _CLUSTERS, shape.rows)
    keys = shape.centres[file, cluster] + rng.normal(0, 1, shape.rows) * shape.widths[file, cluster]
    return np.asarray(np.clip(keys, 0, 2 * _SPACE), np.int64)


def _zipf(shape: Shape, file: int, rng: np.random.Generator) -> Keys:
    """Few values often, many seldom, in any file."""
    return rng.zipf(_ZIPF, shape.rows) % _ZIPF_VALUES


def _random(shape: Shape, file: int, rng: np.random.Generator) -> Keys:
    """Hardly a value twice, in any file."""
    return rng.integers(0, _SPACE, shape.rows)


DISTRIBUTIONS: dict[str, Maker] = {
    "sorted": _order_keys,
    "late": late_times,
    "jan_dec": _january_and_december,
    "clustered": _clustered,
    "zipf": _zipf,
    "random": _random,
}


def distributions(rows: int, files: int) -> Path:
    """A folder of files of equally many rows, a column of whole numbers for each of `DISTRIBUTIONS`."""
    shape = Shape(files, rows // files)

    def make(folder: Path) -> None:
        for file in range(files):
            rngs = np.random.default_rng([_FORM, file]).spawn(len(DISTRIBUTIONS))
            columns = {
                name: maker(shape, file, rng) for (name, maker), rng in zip(DISTRIBUTIONS.items(), rngs, strict=True)
            }
            pq.write_table(pa.table(columns), folder / f"part-{file:05}.parquet", use_dictionary=False)

    return made_once(f"sieve/distributions-{_FORM}-{rows}-{files}", make)
