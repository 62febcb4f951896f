"""An index that is not there, as it would be: what planner and people want to know before anybody builds it."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from grebe.indexes.columns import Chosen
from grebe.indexes.content.parts import parts_for
from grebe.indexes.kind import FILE_COLUMN, Facts
from grebe.indexes.view.definition import Definition
from grebe.log.entry import IndexSpec

Made = TypeVar("Made")
Numbers = npt.NDArray[np.int64]
OF_A_FILE = 3_500
"""Bytes of a content file beside its rows, and of what the directory says of it."""
_OF_A_COPY, _OF_ITS_COLUMN = 700, 300
_OF_A_RUN, _LEAST_RUN, _REPEATED = 3.0, 8, 0.6
"""Bytes of a run of equal values; of shorter ones each value is written, and some of that is compressed."""
_MOST_OF_A_DICTIONARY = 1 << 20
"""Bytes of its values; Parquet's writer gives up larger ones."""
_LINEAGE = Chosen((FILE_COLUMN,), "integer")
_APART = 5.0


@dataclass(frozen=True, slots=True)
class Sample:
    """Some rows of a table, and what is known of all of them."""

    rows: pa.Table
    """Whole columns of the table, and `FILE_COLUMN`."""
    facts: Facts
    files: int
    """Of the table."""
    groups: "Callable[[Definition], Groups] | None" = None
    """What of the sampled rows a query groups; None without Spark."""
    drawn_from: int = 0
    """Rows that the sampled ones were drawn from: a part of each of some files; 0: any of the table's."""
    _known: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)
    """Many kinds ask the same of the same columns."""

    def within(self, kept: pa.BooleanArray) -> "Sample":
        """Of the table with just those rows that these of the sample stand for."""
        share = float(pc.mean(kept).as_py()) if len(kept) else 0.0
        facts = replace(self.facts, rows=round(self.facts.rows * share), older_rows=0, older_bytes=0)
        return Sample(self.rows.filter(kept), facts, self.files, self.groups, round(self.drawn_from * share))

    def values(self, column: Chosen) -> pa.Array:
        found = self.rows[column.path[0]].combine_chunks()
        return found if len(column.path) == 1 else pc.struct_field(found, list(column.path[1:]))

    def order(self, column: Chosen) -> Numbers:
        """The rows as they lie if they are sorted by this column."""

        def sort() -> Numbers:
            order = pc.array_sort_indices(self.values(column), null_placement="at_start")
            return np.asarray(order.to_numpy(), np.int64)

        return self._once(("order", column.path), sort)

    def ranks(self, column: Chosen) -> Numbers:
        """The place of each row among all, by this column."""
        return np.argsort(self.order(column), kind="stable")

    def codes(self, columns: Sequence[Chosen]) -> Numbers:
        """Equal for rows that are equal in all of these columns."""
        if not columns:
            return np.zeros(self.rows.num_rows, np.int64)

        def encode() -> Numbers:
            encoded = self.values(columns[-1]).dictionary_encode("encode")
            own: Numbers = np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int64)
            if len(columns) == 1:
                return own
            pairs = self.codes(columns[:-1]) * (len(encoded.dictionary) + 1) + own
            return np.asarray(np.unique(pairs, return_inverse=True)[1], np.int64)

        return self._once(("codes", *(column.path for column in columns)), encode)

    def distinct(self, columns: Sequence[Chosen]) -> float:
        """How many different values the table has, about."""
        found, once = self._counted(columns)
        rows, sampled = self.facts.rows, self.rows.num_rows
        if not 0 < self.drawn_from < rows or not self._apart(columns):
            return scaled(found, once, sampled, rows)
        # Parts of files that were not looked at have values of their own, but for one that goes on from the part before.
        there = scaled(found, once, sampled, self.drawn_from)
        parts = self.distinct_in_sample([_LINEAGE])
        return min(float(rows), there + max(0.0, there - parts) * (rows / self.drawn_from - 1.0))

    def _apart(self, columns: Sequence[Chosen]) -> bool:
        """Whether two rows of one file are equal much more often than two of different files."""

        def compare() -> bool:
            codes, files = self.codes(columns), self.codes([_LINEAGE])
            equal, alike = np.bincount(codes), np.unique(codes * (files.max() + 1) + files, return_counts=True)[1]
            own = np.bincount(files)
            within = (alike * (alike - 1)).sum() / max(1, (own * (own - 1)).sum())
            among = ((equal**2).sum() - (alike**2).sum()) / max(1, len(codes) ** 2 - (own**2).sum())
            return bool(len(own) > 1 and within > _APART * among)

        return self.rows.num_rows > 0 and self._once(("apart", *(column.path for column in columns)), compare)

    def distinct_in_sample(self, columns: Sequence[Chosen]) -> int:
        return self._counted(columns)[0]

    def _counted(self, columns: Sequence[Chosen]) -> tuple[int, int]:
        """Different values of the sample, and those of them that it has once."""

        def count() -> tuple[int, int]:
            codes = self.codes(columns)
            counts = np.bincount(codes) if len(codes) else np.zeros(0, np.int64)
            return int((counts > 0).sum()), int((counts == 1).sum())

        return self._once(("counts", *(column.path for column in columns)), count)

    def _once(self, key: Any, make: Callable[[], Made]) -> Made:
        if key not in self._known:
            self._known[key] = make()
        found: Made = self._known[key]
        return found


