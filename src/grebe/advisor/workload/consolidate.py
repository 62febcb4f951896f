"""Many small blocks become few, old queries are let go: by whoever looks, at any time, several at once, killed at any point.

One write is the whole step: a block with all the queries of others, which it names. From then on the others do not count; they are
removed once nobody can still be reading them (`vacuum_retention_seconds`, by the store's own clock). Should two do this at once,
queries are in two new blocks, and a query that is met twice is one; should one die before the write, nothing has happened.
"""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from grebe.advisor.workload import blocks
from grebe.clock import Clock
from grebe.config import Config
from grebe.store.protocol import Store

_DAY_MS = 86_400_000
_FEW = 32
"""So many small blocks may lie around."""
_SMALL = 4 * 1024**2
"""Bytes: what is larger is not written again."""


@dataclass(frozen=True, slots=True)
class Retention:
    days: float
    bytes: int
    vacuum_retention_seconds: float

    @classmethod
    def of_settings(cls, config: Config) -> "Retention":
        return cls(config.workload_days, config.workload_bytes, config.vacuum_retention_seconds)


@dataclass(frozen=True, slots=True)
class Consolidated:
    merged: int
    """Blocks that were small, and are one now."""
    removed: int
    """Blocks whose bytes are gone."""


def consolidate(store: Store, retention: Retention, clock: Clock, few: int = _FEW) -> Consolidated:
    """`few`: with fewer small blocks than these none are merged."""
    there = blocks.listed(store)
    oldest_ms = clock.now_ms() - int(retention.days * _DAY_MS)
    expired = [one.path for one in there if one.last_ms < oldest_ms]
    total = sum(one.size for one in there)
    if len(there) < few and total <= retention.bytes and not expired:
        return Consolidated(0, 0)
    content = blocks.read(store)
    sizes = {one.path: one.size for one in there}
    live = [one for one in there if one.path in content.by_path and one.path not in content.replaced]
    removable = _removable(there, content, retention) + [one for one in expired if one not in content.replaced]
    small = [one.path for one in live if one.size < _SMALL and one.path not in expired]
    # What is over the bytes goes oldest first, and with it whole blocks however large they are.
    over = sum(one.size for one in live if one.path not in expired) - retention.bytes
    merged = small if len(small) >= few or over > 0 else []
    if over > 0:
        merged = [one.path for one in live if one.path not in expired]
    if merged:
        kept = _kept(content, merged, sum(sizes[path] for path in merged), retention, oldest_ms)
        stale = [path for path in content.replaced if path in sizes]
        blocks.write(store, kept, clock, [*merged, *stale])
    for path in removable:
        store.delete(path)
    return Consolidated(len(merged), len(removable))


def _kept(content: blocks.Content, merged: list[str], size: int, retention: Retention, oldest_ms: int) -> pa.Table:
    queries = blocks.once(pa.concat_tables([content.by_path[path] for path in merged]))
    young = pc.greater_equal(queries["at"].cast(pa.int64()), oldest_ms * 1000)
    queries = queries.filter(young)
    if size <= retention.bytes:
        return queries
    # In one block they take less than in many, so that this errs on the side of the limit.
    room = int(queries.num_rows * retention.bytes / size)
    return queries.slice(queries.num_rows - room)


def _removable(there: list[blocks.Block], content: blocks.Content, retention: Retention) -> list[str]:
    """Those that do not count any more, for so long that nobody can still be reading them. Now is when the store wrote last."""
    now = max((one.modified_ms for one in there), default=0)
    since = {one.path: content.replaced[one.path] for one in there if one.path in content.replaced}
    return [
        path for path, replaced_ms in since.items() if now - replaced_ms >= retention.vacuum_retention_seconds * 1000
    ]
