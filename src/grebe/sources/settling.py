"""Waiting until files have settled.

A plain file is told from an earlier one by size and modification time. Two changes within the granularity of a store's clock may
leave both alike, so an index may only be built on a file whose last change is older than that; then whatever changes it later also
changes its time. How old a file is, only its store's clock can tell, and that of another machine may be hours away. So either the
caller knows a moment of that clock (the modification time that the store gave to an object just written there), or no clock is
compared at all: the files are listed, the granularity is waited out, and what a second listing shows unchanged had its last change
before the wait.
"""

from dataclasses import dataclass

import numpy as np

from grebe.clock import Clock
from grebe.files import FileList, diff
from grebe.sources.protocol import Source


@dataclass(frozen=True, slots=True)
class Settled:
    """`files` may be indexed. `changing` changed too shortly before and are left for the next time."""

    files: FileList
    changing: FileList


def settled_files(source: Source, clock: Clock, store_now_ms: int | None = None) -> Settled:
    """The files of now. `store_now_ms` is a moment of the store's own clock, not later than this call."""
    listing = source.files()
    unknown = np.zeros(len(listing), np.bool_)
    old = unknown if store_now_ms is None else listing.older_than(store_now_ms - source.settling_ms)
    if not source.settling_ms or old.all():
        return Settled(listing, FileList.empty(listing.root))
    clock.sleep(source.settling_ms / 1000)
    change = diff(listing, source.files())
    return Settled(change.unchanged, change.added)