@dataclass(frozen=True, slots=True)
class Groups:
    """Of sampled rows in a query that groups them."""

    found: int
    once: int
    """Of these, those with a single row."""
    rows: int
    """That are grouped: a join may make more of the sampled ones, a condition fewer."""
    sampled: int


def scaled(found: int, once: int, sampled: int, rows: float) -> float:
    """How many values so many rows have, if a sample has so many, and so many of them once (the estimator known as Duj1)."""
    if not sampled:
        return 0.0
    unread = 1.0 - min(1.0, sampled / max(rows, 1.0))
    return min(max(rows, 1.0), found / max(1.0 - unread * once / sampled, 1e-9))


@dataclass(frozen=True, slots=True)
class Supposed:
    properties: Mapping[str, Any]
    """What the index would remember about its content, beside its spec."""
    bytes: int
    rows: int
    """Of its content."""
    files: int
    """Of its content."""
    order: Numbers | None = field(default=None, compare=False)
    """The sampled rows as they would lie; None: in no order that bounds of files tell anything of."""
    shuffled: bool = True
    """Whether building it sends its rows around."""


@runtime_checkable
class CanBeSupposed(Protocol):
    """A kind that can tell what it would be like."""

    def supposed(self, spec: IndexSpec, sample: Sample) -> Supposed: ...


def copied_bytes(sample: Sample, columns: Sequence[Chosen], order: Numbers | None, parts: int | None = None) -> int:
    """Of these columns with their lineage, if all rows are written in that order, into so many files."""
    values = [*map(sample.values, columns), sample.values(_LINEAGE)]
    scale = sample.facts.rows / max(1, sample.rows.num_rows)
    files = parts or parts_for(int(sum(_plain(values, order)) * scale))
    plain = _plain(values, order, math.ceil(sample.facts.rows / files))
    each = [
        min(alone * scale, _in_dictionary(sample, column, files, order is not None and place == 0))
        for place, (column, alone) in enumerate(zip((*columns, _LINEAGE), plain, strict=True))
    ]
    return int(sum(each)) + files * of_a_copy(len(values))


def of_a_copy(columns: int) -> int:
    """Bytes of a file of a copy beside its rows."""
    return _OF_A_COPY + _OF_ITS_COLUMN * columns


def bytes_of_a_row(sample: Sample, columns: Sequence[Chosen]) -> float:
    """Of these columns, in no order, as small as dictionaries make them."""
    table = pa.table([sample.values(column) for column in columns], [f"c{place}" for place in range(len(columns))])
    return sum(_sizes(table, None, use_dictionary=True)) / max(1, int(sample.rows.num_rows))


