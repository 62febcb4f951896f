"""What does a file list of a thousand, a hundred thousand, a million files cost: to write, to open, to compare with a listing?

The rival is deltalake with a table of the same files: one commit that adds them (not flushed to disk, while ours is); opening it
from a checkpoint and getting its files; and, as it has no comparison, joining those with the listing in pyarrow. Each step runs in
a process of its own, so that memory is its own; seconds are those of the step alone, both start from the same columns on disk, and
bytes are the peak of the whole process.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import feather

from bench.harness import Report, Scale, in_fresh_process
from grebe.files import FileList, RegisteredFiles, decode, diff, encode
from grebe.store.local import LocalStore

RIVAL = "deltalake"
RIVAL_OF_DIFF = "deltalake and joins of pyarrow"
ROOT = "s3://bucket/lake/orders"
LIST = "files.grbf"
_OPENED_SECONDS, _OPENED_BYTES = 2.0, 500e6


def run(scale: Scale, report: Report) -> None:
    sizes = scale.pick([1_000, 10_000, 100_000], [1_000, 100_000, 1_000_000])
    runs = scale.pick(3, 3)
    opened = {}
    with tempfile.TemporaryDirectory() as name:
        for count in sizes:
            folder = Path(name) / str(count)
            folder.mkdir()
            _prepare(folder, count)
            for case, ours, theirs, rival in (
                ("write", _write, _write_delta, RIVAL),
                ("open", _open, _open_delta, RIVAL),
                ("diff, 1% changed", _diff, _diff_delta, RIVAL_OF_DIFF),
            ):
                mine, other = _in_turns(ours, theirs, folder, runs)
                report.add(f"{case}, {count:,} files", "s", mine.seconds, rival, other.seconds, runs)
                report.add(f"{case}, {count:,} files, peak", "bytes", mine.peak_bytes, rival, other.peak_bytes, runs)
                if case == "open":
                    opened[count] = mine
            report.add(f"size, {count:,} files", "bytes", (folder / LIST).stat().st_size, RIVAL, _delta_bytes(folder))
    _check_bounds(opened)


@dataclass(frozen=True)
class Cost:
    seconds: float
    peak_bytes: float


def _in_turns(
    ours: Callable[[Path], float], theirs: Callable[[Path], float], folder: Path, runs: int
) -> tuple[Cost, Cost]:
    costs: dict[Callable[[Path], float], list[Cost]] = {ours: [], theirs: []}
    for number in range(runs):
        for step in (ours, theirs) if number % 2 == 0 else (theirs, ours):
            done = in_fresh_process(step, folder)
            costs[step].append(Cost(done.value, done.peak_bytes))
    mine, other = (
        Cost(statistics.median(c.seconds for c in of), statistics.median(c.peak_bytes for c in of))
        for of in costs.values()
    )
    return mine, other


def _check_bounds(opened: dict[int, Cost]) -> None:
    """The promises: a million files open within two seconds and 500 MB, and nothing grows faster than the number of files."""
    counts = sorted(opened)
    most = counts[-1]
    if most == 1_000_000 and (opened[most].seconds > _OPENED_SECONDS or opened[most].peak_bytes > _OPENED_BYTES):
        raise SystemExit(
            f"a million files took {opened[most].seconds:.2f} s and {opened[most].peak_bytes / 1e6:.0f} MB to open"
        )
    before = counts[-2]
    # Twice the factor leaves room for what a cache of the processor holds of the small list only.
    if opened[most].seconds > 2 * most / before * opened[before].seconds:
        raise SystemExit(f"opening grew faster than the list from {before:,} to {most:,} files")


def _prepare(folder: Path, count: int) -> None:
    """The columns of the files as they were, and of a listing in which one in a hundred has changed: rewritten under its name, or
    replaced by a new file."""
    random = np.random.default_rng(count)
    words = random.integers(0, 2**32, (count, 4), dtype=np.uint64).tolist()
    known = np.array([_path(number, *of) for number, of in enumerate(words)], object)
    sizes = random.integers(1 << 20, 1 << 28, count)
    modified = 1_700_000_000_000 + random.integers(0, 1 << 33, count)
    changed = np.flatnonzero(np.arange(count) % 100 == 0)
    listing, times = known.copy(), modified.copy()
    times[changed[::2]] += 1
    listing[changed[1::2]] = [f"{path}.new" for path in known[changed[1::2]]]
    for name, paths, when in (("known", known, modified), ("listing", listing, times)):
        table = pa.table({"path": pa.array(paths, pa.string()), "size": sizes, "modified_ms": when})
        feather.write_feather(table, folder / name, "uncompressed")


def _path(number: int, a: int, b: int, c: int, d: int) -> str:
    return f"day={number // 1000:04}/part-{number % 1000:05}-{a:08x}{b:08x}{c:08x}{d:08x}.snappy.parquet"


def _columns(folder: Path, name: str) -> pa.Table:
    return feather.read_table(folder / name, memory_map=True)


def _file_list(folder: Path, name: str) -> FileList:
    table = _columns(folder, name)
    return FileList.build(ROOT, table["path"], table["size"], table["modified_ms"])


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    value = work()
    return time.perf_counter() - start, value


def _write(folder: Path) -> float:
    store = LocalStore(folder)
    return _timed(lambda: store.put(LIST, encode(RegisteredFiles.register(_file_list(folder, "known"), 0))))[0]


def _open(folder: Path) -> float:
    store = LocalStore(folder)
    seconds, registered = _timed(lambda: decode(store.get(LIST)))
    assert len(registered) == _columns(folder, "known").num_rows
    return seconds


def _diff(folder: Path) -> float:
    registered = decode(LocalStore(folder).get(LIST))
    listing = _file_list(folder, "listing")
    seconds, change = _timed(lambda: diff(registered.files, listing))
    assert len(change.added) == len(change.removed) == len(listing) // 100
    return seconds


def _delta(folder: Path) -> str:
    return str(folder / "delta")


def _delta_bytes(folder: Path) -> int:
    (checkpoint,) = (folder / "delta" / "_delta_log").glob("*.checkpoint.parquet")
    return checkpoint.stat().st_size


def _write_delta(folder: Path) -> float:
    import shutil

    from deltalake import DeltaTable, Field, Schema
    from deltalake.schema import PrimitiveType
    from deltalake.transaction import AddAction, create_table_with_add_actions

    shutil.rmtree(_delta(folder), ignore_errors=True)
    known = _columns(folder, "known")
    actions = [
        AddAction(path, size, {"day": path[4:8]}, modified, True, "{}")
        for path, size, modified in zip(*(known.column(i).to_pylist() for i in range(3)), strict=True)
    ]
    schema = Schema([Field("a", PrimitiveType("long")), Field("day", PrimitiveType("string"))])
    seconds, _ = _timed(
        lambda: create_table_with_add_actions(_delta(folder), schema, actions, mode="error", partition_by=["day"])
    )
    # The next step opens from a checkpoint, as it would in a table that lives.
    DeltaTable(_delta(folder)).create_checkpoint()
    return seconds


def _delta_files(folder: Path) -> pa.Table:
    from deltalake import DeltaTable

    return pa.table(DeltaTable(_delta(folder)).get_add_actions(flatten=True))


def _open_delta(folder: Path) -> float:
    import deltalake  # noqa: F401 - its import is off the clock, as ours is

    seconds, files = _timed(lambda: _delta_files(folder))
    assert files.num_rows == _columns(folder, "known").num_rows
    return seconds


def _diff_delta(folder: Path) -> float:
    known = _delta_files(folder).select(["path", "size_bytes", "modification_time"])
    listing = _columns(folder, "listing").rename_columns(known.column_names)
    known = known.cast(listing.schema)
    keys = known.column_names

    def compare() -> tuple[pa.Table, pa.Table]:
        added = listing.join(known, keys, join_type="left anti")
        return added, known.join(listing, keys, join_type="left anti")

    seconds, (added, removed) = _timed(compare)
    assert added.num_rows == removed.num_rows == listing.num_rows // 100
    return seconds
