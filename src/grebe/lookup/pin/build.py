"""Reads the rows of a pin, and lays them out in a memory-mapped file that nobody but this process sees."""

import mmap
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from grebe.clock import SYSTEM
from grebe.errors import InvalidConfig, Unsupported
from grebe.files.listing import NOWHERE, match
from grebe.indexes.places import KnowsPlaces
from grebe.indexes.reading import side_by_side
from grebe.lookup.engine import Engine
from grebe.lookup.pin.asked import Wishes
from grebe.lookup.pin.keys import Keys, has_keys, keys_of
from grebe.lookup.pin.layout import Layout, chosen, order_of
from grebe.lookup.pin.pins import Numbers, Pinned
from grebe.lookup.pin.rows import FILE, Cuts, PinnedRows, block_bounds, values_of
from grebe.planner.explain_text import size_text
from grebe.predicate.evaluate import Evaluator
from grebe.predicate.tree import TRUE, Path, Predicate, columns_of
from grebe.predicate.types import Type
from grebe.setting_values import parse_bytes
from grebe.store.own_folder import cache_folder

_GROUPS = 16
_SURELY = 2
"""Only where the first files make it this many times the limit are the others not read: they may be unlike them."""
_LONG_TEXTS = 2**31 - 2**20


def limit_of(memory: int | str) -> int:
    try:
        return parse_bytes(memory)
    except ValueError as problem:
        raise InvalidConfig(f"pin: memory = {memory!r} is {problem}.", detail="VALUE") from None


def pinned(
    engine: Engine, predicate: Predicate, names: Sequence[str], limit: int, wishes: Wishes, listed: float
) -> Pinned:
    """`predicate` is bound and normalised; `listed` is when the files of the engine were, by the clock's `monotonic`. Raises
    `Unsupported` where the rows take more than `limit` bytes."""
    snapshot = engine.snapshot
    columns = list(dict.fromkeys([*names, *(path[0] for path in columns_of(predicate))]))
    settling = snapshot.source.settling_ms / 1000
    if settling:
        # A change that leaves size and time as they are is over by then, and what is read is what it left.
        SYSTEM.sleep(max(0.0, settling - (SYSTEM.monotonic() - listed)))
    deleted = dict(engine.deleted)
    read = _Read(engine, Evaluator(predicate), columns, limit).all()
    held = np.ones(len(snapshot.files), np.bool_)
    if settling:
        held[:] = False
        now = match(snapshot.files, snapshot.source.files())
        held[now[now != NOWHERE]] = True
    layout = chosen(_or_of_indexes(wishes, engine), lambda path: _orderable(path, read, engine.type))
    rows = _laid_out(read, layout, list(_leaves(engine.type, columns)), limit)
    # Not the engine's own way to ask: a pin outlives it.
    state = replace(engine.state, deleted=lambda: deleted)
    return Pinned(predicate, tuple(columns), state, held, rows)


