"""What kinds of summaries have in common: how they are written, checked and asked."""

from concurrent.futures import ThreadPoolExecutor

from grebe.errors import CorruptIndex, GrebeError
from grebe.files.untrusted import MOST_BYTES
from grebe.indexes.content.copies import by_folder
from grebe.indexes.faults import Fault, fault
from grebe.indexes.kind import Arranged, Copy, Pruner, Rows
from grebe.indexes.summary import directory
from grebe.indexes.summary.build import arrange
from grebe.indexes.summary.probe import SummaryIndex
from grebe.indexes.summary.shape import shape_of
from grebe.indexes.summary.suppose import suppose
from grebe.indexes.supposed import Sample, Supposed
from grebe.log.entry import ContentFile, IndexSpec
from grebe.log.states import IndexState
from grebe.store.protocol import ObjectMissing, Store

_AT_ONCE = 16


class Summary:
    """To be inherited by such a kind, which has a `name` and says by itself what is kept."""

    name: str

    def reads(self, spec: IndexSpec) -> frozenset[str]:
        return frozenset(column.path[0] for column in shape_of(self.name, spec).columns)

    def arranged(self, spec: IndexSpec, rows: Rows) -> Arranged:
        return arrange(self.name, spec, rows)

    def supposed(self, spec: IndexSpec, sample: Sample) -> Supposed:
        return suppose(shape_of(self.name, spec), sample)

    def described(self, spec: IndexSpec, folder: str, store: Store) -> tuple[ContentFile, ...]:
        return directory.describe(folder, store)

    @staticmethod
    def copy_of(index: IndexState, store: Store) -> Copy | None:
        """It holds no rows."""
        return None

    @staticmethod
    def pruner_of(index: IndexState, store: Store) -> Pruner:
        return SummaryIndex.of(index, store)

    @staticmethod
    def faults_of(index: IndexState, store: Store, deep: bool) -> list[Fault]:
        """Every byte has a digest, so that sizes are looked at, or all is read."""
        found: list[Fault] = []
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for folder, files in by_folder(index.content).items():
                path = f"{folder}/{directory.NAME}"
                try:
                    listed = directory.parse(_whole(path, store), store, folder, files)
                except GrebeError as problem:
                    found.append(fault(index.name, path, problem))
                    continue

                def check(one: directory.Listed) -> Fault | None:
                    try:
                        _require_size(one, store)
                        if deep:
                            one.parsed(_whole(one.file.path, store))
                    except GrebeError as problem:
                        return fault(index.name, one.file.path, problem)
                    return None

                found += [one for one in pool.map(check, listed) if one is not None]
        return found


def _whole(path: str, store: Store) -> bytes:
    try:
        return store.get(path, MOST_BYTES)
    except ObjectMissing as missing:
        raise CorruptIndex(f"{store.uri}/{path} is missing", detail="MISSING") from missing


def _require_size(one: directory.Listed, store: Store) -> None:
    try:
        size = store.stat(one.file.path).size
    except ObjectMissing as missing:
        raise CorruptIndex(f"{one.file.uri} is missing", detail="MISSING") from missing
    if size != one.file.size:
        raise CorruptIndex(f"{one.file.uri} has {size:,} bytes and should have {one.file.size:,}", detail="SIZE")
