"""The ways to read one scan: its files as they are, or a stand-in as plain files, as so many hash partitions, in order or not. Each
with its cost and with what it brings to the rest of the plan."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from grebe.planner.candidates import Candidate
from grebe.planner.content import leading, path_of
from grebe.planner.cost import Meter
from grebe.planner.narrowing import Narrowed
from grebe.planner.profile import Profile
from grebe.planner.selectivity import places_of, share_within
from grebe.planner.shapes import Attributes, Class
from grebe.planner.sizes import projected_share, stored_bytes, type_of_path
from grebe.predicate.tree import Path

_FIELD = "string"
"""Taken for the type of a field inside a column."""
_LINEAGE = "int"
_STAND_IN_FORMAT = "parquet"
_TASKS_A_CORE = 4
_BARELY = 1e-6
"""Being in order is a favour that nobody should ask for without need, even where it is free."""


class Partitioning(NamedTuple):
    """Rows with equal values of these classes are in one of so many partitions, by Spark's hash."""

    classes: tuple[Class, ...]
    number: int
    ours: bool
    """A scan of ours, which joins on more keys than these can use too."""


class Wanted(NamedTuple):
    """What the rest of the plan could make use of."""

    partitioned: frozenset[Class]
    ordered: frozenset[Class]


@dataclass(frozen=True, slots=True)
class Option:
    candidate: Candidate | None
    """None: the files as they are."""
    buckets: int
    ordered: bool
    cost: float
    partitioning: Partitioning | None
    order: tuple[Class, ...]
    tasks: int
    size: float
    """What Spark takes this scan's size to be."""
    files: int
    bytes: int
    shuffled_bytes: float = 0.0
    sorts: int = 0
    narrowed: Narrowed | None = None
    """Only some of the files as they are."""


def plain_option(profile: Profile, meter: Meter) -> Option:
    relation = profile.relation
    files = len(relation.listed) + relation.unregistered_files
    tasks = meter.scan_tasks(relation.bytes, files)
    cost = _source_scan(profile, meter, relation.bytes, profile.rows, files, tasks)
    read = relation.bytes * profile.share * profile.opened
    return Option(
        None, 0, False, cost, None, (), tasks, _table_size(profile), math.ceil(files * profile.opened), round(read)
    )


def narrowed_option(narrowed: Narrowed, profile: Profile, meter: Meter) -> Option:
    """What an index leaves of the files; of these, what the partitions leave is not known."""
    relation = profile.relation
    share = narrowed.bytes / relation.bytes if relation.bytes else 1.0
    tasks = meter.scan_tasks(narrowed.bytes, narrowed.files)
    whole = replace(profile, opened=min(1.0, profile.opened / max(share, profile.opened)))
    cost = _source_scan(whole, meter, narrowed.bytes, profile.rows * share, narrowed.files, tasks)
    return Option(
        None,
        0,
        False,
        cost + meter.stand_in(cost),
        None,
        (),
        tasks,
        narrowed.bytes * projected_share(relation),
        math.ceil(narrowed.files * whole.opened),
        round(narrowed.bytes * profile.share * whole.opened),
        narrowed=narrowed,
    )


def _table_size(profile: Profile) -> float:
    """What Spark takes a scan of the table to give."""
    return profile.relation.bytes * projected_share(profile.relation)


def _source_scan(profile: Profile, meter: Meter, size: float, rows: float, files: int, tasks: int) -> float:
    """Reading files of the table itself. Those that the partitions rule out are not opened."""
    relation = profile.relation
    return meter.scan(
        size * profile.share * profile.opened,
        rows * profile.opened,
        len(relation.required),
        files * profile.opened,
        tasks,
        meter.byte_rate(relation.reading.format),
        meter.open_rate(relation.table or relation.name),
    )