@dataclass
class _Read:
    """The rows of the predicate, with the number of their file; refused once they are too large."""

    engine: Engine
    evaluator: Evaluator
    columns: list[str]
    limit: int
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _bytes: int = 0
    _done: int = 0
    """Of `_bytes`, those of files that are read to their end."""
    _stored: int = 0
    """Bytes of those files."""
    _whole: int = 0

    def all(self) -> pa.Table:
        engine, reader = self.engine, self.engine.reader()
        predicate = self.evaluator.predicate
        found = engine.find(predicate, reader)
        maps = engine.maps(found, reader)
        sizes = engine.snapshot.files.table["size"].to_numpy()
        wanted: list[tuple[int, pa.Table | None]] = [
            *found.records.items(),
            *((one, None) for one in found.whole.tolist()),
        ]
        wanted.sort(key=lambda one: int(sizes[one[0]]))
        self._whole = int(sum(sizes[place] for place, _ in wanted))
        schema = pa.schema(
            [*(engine.snapshot.reading.schema.field(name) for name in self.columns), pa.field(FILE, pa.int32())]
        )

        def read(one: tuple[int, pa.Table | None]) -> list[pa.Table]:
            place, records = one
            own = (
                engine.pieces(place, self.columns)
                if records is None
                else engine.read(place, records, self.columns, maps)
            )
            made: list[pa.Table] = []
            seen = 0
            for table, _ in own:
                rows = table.select(self.columns).filter(self.evaluator.matches(table))
                numbers = pa.repeat(pa.scalar(place, pa.int32()), rows.num_rows)
                made.append(rows.append_column(FILE, numbers).cast(schema))
                seen += table.num_rows
                if self._over(made[-1].nbytes):
                    share = 1.0 if records is not None else seen / max(1, self._rows_of(place))
                    raise self._refused(sum(part.nbytes for part in made), share * int(sizes[place]))
            with self._lock:
                self._stored += int(sizes[place])
                self._done += sum(part.nbytes for part in made)
            return made

        tables: list[pa.Table] = []
        step = max(1, len(wanted) // _GROUPS)
        for start in range(0, len(wanted), step):
            for made in side_by_side(read, wanted[start : start + step], engine.local):
                tables += made
            if predicate == TRUE and self._estimated(0, 0) > _SURELY * self.limit:
                raise self._refused(0, 0)
        return pa.concat_tables(tables) if tables else schema.empty_table()

    def _over(self, nbytes: int) -> bool:
        with self._lock:
            self._bytes += nbytes
            return self._bytes > self.limit

    def _rows_of(self, place: int) -> int:
        """Of a file that is not read to its end: by its narrowest column."""
        schema = self.engine.snapshot.reading.schema
        fixed = [name for name in self.columns if pa.types.is_primitive(schema.field(name).type)]
        least = min(fixed or self.columns, key=lambda name: schema.field(name).type.bit_width if fixed else 0)
        return sum(table.num_rows for table, _ in self.engine.pieces(place, [least]))

    def _estimated(self, more: int, stored: float) -> int:
        """By the files that were read, and of one more file so many bytes; files are taken to be alike."""
        read = self._stored + stored
        return int((self._done + more) * max(1.0, self._whole / read)) if read else 0

    def _refused(self, more: int, stored: float) -> Unsupported:
        return _too_large(max(self._estimated(more, stored), self._bytes), self.limit)


def _too_large(needed: int, limit: int) -> Unsupported:
    return Unsupported(
        f"the rows to pin take about {size_text(needed)} ({needed:,} bytes) of memory, and {size_text(limit)} are allowed; give a "
        "narrower predicate or fewer columns, or more by memory=",
        detail="PIN_MEMORY",
    )


def _or_of_indexes(wishes: Wishes, engine: Engine) -> Wishes:
    """Where nothing was asked yet, what the indexes of the table are made for is the best guess."""
    if wishes.any:
        return wishes
    places = [path for one in engine.pruners if isinstance(one, KnowsPlaces) for path in one.axes.columns]
    leading = [next(iter(one.columns)) for one in engine.pruners if not (one.by_file or isinstance(one, KnowsPlaces))]
    return Wishes([(path, 1) for path in dict.fromkeys(leading)], [(path, 1) for path in dict.fromkeys(places)])


def _orderable(path: Path, table: pa.Table, whole: Type) -> bool:
    if path[0] not in table.column_names:
        return False
    kind: Type | None = whole
    for name in path:
        kind = None if kind is None else {one.name: one.type for one in kind.fields}.get(name)
    return kind is not None and has_keys(kind)


def _leaves(whole: Type, columns: Sequence[str]) -> Iterator[Path]:
    """All columns, and fields of structs, that have values with an order."""
    pending: list[tuple[Path, Type]] = [((one.name,), one.type) for one in whole.fields if one.name in columns]
    while pending:
        path, kind = pending.pop()
        if has_keys(kind) or kind.name == "boolean":
            yield path
        pending += [((*path, one.name), one.type) for one in kind.fields]


def _laid_out(table: pa.Table, layout: Layout, leaves: Sequence[Path], limit: int) -> PinnedRows:
    cuts = Cuts()
    for place, one in enumerate(table.schema):
        if table.column(place).nbytes > _LONG_TEXTS and one.type in (pa.string(), pa.binary()):
            wide = pa.large_string() if one.type == pa.string() else pa.large_binary()
            table = table.set_column(place, one.with_type(wide), table.column(place).cast(wide))
    along = layout.sorted_by or layout.boxes_of
    order = np.arange(len(table))
    if along and len(table):
        order = order_of([values_of(table, path) for path in along], not layout.sorted_by, cuts.block)
    segments = _mapped(table, order, cuts.segment)
    size = sum(segment.nbytes for segment in segments)
    bounds = {path: known for path in leaves if (known := block_bounds(segments, path, cuts.block)) is not None}
    keys: list[Keys] = []
    whole = pa.Table.from_batches(segments, table.schema)
    for path in layout.keys if len(whole) else ():
        values = values_of(whole, path)
        values = pa.concat_arrays(values.chunks)
        made = keys_of(path, values, in_order=layout.sorted_by[:1] == (path,))
        if size + made.nbytes <= limit:
            size += made.nbytes
            keys.append(made)
    if size > limit:
        raise _too_large(size, limit)
    return PinnedRows(segments, bounds, keys, size, cuts)


def _mapped(table: pa.Table, order: Numbers, segment_rows: int) -> list[pa.RecordBatch]:
    """The rows in this order, in segments. The file has no name (or goes with the process, on Windows), so that none is ever left
    behind, however the process ends; where no file can be made, they are kept in plain memory."""
    try:
        folder = cache_folder() / "pins"
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            with pa.ipc.new_file(pa.PythonFile(file, "w"), table.schema) as writer:
                for batch in _segments(table, order, segment_rows):
                    writer.write_batch(batch)
            file.flush()
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        opened = pa.ipc.open_file(pa.BufferReader(pa.py_buffer(mapped)))
        return [opened.get_batch(number) for number in range(opened.num_record_batches)]
    except OSError:
        return list(_segments(table, order, segment_rows))


def _segments(table: pa.Table, order: Numbers, segment_rows: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(order), segment_rows):
        rows = table.take(pa.array(order[start : start + segment_rows])).combine_chunks()
        yield from rows.to_batches()
