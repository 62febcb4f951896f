"""The observed queries of a table, or of several, as one table of Arrow: one row a query."""

import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from grebe import telemetry
from grebe.advisor.workload import blocks, statistics
from grebe.advisor.workload.observed import SCHEMA
from grebe.advisor.workload.record import RECORDER
from grebe.config import Config
from grebe.errors import InvalidPredicate
from grebe.files import canonical_uri
from grebe.log.location import below, beside
from grebe.planner.observing import HearsLookups
from grebe.predicate.codec import from_json
from grebe.predicate.tree import TRUE, Predicate
from grebe.store.protocol import Store

_logger = logging.getLogger("grebe.advisor")

Accepts = Callable[[str, str], bool]
"""Whether a query that was recorded at a place may name a table."""


def places_of(table: str, location: str | None = None, root: str | None = None, log: str | None = None) -> list[str]:
    """Where queries of a table may have been recorded. The first is where they are: at its log (`log`, or the one that `location`
    names), or where that would be. The others are for those of before it was made elsewhere."""
    known = [log, None if location is None else canonical_uri(location)]
    found = [*known, below(canonical_uri(root), table) if root else None, beside(table)]
    return list(dict.fromkeys(place for place in found if place is not None))


@dataclass(frozen=True, slots=True)
class Recorded:
    """The recorded queries of a table, at these places, or of several."""

    places: tuple[str, ...]
    opener: Callable[[str], Store]

    def hears(self, config: Config) -> HearsLookups | None:
        """What records lookups; None if nobody asks for it."""
        return RECORDER.lookups(self.places[0], self.opener, config) if config.record_workload else None

    def store(self) -> Store:
        """Of the first place."""
        return self.opener(self.places[0])

    def queries(self, accepts: Accepts | None = None) -> pa.Table:
        """Return the queries, oldest first, those of this process up to now included. A query that was recorded at a place with a
        table that `accepts` refuses there is left out of what that place says."""
        RECORDER.flush()
        tables = []
        for place in self.places:
            content = blocks.read(self.opener(place))
            for path in content.damaged:
                telemetry.event(_logger, logging.WARNING, "workload_block_damaged", place=place, path=path)
            tables.append(content.queries if accepts is None else _accepted(content.queries, place, accepts))
        return _described(_united(pa.concat_tables([SCHEMA.empty_table(), *tables])))

    def clear(self) -> int:
        """Forgets them all, and what is known of the columns, and gives the number of blocks."""
        RECORDER.flush()
        removed = 0
        for place in self.places:
            store = self.opener(place)
            for one in blocks.listed(store):
                store.delete(one.path)
                removed += 1
            store.delete(statistics.PATH)
        return removed


def _accepted(queries: pa.Table, place: str, accepts: Accepts) -> pa.Table:
    scans = queries["scans"].combine_chunks()
    named = pc.struct_field(pc.list_flatten(scans), "table")
    refused = [name for name in named.unique().to_pylist() if not accepts(place, name)]
    if not refused:
        return queries
    lengths = pc.fill_null(pc.list_value_length(scans), 0).to_numpy(zero_copy_only=False)
    query_of = np.repeat(np.arange(len(queries)), lengths)
    kept = np.ones(len(queries), bool)
    kept[query_of[np.isin(named.to_numpy(zero_copy_only=False).astype(str), refused)]] = False
    telemetry.event(
        _logger, logging.WARNING, "recorded_queries_of_foreign_tables", place=place, queries=int((~kept).sum())
    )
    return queries.filter(pa.array(kept))


def _united(queries: pa.Table) -> pa.Table:
    """What a query does with several tables, each recorded with its own, in one row."""
    names, first, owner = np.unique(
        queries["query"].to_numpy(zero_copy_only=False).astype(str), return_index=True, return_inverse=True
    )
    order = np.argsort(owner, kind="stable")
    scans = queries["scans"].take(pa.array(order)).combine_chunks()
    lengths = pc.fill_null(pc.list_value_length(scans), 0).to_numpy(zero_copy_only=False)
    each = np.bincount(owner[order], weights=lengths, minlength=len(names)).astype(np.int32)
    united = pa.ListArray.from_arrays(pa.array(_offsets(each)), pc.list_flatten(scans)).cast(scans.type)
    kept = queries.take(pa.array(first))
    kept = kept.set_column(kept.schema.get_field_index("scans"), SCHEMA.field("scans"), united)
    return blocks.by_time(kept.take(pa.array(np.argsort(first))))


