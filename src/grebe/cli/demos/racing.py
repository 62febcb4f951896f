"""Two processes that race for the log of a table, and the history that comes of it."""

import datetime
import multiprocessing
from collections.abc import Sequence
from multiprocessing.synchronize import Barrier
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from grebe.cli.output import Output, Row
from grebe.files import FileList
from grebe.log.commit import Log
from grebe.log.entry import Entry, FilesRegistered, TableInfo
from grebe.log.registration import Registry
from grebe.log.snapshot import history
from grebe.store.local import LocalStore

FILES, ROWS = 12, 10_000
_LONGEST_TURN = 60.0


def race(table: Path, indexes: Path, output: Output) -> list[Row]:
    """The entries of the log that two processes made of it."""
    _generate(table)
    files = _listing(table)
    output.note(f"{len(files)} Parquet files, {FILES * ROWS:,} rows in {table}")

    log = Log(LocalStore(indexes)).create(TableInfo(uri=files.root, source="files"))
    _race(table, indexes)
    log.reload()
    ids = Registry(log).files(log.state).ids_of(files).to_pylist()
    output.note(
        "Two processes registered all files at once, one from each end: "
        f"{len(files)} files have {len(set(ids))} different ids, given in {log.newest.number} commits."
    )
    return [_row(entry) for entry in history(log.store, log.newest.number)]


def _generate(table: Path) -> None:
    table.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(42)
    for number in range(FILES):
        first = number * ROWS
        columns = {
            "order_id": np.arange(first, first + ROWS),
            "customer_id": random.integers(0, 1_000, ROWS),
            "price": random.integers(100, 1_000_000, ROWS) / 100,
        }
        pq.write_table(pa.table(columns), table / f"part-{number:03}.parquet")


def _listing(table: Path) -> FileList:
    store = LocalStore(table)
    found = list(store.list())
    return FileList.build(store.uri, [o.path for o in found], [o.size for o in found], [o.modified_ms for o in found])


def _race(table: Path, indexes: Path) -> None:
    processes = multiprocessing.get_context("spawn")
    turn = processes.Barrier(2)
    orders: list[Sequence[int]] = [range(FILES), range(FILES - 1, -1, -1)]
    writers = [processes.Process(target=_register_one_by_one, args=(table, indexes, order, turn)) for order in orders]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    if any(writer.exitcode for writer in writers):
        raise RuntimeError("a writer of the demo failed; what it said stands above")


def _register_one_by_one(table: Path, indexes: Path, order: Sequence[int], turn: Barrier) -> None:
    files = _listing(table)
    registry = Registry(Log(LocalStore(indexes)).open())
    for number in order:
        turn.wait(_LONGEST_TURN)  # side by side at every file, or one would soon be far ahead of the other
        registry.register(files.take(np.array([number])))


def _row(entry: Entry) -> Row:
    registered = (change.segment for change in entry.changes if isinstance(change, FilesRegistered))
    return {
        "number": entry.number,
        "at": datetime.datetime.fromtimestamp(entry.at_ms / 1000, datetime.UTC),
        "action": entry.action,
        "process": entry.writer.pid,
        "ids": [id for segment in registered for id in range(segment.first_id, segment.first_id + segment.count)],
    }
