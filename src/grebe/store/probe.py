"""Finds out whether a store keeps its promise of put-if-absent, before anything is trusted to it.

Some servers that speak S3 ignore the condition: both writers of one name are told that they have won, and the second has
overwritten the first. Nothing above the store could notice before it is too late.
"""

import threading
from concurrent.futures import ThreadPoolExecutor

from grebe.clock import SYSTEM
from grebe.errors import StoreRefused, StoreUnreachable
from grebe.store.protocol import ObjectExists, ObjectMissing, OutcomeUnknown, Store

_RACES = 3
_PATIENCE = 10

_trusted: set[str] = set()
_lock = threading.Lock()


def probe(store: Store, folder: str = "") -> None:
    """Raises `StoreRefused` if the store lets a second writer have a name that is taken. Asked once a process and root.

    Writes a few small objects below `folder` and removes them.
    """
    with _lock:
        if store.uri in _trusted:
            return
    names = [f"{folder}/probe-{SYSTEM.new_id()}".lstrip("/") for _ in range(_RACES + 1)]
    try:
        _one_after_the_other(store, names[0])
        with ThreadPoolExecutor(_RACES) as pool:
            for race in [pool.submit(_side_by_side, store, name) for name in names[1:]]:
                race.result()
    finally:
        _remove(store, names)
    with _lock:
        _trusted.add(store.uri)


def _one_after_the_other(store: Store, name: str) -> None:
    for _ in range(_PATIENCE):
        # A lost reply or a false "exists already" says nothing: what counts is what lies there.
        _put(store, name, b"first")
        if _content(store, name) == b"first":
            break
    else:
        raise StoreUnreachable(f"{store.uri} does not keep what is put there, or does not answer; try again later")
    won = _put(store, name, b"second")
    if won or _content(store, name) == b"second":
        raise _refusal(store)


def _side_by_side(store: Store, name: str) -> None:
    contents = [b"left", b"right"]
    start = threading.Barrier(len(contents))

    def write(content: bytes) -> bool:
        start.wait()
        return _put(store, name, content)

    with ThreadPoolExecutor(len(contents)) as pool:
        won = list(pool.map(write, contents))
    there = _content(store, name)
    if all(won) or any(claim and there not in (content, None) for claim, content in zip(won, contents, strict=True)):
        raise _refusal(store)


def _put(store: Store, name: str, content: bytes) -> bool:
    """Whether the store says that this call has stored it."""
    try:
        store.put_if_absent(name, content)
    except (ObjectExists, OutcomeUnknown):
        return False
    return True


def _content(store: Store, name: str) -> bytes | None:
    """What lies there; None if nothing does, or the store does not say."""
    for _ in range(_PATIENCE):
        try:
            return store.get(name)
        except ObjectMissing:
            return None
        except OutcomeUnknown:
            continue
    return None


def _remove(store: Store, names: list[str]) -> None:
    for name in names:
        for _ in range(_PATIENCE):
            try:
                store.delete(name)
            except OutcomeUnknown:
                continue
            except StoreRefused:
                return  # may write but not delete; or may not write at all, so that nothing is there
            break


def _refusal(store: Store) -> StoreRefused:
    return StoreRefused(
        f"{store.uri} ignores the condition of put-if-absent: of two writers of one name both win, so a log on it would lose "
        "commits. Keep the indexes on a store that honours it (a large cloud, HDFS, a local disk, a new S3 server) by location=…",
        detail="NO_PUT_IF_ABSENT",
    )
