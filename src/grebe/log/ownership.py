"""The marker of a location: it says whose indexes a folder holds, and is written there before anything else.

A folder is taken only if it is empty or marked for the same table, and lies neither in nor around that table. A log of release
0.1.0 has no marker: its entries say whose it is, and the first writer that comes by adds the marker.
"""

import os

from grebe.errors import Conflict, CorruptLog, StoreRefused
from grebe.log import codec, names
from grebe.log.location import beside
from grebe.store.patient import PatientStore
from grebe.store.protocol import ObjectExists, ObjectMissing, ObjectTooLarge, OutcomeUnknown

_LOCAL = "file://"
_FOLDERS = ("log/", "data/", "files/", "alive/", "workload/")


def claim(store: PatientStore, table: str, *, has_log: bool) -> None:
    """Make sure that the location is marked as that of `table` (a canonical URI). Raises `StoreRefused` where the folder holds
    other things or overlaps the table, `Conflict` where it is marked for another table."""
    owner = owner_of(store)
    if owner is None:
        if not has_log:
            require_apart(store.uri, table)
            require_nothing_foreign(store)
        _mark(store, table)
        owner = owner_of(store)
    require_owner(store.uri, owner, table)


def owner_of(store: PatientStore) -> str | None:
    """Return the URI of the table that the location is marked for, or None where there is no marker."""
    try:
        data = store.get(names.MARKER, codec.MOST_MARKER_BYTES)
    except ObjectMissing:
        return None
    except ObjectTooLarge as problem:
        raise CorruptLog(f"{problem}. {codec.NEXT_STEP}", detail="MARKER") from problem
    return codec.decode_marker(data, f"{store.uri}/{names.MARKER}")


def require_owner(where: str, owner: str | None, table: str) -> None:
    """Raise `Conflict` if a location is marked for another table."""
    if owner is not None and owner != table:
        raise Conflict(
            f"{where} holds the indexes of another table ({owner}), not of {table}. Name another location=.",
            detail="OTHER_TABLE",
        )


def require_apart(location: str, table: str) -> None:
    """Raise `StoreRefused` if the location is the table's folder, lies in it or holds it. Links of a local disk are followed."""
    if location == beside(table):  # a table at the root of a store keeps it inside, hidden from other engines
        return
    place, data = real_uri(location), real_uri(table)
    relation = "lies in" if _is_below(place, data) else "holds" if _is_below(data, place) else ""
    if relation:
        raise StoreRefused(
            f"{location} cannot hold indexes: it {'is' if place == data else relation} the table {table}, whose files are not "
            "Grebe's. Name an empty folder outside of the table as location=.",
            detail="LOCATION_OVERLAPS",
        )


def overlaps(location: str, table: str) -> bool:
    """Tell whether one of the two folders lies in the other, or both are the same."""
    place, data = real_uri(location), real_uri(table)
    return _is_below(place, data) or _is_below(data, place)


def _is_below(uri: str, folder: str) -> bool:
    return uri == folder or uri.startswith(f"{folder.rstrip('/')}/")


def real_uri(uri: str) -> str:
    """Return the URI with symbolic links of a local disk resolved."""
    return f"{_LOCAL}{os.path.realpath(uri.removeprefix(_LOCAL))}" if uri.startswith(_LOCAL) else uri


def require_nothing_foreign(store: PatientStore) -> None:
    """Raise `StoreRefused` if a folder holds other things than Grebe's."""
    there = store.children()
    # What is in these folders is looked at only where nothing else is there: a folder of somebody's may hold millions of objects.
    foreign = next((name for name in there if name not in _FOLDERS and not names.is_ours(name)), None)
    if foreign is None and there:
        foreign = next((one.path for one in store.list() if not names.is_ours(one.path)), None)
    if foreign is not None:
        raise StoreRefused(
            f"{store.uri} cannot hold indexes: it is not empty and not marked as Grebe's (it holds {foreign!r}, for one). Name an "
            "empty folder as location=.",
            detail="LOCATION_NOT_EMPTY",
        )


def _mark(store: PatientStore, table: str) -> None:
    patience = store.patience()
    while True:
        try:
            return store.put_if_absent(names.MARKER, codec.encode_marker(table))
        except ObjectExists:
            return None
        except OutcomeUnknown as problem:
            patience.wait(problem)
