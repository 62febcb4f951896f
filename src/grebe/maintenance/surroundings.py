"""Checks that a folder for indexes does not lie in the folder of some table: its engine would take the indexes for data.

Looked at are all folders above, by the path as it was given and by the one that symbolic links really lead to. What makes a folder
(part of) a table:

| sign | in the nearest folder | further up |
|---|---|---|
| metadata of a lake format; a log of Grebe that says so; indexes of another table | yes | yes |
| its name, or that of a folder in it, is that of a partition (`day=1`) | yes, but see below | yes, but see below |
| what jobs leave beside their output (`_SUCCESS`, `_metadata`, …) | yes | yes |
| files of a columnar format or Avro that are named as jobs name them (`part-0…`, `000000_0`) | yes | yes |
| such files whose names are numbers or hold a UUID | yes | if the folder holds little else, but see below |
| such files with other names | if the folder holds little else, but see below | if the folder holds little else, but see below |
| text, CSV and JSON that is named as jobs name it | yes | if the folder holds little else |
| text, CSV and JSON with other names | if the folder holds little else, but see below | no |

"Little else": at least half of the files are such, and no folders are there but the one on the way to the indexes. So a lake with
folders of several tables may hold indexes, and so may a home folder with a stray file in it.

A folder that holds the table to be indexed, which is no part of another one (see the next paragraph), is not told by its files
with names that nobody's job gives: each of them is a table of its own. Nor is it told by a name like that of a partition
(`tenant=a/orders` beside `tenant=a/indexes`), unless files of a columnar format lie in it, beside it, or in another folder that is
named like a partition beside it.

Indexes that lie beside their table are in another one if the table is a part of that: if its own name is that of a partition, or
that of a folder beside it, or it is a file in a folder of such a name or in the output of a job; else by the same signs as above,
but no files whose names nobody's job gives, and none beside several folders: `x.parquet` beside `y.parquet` are two tables, and so
are `tenant=a/orders` and `tenant=a/customers`.
"""

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from grebe import telemetry
from grebe.clock import SYSTEM
from grebe.errors import CorruptLog, InvalidConfig, StoreRefused, Unsupported
from grebe.formats.csv import CSV
from grebe.formats.json_lines import JSON_LINES
from grebe.formats.registry import data_suffix, format_of_file
from grebe.formats.text import TEXT
from grebe.formats.text_records import COMPRESSION_SUFFIXES
from grebe.log import names
from grebe.log.location import beside, parent_of
from grebe.log.ownership import owner_of, real_uri, require_apart
from grebe.store.patient import PatientStore
from grebe.store.protocol import Store

_logger = logging.getLogger("grebe.maintenance")
_LAKE_METADATA = {"_delta_log": "Delta Lake", ".hoodie": "Hudi"}
_PATIENCE = 5.0
_LEFT_BY_JOBS = {"_SUCCESS", "_spark_metadata/", "_metadata", "_common_metadata"}
_NAMED_BY_JOBS = re.compile(r"part-(?:[rm]-)?[0-9].*|[0-9]{6}_[0-9]+(?:_.*)?(?:\..*)?")
_UNIQUE = re.compile(r"(?<![0-9a-f])[0-9a-f]{8}(?:(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{24})(?![0-9a-f])", re.I)
_NUMBERED = re.compile(r"(?:part[-._]?|data[-._])?[0-9]+(?:[-._][0-9]+)*(?:\..*)?", re.I)
"""As Dask, DuckDB, Polars, Snowflake and others number the files of one table."""
_FEW_PARTITIONS = 4
"""So many folders beside one that is named like a partition are looked into."""
_PARTITION = re.compile(r"[^=]+=.*")
_BELOW_A_ROOT = re.compile(r".*-[0-9a-f]{16}")
"""As `grebe.log.location.below` names folders: a table that is itself called like a partition gives one such a name."""


def require_place(location: str, table: str, opener: Callable[[str], Store]) -> None:
    """Raise `StoreRefused` if a folder for the indexes of a table overlaps the table or lies in another one."""
    if location == beside(table):
        _require_whole(table, opener)
    else:
        require_apart(location, table)
        _require_outside_tables(location, table, opener)


def _require_outside_tables(location: str, table: str, opener: Callable[[str], Store]) -> None:
    """Raise `StoreRefused` if the location lies in the folder of a table, or in the folder of another table's indexes."""
    whole = _WholeTable(table, opener)
    for place in dict.fromkeys((real_uri(location), location)):
        if _is_partition(_name(place)):
            raise _refusal(location, place, "is named like a partition of a table")
        way = place
        for depth, folder in enumerate(_above(place)):
            found = _found_at(folder, _name(way), whole, opener, nearest=depth == 0)
            if found is not None:
                raise _refusal(location, f"{folder}, in which it lies,", found)
            way = folder