def _offsets(lengths: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


def _described(queries: pa.Table) -> pa.Table:
    """With what people look for first, ahead of the scans."""
    scans = queries["scans"].combine_chunks()
    each = pc.list_flatten(scans)
    lengths = pc.list_value_length(scans).to_numpy(zero_copy_only=False).astype(np.int32)
    offsets = _offsets(lengths)
    predicates = pa.ListArray.from_arrays(pa.array(offsets), pc.struct_field(each, "predicate"))
    columns = pc.struct_field(each, "columns")
    inner = pc.fill_null(pc.list_value_length(columns), 0).to_numpy(zero_copy_only=False).astype(np.int32)
    read = pa.ListArray.from_arrays(pa.array(_offsets(inner)[offsets]), pc.list_flatten(columns))
    sums = {
        name: _sums(pc.struct_field(each, name), offsets)
        for name in ("files", "files_of", "bytes", "bytes_of", "rows_read", "rows")
    }
    share = pc.divide(
        sums["rows"].cast(pa.float64()), pc.if_else(pc.equal(sums["rows_read"], 0), None, sums["rows_read"])
    )
    alone = pa.array(lengths == 1)
    described = {"columns": read, "predicates": predicates, **sums, "selectivity": pc.if_else(alone, share, None)}
    made = queries.drop_columns(["scans"])
    for name, values in described.items():
        made = made.append_column(name, values)
    return made.append_column(SCHEMA.field("scans"), scans)


def _sums(values: pa.Array, offsets: npt.NDArray[np.int32]) -> pa.Array:
    """Of each stretch; NULL where one of its values is unknown."""
    known = np.concatenate([[0], np.cumsum(values.is_valid().to_numpy(zero_copy_only=False))])
    total = np.concatenate([[0], np.cumsum(values.fill_null(0).to_numpy(zero_copy_only=False))]).astype(np.int64)
    first, last = offsets[:-1], offsets[1:]
    unknown = (known[last] - known[first]) < (last - first)
    return pa.array(total[last] - total[first], mask=unknown | (first == last))


def predicates_of(queries: pa.Table, table: str | None = None) -> list[tuple[Predicate, int]]:
    """Those by which a table (or any) is filtered, and how often; without those that cannot be read."""
    scans = pc.list_flatten(queries["scans"].combine_chunks())
    trees = pc.struct_field(scans, "tree")
    if table is not None:
        trees = trees.filter(pc.equal(pc.struct_field(scans, "table"), table))
    found = []
    for one in trees.drop_null().value_counts().to_pylist():
        with contextlib.suppress(InvalidPredicate):
            found.append((from_json(one["values"]), one["counts"]))
    return [(predicate, count) for predicate, count in found if predicate != TRUE]


def by_shape(queries: pa.Table) -> list[dict[str, object]]:
    """For people: one row a shape, that which took most of the time first."""
    grouped = queries.append_column("indexes_used", pc.binary_join(queries["indexes"], "\n")).group_by(["digest"])
    found = grouped.aggregate(
        [("shape", "min"), ("query", "count"), ("milliseconds", "sum"), ("bytes", "sum"), ("indexes_used", "max")]
    ).to_pylist()
    total = sum(one["milliseconds_sum"] for one in found) or 1.0
    ranked = sorted(found, key=lambda one: (-one["milliseconds_sum"], one["digest"]))
    return [
        {
            "shape": one["shape_min"],
            "queries": one["query_count"],
            "milliseconds": round(one["milliseconds_sum"], 3),
            "percent": round(100 * one["milliseconds_sum"] / total, 1),
            "bytes": one["bytes_sum"],
            "indexes": [name for name in one["indexes_used_max"].split("\n") if name],
            "digest": one["digest"],
        }
        for one in ranked
    ]