def read_counts(candidates: Iterable[Candidate]) -> frozenset[int]:
    """The bucket counts that occur in a query: what a copy is read with must suit the others."""
    return frozenset(one.copy.layout.buckets for one in candidates if one.copy.layout.buckets > 0)


class StandInOptions:
    """All options of one candidate; they share most of the reckoning."""

    __slots__ = (
        "_attributes",
        "_candidate",
        "_kept_bytes",
        "_meter",
        "_profile",
        "_read",
        "_rows_read",
        "_runs",
        "_share",
    )

    def __init__(self, candidate: Candidate, profile: Profile, attributes: Attributes, meter: Meter) -> None:
        self._candidate = candidate
        self._profile = profile
        self._attributes = attributes
        self._meter = meter
        content, keep = candidate.content, candidate.keep
        self._runs = len(set(content.runs[keep].tolist())) if len(candidate.copy.runs) > 1 else 1
        everything = keep is content.everything
        kept_rows = float(content.row_count if everything else content.rows[keep].sum())
        self._kept_bytes = float(content.bytes if everything else content.sizes[keep].sum())
        self._share = self._stored_share()
        within = self._within_files(kept_rows, len(keep))
        self._rows_read = kept_rows * within
        self._read = self._kept_bytes * within * self._share

    def _within_files(self, kept_rows: float, files: int) -> float:
        """Which share of the kept files' pages is read, as the rows lie in them."""
        copy, asked, rates = self._candidate.copy, self._profile.asked, self._meter.rates
        lead = leading(copy)
        if not kept_rows or asked.mentions.isdisjoint(lead):
            return 1.0
        known = self._profile.statistics
        shares = [share_within(asked.predicate, frozenset({path}), known) for path in lead]
        if copy.layout.along:
            # Pages are boxes: a range of a column meets those that it holds, and one more.
            pages = max(1.0, self._candidate.content.row_count / len(copy.runs) / rates.curve_unit_rows)
            sides = copy.layout.sides or (pages ** (-1 / len(lead)),) * len(lead)
            shares = [min(1.0, share + side) for share, side in zip(shares, sides, strict=True)]
            least = rates.curve_unit_rows * files
        else:
            # A value's bucket is one of them, but each file is asked for all values.
            least = rates.pruned_unit_rows * files * places_of(asked.predicate, lead[0])
        matching = math.prod(shares) * self._candidate.content.row_count
        return min(1.0, max(matching, least) / kept_rows)

    def _stored_share(self) -> float:
        copy, relation = self._candidate.copy, self._profile.relation
        types = {column.name: column.type for column in copy.reading.columns}
        whole = stored_bytes(types.get(path[0], _FIELD) if len(path) == 1 else _FIELD for path in copy.columns)
        wanted = [type_of_path(relation, path) for path in relation.required]
        if self._candidate.coverage.drop:
            wanted.append(_LINEAGE)
        return min(1.0, stored_bytes(wanted) / whole)

    def options(self, wanted: Wanted, counts: frozenset[int]) -> list[Option]:
        found = [self._option(0, False, None, ())]
        settings = self._meter.settings
        layout = self._candidate.copy.layout
        if layout.buckets > 0 and settings.bucketing:
            classes = self._classes(layout.bucket_by)
            if classes and len(classes) == len(layout.bucket_by) and wanted.partitioned.issuperset(classes):
                order = _leading(self._classes(layout.sort_by), wanted.ordered)
                shared = self._shared(layout.buckets, counts)
                for number in sorted({*shared, self._enough(layout.buckets)}, reverse=True):
                    partitioning = Partitioning(classes, number, True)
                    found.append(self._option(number, False, partitioning, ()))
                    if order and number in shared:
                        found.append(self._option(number, True, partitioning, order))
        return found

    def _classes(self, names: tuple[str, ...]) -> tuple[Class, ...]:
        """The classes of the leading columns of these that the plan knows."""
        ids: dict[Path | None, int] = {attribute.path: attribute.id for attribute in self._profile.relation.attributes}
        classes = []
        for name in names:
            attribute = ids.get(path_of(self._candidate.copy, name))
            if attribute is None:
                break
            classes.append(self._attributes.class_of(attribute))
        return tuple(classes)

    def _busy(self, buckets: int) -> int:
        """Partitions that have something to read: `key = 7` leaves one."""
        candidate = self._candidate
        if candidate.keep is candidate.content.everything:
            return buckets
        return max(1, len(set((candidate.content.buckets[candidate.keep] % buckets).tolist())))

    def _shared(self, written: int, counts: frozenset[int]) -> set[int]:
        """As written, or as the other copies of the query can be read too."""
        return {written, *(shared for count in counts if (shared := math.gcd(written, count)) > 1)}

    def _enough(self, written: int) -> int:
        """No more than keeps the cores busy: fewer tasks, where no other copy must fit."""
        busy = _TASKS_A_CORE * self._meter.settings.cores
        return next((number for number in _divisors(written) if number >= busy), written)

    def _option(
        self, buckets: int, ordered: bool, partitioning: Partitioning | None, order: tuple[Class, ...]
    ) -> Option:
        candidate, meter, profile = self._candidate, self._meter, self._profile
        covered = candidate.coverage
        kept_bytes, read = self._kept_bytes, self._read
        files = len(candidate.keep)
        tasks = self._busy(buckets) if buckets else meter.scan_tasks(kept_bytes, files)
        columns = len(profile.relation.required) + bool(covered.drop)
        open_rate = meter.content_open_rate(candidate.table.uri)
        byte_rate = meter.byte_rate(_STAND_IN_FORMAT)
        cost = meter.scan(read, self._rows_read, columns, files, tasks, byte_rate, open_rate)
        if covered.drop:
            cost += meter.drop(self._rows_read, tasks)
        shuffled, sorts = 0.0, 0
        if covered.direct_files:
            direct, shuffled = self._direct(buckets, ordered)
            cost += direct
            sorts = int(ordered)
        if ordered:
            free = self._runs == 1 and buckets == candidate.copy.layout.buckets and not covered.direct_files
            cost += _BARELY if free else meter.merge(profile.passing, tasks)
        return Option(
            candidate=candidate,
            buckets=buckets,
            ordered=ordered,
            cost=cost + meter.stand_in(cost),
            partitioning=partitioning,
            order=order,
            tasks=tasks,
            # Buckets are announced with the table's size, so that they leave the choice between join methods as it is.
            size=_table_size(profile) if buckets else (kept_bytes + covered.direct_bytes) * self._share,
            files=files + covered.direct_files,
            bytes=round(read + covered.direct_bytes * profile.share * profile.opened),
            shuffled_bytes=shuffled,
            sorts=sorts,
        )

    def _direct(self, buckets: int, ordered: bool) -> tuple[float, float]:
        """Reading the files that are not covered, and putting their rows where the copy's are: cost, and bytes shuffled."""
        meter, profile, covered = self._meter, self._profile, self._candidate.coverage
        share = covered.appended
        tasks = meter.scan_tasks(covered.direct_bytes, covered.direct_files)
        cost = _source_scan(profile, meter, covered.direct_bytes, profile.rows * share, covered.direct_files, tasks)
        if not buckets:
            return cost, 0.0
        rows = profile.passing * share
        cost += meter.shuffle(rows, profile.width, buckets) + (meter.sort(rows, buckets) if ordered else 0.0)
        return cost, rows * profile.width


def _leading(classes: tuple[Class, ...], wanted: frozenset[Class]) -> tuple[Class, ...]:
    for position, one in enumerate(classes):
        if one not in wanted:
            return classes[:position]
    return classes


@lru_cache(maxsize=256)
def _divisors(number: int) -> tuple[int, ...]:
    return tuple(one for one in range(1, number + 1) if number % one == 0)