def _in_dictionary(sample: Sample, column: Chosen, files: int, in_order: bool) -> float:
    """Bytes of a column if each file lists its values once, and of each row which one it is; in order, each value has one run."""
    there = sample.values(column).drop_null()
    if not len(there):
        return 0.0
    listed = _plain([there.unique()], None)[0] / sample.distinct_in_sample([column])
    rows, values = sample.facts.rows / files, sample.distinct([column])
    own = values / files if in_order else values * (1.0 - math.exp(-rows / max(1.0, values)))
    if own * there.nbytes / len(there) > _MOST_OF_A_DICTIONARY:
        return math.inf
    number = math.log2(own + 1.0) / 8
    if in_order:
        number = own * _OF_A_RUN / rows if rows >= own * _LEAST_RUN else number * _REPEATED
    return files * (own * listed + rows * number)


def _plain(columns: Sequence[pa.Array], order: Numbers | None, rows_of_a_file: int | None = None) -> list[float]:
    """Bytes of each of the columns as they are, compressed file by file: of few rows a file less can be made smaller."""
    names = [f"c{place}" for place in range(len(columns))]
    return _sizes(pa.table(list(columns), names), order, use_dictionary=False, row_group_size=rows_of_a_file)


def entry_bytes(sample: Sample, columns: Sequence[Chosen], locators: int, order: Numbers | None) -> int:
    """Of entries, one a row: these columns, the file, and where in it; numbers as differences to their neighbours."""
    located = [pa.array(_places(sample))] * locators
    values = [*map(sample.values, columns), sample.rows[FILE_COLUMN].combine_chunks(), *located]
    names = [f"c{place}" for place in range(len(values))]
    whole = {
        name: "DELTA_BINARY_PACKED" for name, one in zip(names, values, strict=True) if pa.types.is_integer(one.type)
    }
    sizes = _sizes(pa.table(values, names), order, use_dictionary=False, column_encoding=whole)
    return int(sum(sizes) * sample.facts.rows / max(1, sample.rows.num_rows))


def _places(sample: Sample) -> Numbers:
    """Where in its file each row lies, about: sampled rows follow each other as those of the file do."""
    of_a_file = max(1, sample.facts.rows // max(1, sample.files))
    _, first, count = np.unique(sample.rows[FILE_COLUMN].to_numpy(), return_index=True, return_counts=True)
    begin = np.argsort(first, kind="stable")
    first, count = first[begin], count[begin]
    within = np.arange(sample.rows.num_rows) - np.repeat(first, count)
    return np.asarray(within * of_a_file // np.maximum(1, np.repeat(count, count)), np.int64)


def _sizes(table: pa.Table, order: Numbers | None, **options: Any) -> list[float]:
    if not table.num_rows:
        return [0.0] * table.num_columns
    laid = table if order is None else table.take(pa.array(order))
    written: list[pq.FileMetaData] = []
    pq.write_table(
        laid, pa.MockOutputStream(), compression="zstd", write_statistics=False, metadata_collector=written, **options
    )
    (footer,) = written
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    return [
        float(sum(group.column(place).total_compressed_size for group in groups)) for place in range(table.num_columns)
    ]


def along(sample: Sample, on: Sequence[Chosen], columns: Sequence[Chosen], reason: str) -> Supposed:
    """A copy whose rows lie along a curve through the columns `on`."""
    order = _interleaved(sample, on)
    size = copied_bytes(sample, columns, order)
    layout = {"buckets": 0, "bucket_by": [], "sort_by": [], "along": [one.content for one in on], "reason": reason}
    return Supposed({"layout": layout}, size, sample.facts.rows, parts_for(size), order)


def _interleaved(sample: Sample, on: Sequence[Chosen]) -> Numbers:
    """Along a curve by ranks: which one makes no difference for a guess."""
    count = max(1, sample.rows.num_rows)
    levels = max(1, min(60 // max(1, len(on)), int(np.ceil(np.log2(count)))))
    cells = [sample.ranks(column) * (1 << levels) // count for column in on]
    numbers = np.zeros(sample.rows.num_rows, np.int64)
    for level in range(levels - 1, -1, -1):
        for cell in cells:
            numbers = (numbers << 1) | ((cell >> level) & 1)
    return np.argsort(numbers, kind="stable").astype(np.int64)
