"""A log in memory with an index on it, for tests that need one."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from grebe.clock import SimulatedClock
from grebe.files import FileIds, FileList
from grebe.log.commit import Log
from grebe.log.entry import ContentFile, IndexCreated, IndexSpec, TableInfo, Verb, Writer
from grebe.log.operation import begin
from grebe.log.registration import Registry
from grebe.store.local import LocalStore
from grebe.store.memory import MemoryStore
from grebe.store.protocol import ObjectInfo, Store

ROOT = "memory://lake/orders"
TABLE = TableInfo(ROOT, "plain", {"format": "parquet"})
SPEC = IndexSpec("covering", ("o_custkey",), {"buckets": 8})


def writer(name: str = "ann@host") -> Writer:
    """One whose process cannot be looked up, so that only its heartbeat tells."""
    return Writer(host="elsewhere", pid=17, process_start="42", name=name)


def new_log(store: Store | None = None, clock: SimulatedClock | None = None, name: str = "ann@host") -> Log:
    clock = clock or SimulatedClock()
    return Log(store or MemoryStore("log", clock), clock, writer(name), patience=5.0).create(TABLE)


def files(*names: str, modified_ms: int = 1000) -> FileList:
    return FileList.build(ROOT, list(names), [10] * len(names), [modified_ms] * len(names))


def register(log: Log, *names: str) -> FileIds:
    return FileIds.of(Registry(log).register(files(*names)).to_numpy())


def create(log: Log, name: str = "by_customer", covered: FileIds | None = None, part: str = "part-0") -> None:
    with begin(log, Verb.CREATE, [name], {name: SPEC}) as operation:
        content = (ContentFile(f"{operation.folder(name)}/{part}.gix", 100, rows=10, footer=8),)
        log.store.put(content[0].path, b"x" * 100)
        ids = covered if covered is not None else FileIds.of_ranges([(0, log.state.next_file_id)])
        operation.commit(lambda state: [IndexCreated(name, SPEC, operation.version, content, ids, "v1")])


class VanishingStore(LocalStore):
    """Its folder is removed right after the call that is named."""

    def __init__(self, root: Path, call: str) -> None:
        super().__init__(root)
        self._folder = root
        self._call = call

    def get(self, path: str, most: int | None = None) -> bytes:
        data = super().get(path, most)
        self._vanish_after(f"get {path}")
        return data

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[ObjectInfo]:
        found = list(super().list(prefix, start_after))
        self._vanish_after(f"list {prefix}")
        return iter(found)

    def _vanish_after(self, call: str) -> None:
        if call == self._call and self._folder.exists():
            shutil.rmtree(self._folder)