class _WholeTable:
    """The table to be indexed. A folder that holds it as a whole table is itself no table by weak signs."""

    def __init__(self, table: str, opener: Callable[[str], Store]) -> None:
        self._table = table
        self._opener = opener
        self._is_whole: bool | None = None

    def lies_in(self, folder: str) -> bool:
        """Tell whether the table lies below a folder, and is no part of another one; that is looked at once."""
        if not any(one.startswith(f"{folder.rstrip('/')}/") for one in (self._table, real_uri(self._table))):
            return False
        if self._is_whole is None:
            try:
                _require_whole(self._table, self._opener)
                self._is_whole = True
            except StoreRefused:
                self._is_whole = False
        return self._is_whole


def _require_whole(table: str, opener: Callable[[str], Store]) -> None:
    """Raise `StoreRefused` if a table is a part of another one: a folder beside it would lie in that."""
    for place in dict.fromkeys((real_uri(table), table)):
        if _is_partition(_name(place)):
            raise _refusal(beside(table), place, "is named like a partition of a table")
        way = place
        for depth, folder in enumerate(_above(place)):
            look = partial(_whole_of, folder=folder, part=_name(way), nearest=depth == 0)
            found = _seen_at(folder, opener, look)
            if found is not None:
                raise _refusal(beside(table), f"{folder}, in which it lies,", found)
            way = folder


def _refusal(location: str, folder: str, found: str) -> StoreRefused:
    return StoreRefused(
        f"{location} cannot hold indexes: {folder} {found}. Name an empty folder outside of it as location=.",
        detail="LOCATION_IN_TABLE",
    )


def _above(location: str) -> Iterator[str]:
    folder = parent_of(location)
    while folder is not None:
        yield folder
        folder = parent_of(folder)


def _name(uri: str) -> str:
    return "" if parent_of(uri) is None else uri.rpartition("/")[2]


def _is_partition(name: str) -> bool:
    return _PARTITION.fullmatch(name) is not None and _BELOW_A_ROOT.fullmatch(name) is None


def _found_at(
    folder: str, way: str, whole: _WholeTable, opener: Callable[[str], Store], *, nearest: bool
) -> str | None:
    """Say which table a folder is, or is a part of, or return None. `way`: the name in it on the way to the indexes."""
    is_named = _is_partition(_name(folder))
    if is_named and not whole.lies_in(folder):
        return "is named like a partition of a table"
    # The table lies in the way then: the way would have been refused otherwise.
    is_way_named = not nearest and _is_partition(way)

    def look(there: Sequence[str]) -> str | None:
        shown = _shown(there)
        if is_named or is_way_named:
            data = _certain_data(shown)
            if data:
                return f"holds data files of a table of partitions ({data[0]!r}, for one)"
        if not is_way_named:
            return _data_among(there, way, lambda: whole.lies_in(folder), nearest=nearest)
        partitions = [name for name in shown if name.endswith("/") and _is_partition(name.rstrip("/"))]
        for name in [name for name in partitions if name != f"{way}/"][:_FEW_PARTITIONS]:
            if _holds_data(f"{folder.rstrip('/')}/{name.rstrip('/')}", opener):
                return f"holds partitions of a table ({name!r}, for one)"
        rest = [name for name in there if name not in set(partitions)]
        return _data_among(rest, way, lambda: whole.lies_in(folder), nearest=nearest)

    return _seen_at(folder, opener, look)


def _seen_at(folder: str, opener: Callable[[str], Store], look: Callable[[Sequence[str]], str | None]) -> str | None:
    """Say which table lies in a folder, by metadata, by indexes or by what `look` says of the names in it, or return None."""
    try:
        store = PatientStore(opener(folder), SYSTEM, _PATIENCE)
        there = store.children()
        return _table_at(folder, there, store, opener) or look(there)
    except StoreRefused as problem:  # whoever may not look there cannot put a table there either
        telemetry.event(_logger, logging.INFO, "folder_above_not_seen", folder=folder, code=problem.code)
        return None


