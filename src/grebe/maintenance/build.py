"""Builds the content of indexes: the files that have settled are registered, read, written as each kind wants it, and checked.

Nothing here is visible to anybody until the caller commits it.
"""

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt

from grebe import telemetry
from grebe.errors import SourceChanged
from grebe.files import FileIds, FileList, diff
from grebe.formats.unite import require_in_files
from grebe.indexes.content.maps import NAME as MAPS
from grebe.indexes.kind import FromQuery, Kind
from grebe.log import names
from grebe.log.commit import Log
from grebe.log.entry import ContentFile, IndexSpec
from grebe.log.operation import Running
from grebe.log.registration import Registry
from grebe.maintenance.failures import spark_errors
from grebe.maintenance.maps import TableMaps
from grebe.maintenance.rows import IndexRows, TableRows
from grebe.maintenance.runs import Older
from grebe.sources import Source, settled_files
from grebe.spark.ambiguous import ambiguous_files
from grebe.spark.content import write_content
from grebe.spark.jobs import jobs_of
from grebe.spark.source import SparkSource
from grebe.spark.stores import table_store_for
from grebe.spark.views import require_unchanged
from grebe.store.access import keeper_of
from grebe.store.local import local_info
from grebe.store.protocol import ObjectInfo

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOGGER = logging.getLogger(__name__)
_AT_ONCE = 2
_LOOKED_AT_ONE_BY_ONE = 1_000


@dataclass(frozen=True, slots=True)
class Planned:
    """An index to be built."""

    kind: Kind
    spec: IndexSpec
    older: Older | None = None
    """Rows that it has already, to be written anew together with those of the files."""
    existing: Older | None = None
    """All that it has; None if nothing of that stays."""


@dataclass(frozen=True, slots=True)
class Built:
    spec: IndexSpec
    content: tuple[ContentFile, ...]
    covered: FileIds


@dataclass(frozen=True, slots=True)
class Files:
    """Files of the table, and their ids."""

    files: FileList
    ids: npt.NDArray[np.uint32]

    @classmethod
    def none(cls, source: SparkSource) -> "Files":
        return cls(FileList.build(source.uri, [], [], []), np.empty(0, np.uint32))

    @property
    def covered(self) -> FileIds:
        return FileIds.of(self.ids)

    def only(self, wanted: FileIds) -> "Files":
        places = np.flatnonzero(wanted.contains(self.ids))
        return Files(self.files.take(places), self.ids[places])


def settled(source: SparkSource, log: Log, running: Running) -> Files:
    """All files that do not change any more, registered."""
    files = _settled(source, log, running)
    return Files(files, Registry(log).register(files).to_numpy())


def build(
    source: SparkSource, log: Log, running: Running, planned: Mapping[str, Planned], of: Files
) -> dict[str, Built]:
    """Of just these files, but for those whose values depend on the columns of a query. Raises `SourceChanged` if one of them
    changes meanwhile."""
    of = _unambiguous(source, log, running, of)
    columns = {name for one in planned.values() for name in one.kind.reads(one.spec)}
    for column in source.reading.columns:
        if column.name in columns:
            require_in_files(column, source.uri)
    store = table_store_for(source.session, source.uri)
    doing = spark_errors(f"building {', '.join(planned)}", log.store.uri)
    with (
        doing,
        jobs_of(source.session, running.id),
        TableRows(source, of.files, of.ids, store, columns, len(planned)) as rows,
        TableMaps(source.reading.format, of.files, of.ids, store) as maps,
    ):

        def make(name: str) -> tuple[Built, IndexRows]:
            own = IndexRows(rows, planned[name].kind.name, planned[name].older, planned[name].existing)
            spec, content = _written(name, planned[name], own, maps, log, running)
            return Built(spec, content, of.covered), own

        made = dict(zip(planned, _side_by_side(source.session, make, list(planned)), strict=True))
        _require_unchanged(source, of.files)
        for one in planned.values():
            if isinstance(one.kind, FromQuery) and one.kind.definition is not None:
                require_unchanged(source.session, one.kind.definition)
        for built, own in made.values():
            own.require(sum(file.rows for file in built.content))
    return {name: built for name, (built, _) in made.items()}


