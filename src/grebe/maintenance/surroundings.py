"""Checks that a folder for indexes does not lie in the folder of some table: its engine would take the indexes for data.

Looked at are all folders above, by the path as it was given and by the one that symbolic links really lead to. What makes a folder
(part of) a table:

| sign | in the nearest folder | further up |
|---|---|---|
| metadata of a lake format; a log of Grebe that says so; indexes of another table | yes | yes |
| its name, or that of a folder in it, is that of a partition (`day=1`) | yes | yes |
| what jobs leave beside their output (`_SUCCESS`, `_metadata`, …) | yes | yes |
| files of a columnar format or Avro that are named as jobs name them (`part-0…`, `000000_0`) | yes | yes |
| such files with other names | yes | if the folder holds little else |
| text, CSV and JSON that is named as jobs name it | yes | if the folder holds little else |
| text, CSV and JSON with other names | if the folder holds little else | no |

"Little else": at least half of the files are such, and no folders are there but the one on the way to the indexes. So a lake with
folders of several tables may hold indexes, and so may a home folder with a stray file in it.

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
_PARTITION = re.compile(r"[^=]+=.*")
_BELOW_A_ROOT = re.compile(r".*-[0-9a-f]{16}")
"""As `grebe.log.location.below` names folders: a table that is itself called like a partition gives one such a name."""


def require_place(location: str, table: str, opener: Callable[[str], Store]) -> None:
    """Raise `StoreRefused` if a folder for the indexes of a table overlaps the table or lies in another one."""
    if location == beside(table):
        _require_whole(table, opener)
    else:
        require_apart(location, table)
        _require_outside_tables(location, opener)


def _require_outside_tables(location: str, opener: Callable[[str], Store]) -> None:
    """Raise `StoreRefused` if the location lies in the folder of a table, or in the folder of another table's indexes."""
    for place in dict.fromkeys((real_uri(location), location)):
        if _is_partition(_name(place)):
            raise _refusal(location, place, "is named like a partition of a table")
        way = place
        for depth, folder in enumerate(_above(place)):
            found = _found_at(folder, _name(way), opener, nearest=depth == 0)
            if found is not None:
                raise _refusal(location, f"{folder}, in which it lies,", found)
            way = folder


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


def _found_at(folder: str, way: str, opener: Callable[[str], Store], *, nearest: bool) -> str | None:
    """Say which table a folder is, or is a part of, or return None. `way`: the name in it on the way to the indexes."""
    if _is_partition(_name(folder)):
        return "is named like a partition of a table"
    return _seen_at(folder, opener, lambda there: _data_among(there, way, nearest=nearest))


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
    shown = [name for name in there if not name.startswith(("_", "."))]
    jobs = [name for name in shown if _NAMED_BY_JOBS.fullmatch(name)]
    is_only_folder = all(name == f"{part}/" for name in shown if name.endswith("/"))
    told = [name for name in jobs if _is_columnar(name) and is_only_folder]
    if nearest:
        if _is_partition(_name(folder)) and part in there:
            return "is named like a partition of a table"
        told += [name for name in (*_left_by_jobs(there), *jobs) if part in there]
        told += [name for name in shown if name.endswith("/") and _is_partition(name.rstrip("/"))]
    return f"is a table (it holds {told[0]!r}, for one)" if told else None


def _data_among(there: Sequence[str], way: str, *, nearest: bool) -> str | None:
    """Say which of the names in a folder show that it holds data of a table, or return None."""
    shown = [name for name in there if not name.startswith(("_", "."))]
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
    told = [name for name in columnar if nearest or little_else or name in set(jobs)]
    told += [name for name in jobs if nearest or little_else]
    told += [name for name in text if nearest and little_else]
    return f"holds data files ({told[0]!r}, for one)" if told else None


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
