"""Finds out a store that ignores the condition of put-if-absent, before anything depends on it."""

from grebe.clock import SYSTEM
from grebe.errors import StoreRefused
from grebe.store.protocol import ObjectExists, Store

_trusted: set[str] = set()


def probe(store: Store, folder: str = "") -> None:
    """Raises `StoreRefused` if of two puts of one name both succeed. Remembered for the process."""
    if store.uri in _trusted:
        return
    path = f"{folder}/probe/{SYSTEM.new_id()}".lstrip("/")
    store.put_if_absent(path, b"first")
    try:
        store.put_if_absent(path, b"second")
    except ObjectExists:
        _trusted.add(store.uri)
        return
    finally:
        store.delete(path)
    raise StoreRefused(f"{store.uri} ignores the condition of put-if-absent", detail="NO_PUT_IF_ABSENT")