def _table_at(folder: str, there: Sequence[str], store: PatientStore, opener: Callable[[str], Store]) -> str | None:
    """Say which table lies there, by metadata of its own or by indexes, or return None."""
    for name, lake in _LAKE_METADATA.items():
        if f"{name}/" in there:
            return f"is a table of {lake}"
    if "metadata/" in there and any(name.endswith(".metadata.json") for name in store.children("metadata")):
        return "is a table of Iceberg"
    if names.MARKER in there and (owner := _owner(store)):
        return f"holds the indexes of {owner}"
    owner = _owner(PatientStore(opener(beside(folder)), SYSTEM, _PATIENCE))
    return "is a table that has indexes" if owner is not None and real_uri(owner) == real_uri(folder) else None


def _owner(store: PatientStore) -> str | None:
    try:
        return owner_of(store)
    except (CorruptLog, Unsupported):  # an object of that name that is not ours, or of a later release
        return None


def _whole_of(there: Sequence[str], folder: str, part: str, *, nearest: bool) -> str | None:
    """Say which of the names in a folder show that it is a table, of which `part` in it is a part, or return None."""
    shown = _shown(there)
    jobs = [name for name in shown if _NAMED_BY_JOBS.fullmatch(name)]
    is_only_folder = all(name == f"{part}/" for name in shown if name.endswith("/"))
    told = [name for name in jobs if _is_columnar(name) and is_only_folder]
    if nearest:
        if _is_partition(_name(folder)) and part in there:
            return "is named like a partition of a table"
        told += [name for name in (*_left_by_jobs(there), *jobs) if part in there]
        told += [name for name in shown if name.endswith("/") and _is_partition(name.rstrip("/"))]
    return f"is a table (it holds {told[0]!r}, for one)" if told else None


def _data_among(there: Sequence[str], way: str, is_lake: Callable[[], bool], *, nearest: bool) -> str | None:
    """Say which of the names in a folder show that it holds data of a table, or return None. `is_lake`: tells whether the table to
    be indexed, which lies in it, is no part of it."""
    shown = _shown(there)
    files = [name for name in shown if not name.endswith("/")]
    folders = [name.rstrip("/") for name in shown if name.endswith("/")]
    left = _left_by_jobs(there)
    if left:
        return f"holds the output of a job ({left[0]!r})"
    partition = next(filter(_is_partition, folders), None)
    if partition is not None:
        return f"holds partitions of a table ({partition!r}, for one)"
    text = [name for name in files if _is_text(name)]
    columnar = [name for name in files if _is_columnar(name)]
    jobs = [name for name in files if _NAMED_BY_JOBS.fullmatch(name)]
    little_else = 2 * len({*text, *columnar, *jobs}) >= len(files) and not set(folders) - {way}
    told = [name for name in columnar if name in set(jobs) or (nearest and _is_numbered(name))]
    told += [name for name in jobs if nearest or little_else]
    if not told and little_else:
        named = [*columnar, *(text if nearest else ())]
        told = named if named and not is_lake() else []
    return f"holds data files ({told[0]!r}, for one)" if told else None


def _certain_data(there: Sequence[str]) -> list[str]:
    """Return the files that hold data whatever else lies there."""
    files = [name for name in _shown(there) if not name.endswith("/")]
    return [name for name in files if _is_columnar(name) or _NAMED_BY_JOBS.fullmatch(name)]


def _holds_data(partition: str, opener: Callable[[str], Store]) -> bool:
    """Tell whether data lies directly in a folder that may be a partition; one with metadata of its own is a table."""
    try:
        there = PatientStore(opener(partition), SYSTEM, _PATIENCE).children()
    except StoreRefused:
        return False
    return bool(_certain_data(there)) and not any(f"{name}/" in there for name in _LAKE_METADATA)


def _is_numbered(name: str) -> bool:
    """Tell whether a columnar file is probably one of many that a job wrote."""
    return _NUMBERED.fullmatch(name) is not None or _UNIQUE.search(name) is not None


def _shown(there: Sequence[str]) -> list[str]:
    return [name for name in there if not name.startswith(("_", "."))]


def _left_by_jobs(there: Sequence[str]) -> list[str]:
    return [name for name in there if name in _LEFT_BY_JOBS]


def _is_text(name: str) -> bool:
    """Tell whether a file may hold data, but as well anything else."""
    suffix = data_suffix(name)
    is_packed = not suffix and name.lower().endswith(COMPRESSION_SUFFIXES)
    return is_packed or any(suffix in one.suffixes for one in (CSV, JSON_LINES, TEXT))


def _is_columnar(name: str) -> bool:
    """Tell whether a file holds data of a format that is no text."""
    try:
        return not _is_text(name) and format_of_file(name) is not None
    except InvalidConfig:  # a package whose formats cannot be loaded
        return False
