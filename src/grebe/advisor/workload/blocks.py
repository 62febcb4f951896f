"""Where observed queries are kept: blocks in `workload/` below the folder of the table's log, each written once and never changed.

`<first>-<last>-<unique>.gix`: first and last moment in it, milliseconds since 1970; sealed; a Parquet file of `observed.SCHEMA`.
Its metadata may name other blocks, all of whose queries it holds, or has let go: these do not count any more.

Anyone adds blocks at any time. A query that is met in two blocks is one. So a reader needs no order among writers, and whoever
merges blocks needs no lock.
"""

import io
import json
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from grebe.advisor.workload.observed import SCHEMA
from grebe.clock import Clock
from grebe.errors import CorruptIndex
from grebe.indexes.content.sealed import sealed, unsealed
from grebe.store.protocol import ObjectExists, ObjectInfo, ObjectMissing, OutcomeUnknown, Store

FOLDER = "workload"
_NAME = re.compile(rf"{FOLDER}/(\d{{15}})-(\d{{15}})-[0-9a-f]{{32}}\.gix")
_REPLACES = b"grebe.replaces"
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


@dataclass(frozen=True, slots=True)
class Content:
    """What was read of some blocks."""

    by_path: dict[str, pa.Table] = field(default_factory=dict)
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
    return [_block(one, int(name[2])) for one, name in found if name is not None]


def _block(info: ObjectInfo, last_ms: int) -> Block:
    return Block(info.path, info.size, info.modified_ms, last_ms)


def write(store: Store, queries: pa.Table, clock: Clock, replaces: Iterable[str] = ()) -> str:
    """Adds a block, and gives its path. May raise `OutcomeUnknown`: then it is there, or not."""
    bounds = pc.min_max(queries["at"].cast(pa.int64())).as_py() if queries.num_rows else {"min": 0, "max": 0}
    first, last = (bounds[end] // 1000 for end in ("min", "max"))
    path = f"{FOLDER}/{first:015d}-{last:015d}-{clock.new_id()}.gix"
    data = sealed(_bytes(queries, sorted(replaces)))
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
        new = [one.path for one in there if one.path not in known]
        with ThreadPoolExecutor(min(_AT_ONCE, len(new) or 1)) as pool:
            found = dict(zip(new, pool.map(lambda path: _read(store, path), new), strict=True))
        known |= {path: table for path, (table, is_there) in found.items() if is_there}
        # One that is gone was merged into another meanwhile, which the next listing has.
        if all(is_there for _, is_there in found.values()):
            break
    kept = {one.path: known[one.path] for one in there if one.path in known}
    whole = {path: table for path, table in kept.items() if table is not None}
    since = {one.path: one.modified_ms for one in there}
    replaced: dict[str, int] = {}
    for path, table in whole.items():
        for other in json.loads((table.schema.metadata or {}).get(_REPLACES, b"[]")):
            replaced[other] = min(since[path], replaced.get(other, since[path]))
    plain = {path: table.replace_schema_metadata(None) for path, table in whole.items()}
    return Content(plain, replaced, tuple(path for path, table in kept.items() if table is None))


def _read(store: Store, path: str) -> tuple[pa.Table | None, bool]:
    """The block, None if it is damaged; and whether it is there."""
    try:
        data = store.get(path)
    except ObjectMissing:
        return None, False
    try:
        table = pq.read_table(io.BytesIO(unsealed(data, path)))
        missing = [one for one in SCHEMA if one.name not in table.column_names]
        for one in missing:
            table = table.append_column(one, pa.nulls(table.num_rows, one.type))
        return table.select(SCHEMA.names).cast(SCHEMA.with_metadata(table.schema.metadata)), True
    except (CorruptIndex, pa.ArrowException, ValueError):
        return None, True
