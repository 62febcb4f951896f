"""The end of a content file: where its chunks lie, which keys each may hold. One request brings it, and it can be kept.

Of every chunk the bounds of the first key column are known, and of each key column a Bloom filter.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from grebe.formats import DataFile
from grebe.formats.parquet_pages import BloomFilters, Footer, PageMap, bloom_spans, naming, parse_footer
from grebe.formats.parquet_pages.schema import Leaf
from grebe.indexes.columns import Chosen
from grebe.indexes.content.bounds import column_of
from grebe.indexes.content.statistics import bounds_of_groups, rows_of_groups
from grebe.indexes.lookup.points import Points, hashes_in
from grebe.predicate.bounds import Bounds, Flags, Stretches, bounds_of, by_bounds, in_order, named, stretches
from grebe.predicate.tree import Column, Compare, In, Literal, Path, Predicate
from grebe.predicate.types import Type
from grebe.predicate.verdicts import Verdicts, both, judge, must_read

_MANY_VALUES = 64
"""An IN of more values than this is not asked of the filters."""


@dataclass(frozen=True, eq=False)
class Tail:
    file: DataFile
    pages: PageMap = field(repr=False)
    bounds: Bounds | None = field(repr=False)
    stretches: Stretches | None = field(repr=False)
    filters: dict[Path, tuple[Leaf, BloomFilters]] = field(repr=False)
    nbytes: int

    def chunks_with(self, points: Points, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """Chunks that can hold some of the points from `start` to `stop`, and which: (chunk, from, to)."""
        held = self.filters.get(points.column)
        hashes = None if held is None else points.hashes(held[0])
        assert self.stretches is not None, "whoever asks has looked"
        for chunk, first, after in self.stretches.holding(points.values[start:stop]):
            own = slice(start + first, start + after)
            if held is None or hashes is None or held[1].may_hold_any(chunk, hashes[own]).any():
                yield chunk, own.start, own.stop

    def is_filled(self, chunk: int) -> bool:
        """Whether all entries of the chunk have one key."""
        known = self.stretches
        if known is None or chunk < known.first:
            return False
        return bool(known.lows[chunk - known.first] == known.highs[chunk - known.first])

    def chunks_for(self, predicate: Predicate) -> list[int]:
        """Those that can hold an entry for which the (bound and normalised) predicate is true."""
        verdicts = judge(predicate, len(self.pages.counts), self._verdicts)
        return [int(number) for number in np.flatnonzero(must_read(verdicts))]

    def _verdicts(self, predicate: Predicate) -> Verdicts | None:
        known = None if self.bounds is None else by_bounds(self.bounds, predicate)
        filtered = self._by_filter(predicate)
        if known is None or filtered is None:
            return filtered if known is None else known
        return both(known, filtered)

    def _by_filter(self, predicate: Predicate) -> Verdicts | None:
        match predicate:
            case Compare("=" | "<=>", Column(path, kind), Literal() as value) if kind is not None:
                values: Sequence[Any] = (value,)
            case In(Column(path, kind), items) if len(items) <= _MANY_VALUES and kind is not None:
                values = items
            case _:
                return None
        asked = [one for one in values if isinstance(one, Literal) and one.type == kind and one.value is not None]
        if path not in self.filters or len(asked) < len(values):
            return None
        cannot = np.ones(len(self.pages.counts), np.bool_)
        for one in asked:
            found = self._may_hold(path, one.value, kind)
            if found is None:
                return None
            cannot &= ~found
        return named(cannot, np.zeros_like(cannot))

    def _may_hold(self, path: Path, value: Any, kind: Type) -> Flags | None:
        """None where a filter cannot be asked: it tells zeros apart that are equal, and every NaN from every other."""
        if kind.is_floating and (value == 0 or value != value):
            return None
        leaf, filters = self.filters[path]
        hashes = hashes_in(leaf, [value], kind)
        return None if hashes is None else filters.may_hold(int(hashes[0]))


def read_tail(file: DataFile, data: bytes, keys: Sequence[Chosen]) -> Tail:
    """`data` reaches from the first of the indexes and filters to the end of the file."""
    with naming(file.uri):
        footer = parse_footer(data, file.size - len(data))
    pages = PageMap.from_footer(file, footer)
    leaves = {leaf.path: number for number, leaf in enumerate(footer.schema.leaves)}
    numbers = {key.path: leaves.get((key.content.encode(),)) for key in keys}
    filters = {}
    for path, number in numbers.items():
        if number is not None:
            filters[path] = (footer.schema.leaves[number], _filters(footer, number, file.uri))
    first = numbers[keys[0].path]
    bounds = None if first is None else _bounds(footer, first, keys[0])
    size = pages.nbytes + sum(one.nbytes for _, one in filters.values()) + 64 * len(footer.groups)
    return Tail(file, pages, bounds, None if bounds is None else stretches(bounds), filters, size)


def _filters(footer: Footer, leaf: int, uri: str) -> BloomFilters:
    spans = bloom_spans(footer, leaf)
    return BloomFilters.of([None if span is None else footer.inside_tail(*span) for span in spans], uri)


def _bounds(footer: Footer, leaf: int, key: Chosen) -> Bounds | None:
    known = bounds_of_groups(footer, leaf, key.type)
    low, high = column_of(known.low, key.type), column_of(known.high, key.type)
    bounds = bounds_of(key.path, low, high, rows_of_groups(footer), known.nulls)
    return None if bounds is None else in_order(bounds)
