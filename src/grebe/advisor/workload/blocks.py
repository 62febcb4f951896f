"""Where observed queries are kept: blocks in `workload/` below the folder of the table's log, each written once and never changed.

`<first>-<last>-<unique>.gix`: first and last moment in it, milliseconds since 1970; sealed; a Parquet file of `observed.SCHEMA`.
`…-merged.gix` was made from others, which its metadata names: all their queries are in it, or were let go, so that these blocks do
not count any more. By its name it is read first, and they are not read at all.

Anyone adds blocks at any time. A query that is met in two blocks is one. So a reader needs no order among writers, and whoever
merges blocks needs no lock.
"""

import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from grebe.advisor.workload.observed import SCHEMA, require_whole
from grebe.clock import Clock
from grebe.errors import CorruptIndex
from grebe.files.untrusted import decoding
from grebe.indexes.content.parquet_table import read_parquet, refused
from grebe.indexes.content.sealed import sealed, unsealed
from grebe.store.protocol import ObjectExists, ObjectMissing, ObjectTooLarge, OutcomeUnknown, Store

FOLDER = "workload"
_NAME = re.compile(rf"{FOLDER}/([0-9]{{15}})-([0-9]{{15}})-[0-9a-f]{{32}}(-merged)?\.gix")
_REPLACES = b"grebe.replaces"
_MOST_BYTES = 128 * 1024 * 1024
_TRIES = 5
_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Block:
    """One that is there."""

    path: str
    size: int
    modified_ms: int
    last_ms: int
    """Of the newest query in it."""
    merged: bool
    """Whether it may have replaced others."""


@dataclass(frozen=True, slots=True)
class Content:
    """What was read of the blocks that are there."""

    by_path: dict[str, pa.Table] = field(default_factory=dict)
    """Of those that may count."""
    replaced: dict[str, int] = field(default_factory=dict)
    """Blocks that do not count any more, and since when, by the store's clock."""
    damaged: tuple[str, ...] = ()

    @property
    def queries(self) -> pa.Table:
        """Each once, oldest first."""
        tables = [table for path, table in self.by_path.items() if path not in self.replaced]
        return once(pa.concat_tables([SCHEMA.empty_table(), *tables]))


def once(table: pa.Table) -> pa.Table:
    """Each query once, oldest first."""
    _, first = np.unique(table["query"].to_numpy(zero_copy_only=False).astype(str), return_index=True)
    return by_time(table.take(pa.array(np.sort(first))))


def by_time(table: pa.Table) -> pa.Table:
    """Queries of one moment stay in the order in which they were told."""
    order = np.argsort(table["at"].cast(pa.int64()).to_numpy(zero_copy_only=False), kind="stable")
    return table.take(pa.array(order))


def listed(store: Store) -> list[Block]:
    """Oldest first; whatever else lies there is none of them."""
    found = ((one, _NAME.fullmatch(one.path)) for one in store.list(FOLDER))
    return [
        Block(one.path, one.size, one.modified_ms, int(name[2]), name[3] is not None)
        for one, name in found
        if name is not None
    ]


def write(store: Store, queries: pa.Table, clock: Clock, replaces: Iterable[str] = ()) -> str:
    """Adds a block, and gives its path. May raise `OutcomeUnknown`: then it is there, or not."""
    bounds = pc.min_max(queries["at"].cast(pa.int64())).as_py() if queries.num_rows else {"min": 0, "max": 0}
    first, last = (bounds[end] // 1000 for end in ("min", "max"))
    others = sorted(replaces)
    path = f"{FOLDER}/{first:015d}-{last:015d}-{clock.new_id()}{'-merged' if others else ''}.gix"
    data = sealed(_bytes(queries, others))
    for left in reversed(range(_TRIES)):
        try:
            store.put_if_absent(path, data)
            return path
        except ObjectExists:
            return path  # nobody else gives it this name: it is an earlier try whose reply was lost
        except OutcomeUnknown:
            if not left:
                raise
    raise AssertionError("unreachable")


def _bytes(queries: pa.Table, replaces: Sequence[str]) -> bytes:
    kept = queries.cast(SCHEMA).replace_schema_metadata({_REPLACES: json.dumps(replaces)})
    buffer = io.BytesIO()
    pq.write_table(kept, buffer, compression="zstd", write_statistics=False)
    return buffer.getvalue()


def read(store: Store) -> Content:
    """All that is there. A block that was cut short or damaged is left out and named."""
    known: dict[str, pa.Table | None] = {}
    for _ in range(_TRIES):
        there = listed(store)
        all_there = _add(store, known, [one.path for one in there if one.merged])
        replaced = _replaced(there, known)
        all_there &= _add(store, known, [one.path for one in there if one.path not in replaced])
        # One that is gone was merged into another meanwhile, which the next listing has.
        if all_there:
            break
    kept = {one.path: known[one.path] for one in there if one.path in known}
    whole = {path: table.replace_schema_metadata(None) for path, table in kept.items() if table is not None}
    return Content(whole, replaced, tuple(path for path, table in kept.items() if table is None))


def _add(store: Store, known: dict[str, pa.Table | None], paths: Sequence[str]) -> bool:
    """Reads those that are not yet known. False if some are not there any more."""
    new = [path for path in paths if path not in known]
    with ThreadPoolExecutor(min(_AT_ONCE, len(new) or 1)) as pool:
        found = list(zip(new, pool.map(lambda path: _read(store, path), new), strict=True))
    known |= {path: table for path, (table, is_there) in found if is_there}
    return all(is_there for _, (_, is_there) in found)


def _replaced(there: Iterable[Block], known: Mapping[str, pa.Table | None]) -> dict[str, int]:
    """By whichever block that can be read says so, since its own time."""
    found: dict[str, int] = {}
    for one in there:
        table = known.get(one.path)
        if table is not None:
            for other in _named(table):
                found[other] = min(one.modified_ms, found.get(other, one.modified_ms))
    return found


def _read(store: Store, path: str) -> tuple[pa.Table | None, bool]:
    """The block, None if it is damaged; and whether it is there."""
    try:
        data = store.get(path, _MOST_BYTES)
    except ObjectMissing:
        return None, False
    except ObjectTooLarge:
        return None, True
    try:
        table = read_parquet(unsealed(data, path), path)
        with decoding(lambda why: refused(path, why, "DAMAGED")):
            missing = [one for one in SCHEMA if one.name not in table.column_names]
            for one in missing:
                table = table.append_column(one, pa.nulls(table.num_rows, one.type))
            table = table.select(SCHEMA.names).cast(SCHEMA.with_metadata(table.schema.metadata))
            require_whole(table)
            _named(table)
        return table, True
    except CorruptIndex:
        return None, True


def _named(table: pa.Table) -> list[str]:
    """The blocks that this one replaces."""
    named = json.loads((table.schema.metadata or {}).get(_REPLACES, b"[]"))
    if not isinstance(named, list) or not all(isinstance(one, str) for one in named):
        raise ValueError("what it replaces is no list of names")
    return named
