"""Checks that a folder for indexes does not lie in the folder of some table: its engine would take the indexes for data.

Looked at are all folders above: for the metadata of a lake format, for a log of Grebe that says that this folder is a table's, and
for a location of another table. In the nearest folder above also for data files and for partitions.
"""

import logging
from collections.abc import Callable, Iterator, Sequence

from grebe import telemetry
from grebe.clock import SYSTEM
from grebe.errors import CorruptLog, StoreRefused, Unsupported
from grebe.log import names
from grebe.log.location import beside, parent_of
from grebe.log.ownership import owner_of
from grebe.store.patient import PatientStore
from grebe.store.protocol import Store

_logger = logging.getLogger("grebe.maintenance")
_LAKE_METADATA = {"_delta_log": "Delta Lake", ".hoodie": "Hudi"}
_DATA = (".parquet", ".orc", ".avro")
_PATIENCE = 5.0


def require_outside_tables(location: str, opener: Callable[[str], Store]) -> None:
    """Raise `StoreRefused` if the location lies in the folder of a table, or in the folder of another table's indexes."""
    for depth, folder in enumerate(_above(location)):
        try:
            found = _table_at(folder, PatientStore(opener(folder), SYSTEM, _PATIENCE), opener, nearest=depth == 0)
        except StoreRefused as problem:  # whoever may not look there cannot put a table there either
            telemetry.event(_logger, logging.INFO, "folder_above_not_seen", folder=folder, code=problem.code)
            continue
        if found is not None:
            raise StoreRefused(
                f"{location} cannot hold indexes: {folder}, in which it lies, {found}. Name an empty folder outside of it as "
                "location=.",
                detail="LOCATION_IN_TABLE",
            )


def _above(location: str) -> Iterator[str]:
    folder = parent_of(location)
    while folder is not None:
        yield folder
        folder = parent_of(folder)


def _table_at(folder: str, store: PatientStore, opener: Callable[[str], Store], *, nearest: bool) -> str | None:
    """Say which table lies there, or return None."""
    there = store.children()
    for name, lake in _LAKE_METADATA.items():
        if f"{name}/" in there:
            return f"is a table of {lake}"
    if "metadata/" in there and any(name.endswith(".metadata.json") for name in store.children("metadata")):
        return "is a table of Iceberg"
    if names.MARKER in there and (owner := _owner(store)):
        return f"holds the indexes of {owner}"
    if _owner(PatientStore(opener(beside(folder)), SYSTEM, _PATIENCE)) == folder:
        return "is a table that has indexes"
    return _data_among(there) if nearest else None


def _owner(store: PatientStore) -> str | None:
    try:
        return owner_of(store)
    except (CorruptLog, Unsupported):  # an object of that name that is not ours, or of a later release
        return None


def _data_among(there: Sequence[str]) -> str | None:
    shown = [name for name in there if not name.startswith(("_", "."))]
    files = [name for name in shown if name.endswith(_DATA)]
    partitions = [name for name in shown if name.endswith("/") and "=" in name]
    if files:
        return f"holds data files ({files[0]!r}, for one)"
    return f"holds partitions of a table ({partitions[0]!r}, for one)" if partitions else None