def _unambiguous(source: SparkSource, log: Log, running: Running, of: Files) -> Files:
    with spark_errors("checking how records parse", log.store.uri), jobs_of(source.session, running.id):
        ambiguous = ambiguous_files(source, of.files, of.ids)
    if not ambiguous:
        return of
    telemetry.event(
        _LOGGER,
        logging.WARNING,
        "files_ambiguous",
        table=source.uri,
        format=source.reading.format,
        files=len(ambiguous),
    )
    return of.only(of.covered - ambiguous)


def _written(
    name: str, planned: Planned, rows: IndexRows, maps: TableMaps, log: Log, running: Running
) -> tuple[IndexSpec, tuple[ContentFile, ...]]:
    folder = running.folder(name)
    place = f"{log.store.uri}/{folder}"
    with spark_errors(f"building index {name}", place):
        arranged = planned.kind.arranged(planned.spec, rows)
        if arranged.maps:
            maps.begin()
        keeper = keeper_of(log.store)
        if (
            keeper is not None
        ):  # nobody gets below this folder who may not read the table, also while Spark writes to it
            keeper.make_folder(folder)
        write_content(arranged.frame, place, arranged.options)
        if keeper is not None:
            keeper.give_access(folder)
    spec = replace(planned.spec, properties={**planned.spec.properties, **arranged.properties})
    content = planned.kind.described(spec, folder, log.store)
    beside = maps.packed(planned.older.maps() if planned.older else {}) if arranged.maps else None
    if beside is not None:
        log.store.put(f"{folder}/{MAPS}", beside)
        content = (*content, ContentFile(f"{folder}/{MAPS}", len(beside)))
    return spec, content


def _changed(source: SparkSource, files: FileList) -> FileList:
    """Those that are not as they were listed. A few of a disk are looked at one by one: the table may have very many."""
    if not source.uri.startswith("file:") or not source.settling_ms or len(files) > _LOOKED_AT_ONE_BY_ONE:
        return diff(files, source.files()).removed
    facts = (files.table[name].to_pylist() for name in ("size", "modified_ms", "etag"))
    listed = (ObjectInfo(*each) for each in zip(files.uris().to_pylist(), *facts, strict=True))
    return files.filter(np.array([not _is_on_disk(each) for each in listed], np.bool_))


def _is_on_disk(listed: ObjectInfo) -> bool:
    """Return whether a file is there as Spark listed it."""
    try:
        found = Path(listed.path.removeprefix("file://")).stat()
    except FileNotFoundError:
        return False
    return listed.is_same(local_info(listed.path, found))


def _side_by_side(
    session: "SparkSession", make: "Callable[[str], tuple[Built, IndexRows]]", names: list[str]
) -> list[tuple[Built, IndexRows]]:
    """Two at a time: while the one waits for its last tasks, or for the store, the other has the machine."""
    if len(names) == 1:
        return [make(names[0])]
    import pyspark

    # What the caller told Spark (a job group, a pool of the scheduler) holds for these threads too.
    inherit = pyspark.inheritable_thread_target
    inheriting = inherit(session)(make) if pyspark.__version__ >= "4" else inherit(make)
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="grebe-build") as pool:
        return list(pool.map(inheriting, names))


def _settled(source: SparkSource, log: Log, running: Running) -> FileList:
    """Files that changed a moment ago are left for the next time: another change could leave their size and time as they are."""
    now = None
    if _one_clock(source.uri, log.store.uri):
        # The entry of our own begin was just written to the same store: its time is one of the store's own clock.
        now = log.store.stat(names.entry_path(running.version)).modified_ms
    return settled_files(cast(Source, source), log.clock, now).files  # only files() and settling_ms are asked for


def _one_clock(one: str, other: str) -> bool:
    """Whether both are of one store, so that its clock gives the times of both."""
    if not (one.startswith("file:") and other.startswith("file:")):
        return _host(one) == _host(other)
    return _device(one) == _device(other) is not None


def _device(uri: str) -> int | None:
    """The file system of a local folder: of several some may lie on other machines."""
    try:
        return Path(uri.removeprefix("file://")).stat().st_dev
    except OSError:
        return None


def _host(uri: str) -> str:
    scheme, _, rest = uri.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}"


def _require_unchanged(source: SparkSource, files: FileList) -> None:
    gone = _changed(source, files)
    if len(gone):
        raise SourceChanged(
            f"{len(gone)} of the {len(files)} files that were indexed changed or vanished meanwhile, such as "
            f"{gone.uris()[0].as_py()}; nothing was changed. Try again when the table is not being rewritten",
            detail="WHILE_BUILDING",
        )
