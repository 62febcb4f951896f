"""Schedules in which old entries are removed while others read and write."""

from collections.abc import Mapping
from functools import cache

from grebe.clock import SimulatedClock
from grebe.log import names
from grebe.log.commit import Log
from grebe.log.entry import Writer
from grebe.log.liveness import store_time
from grebe.log.registration import Registry
from grebe.maintenance.garbage import superfluous_entries
from grebe.store.memory import MemoryStore
from tests.log.simulation import FILES, OLD, TABLE, Fault, World, listing, open_log, reader, refresher


@cache
def _long_history() -> Mapping[str, bytes]:
    """The objects of a log with an entry for each file that is registered, with checkpoints and without a hint."""
    store = MemoryStore("simulated", SimulatedClock())
    log = Log(store, SimulatedClock(), Writer("host of nobody", 1, "1", "nobody"), checkpoint_every=3).create(TABLE)
    for file in FILES:
        Registry(log).register(listing(file))
    return {path: data for path, (data, _) in store._objects.items() if path != names.HINT}


def trimmer(world: World, name: str) -> None:
    """Removes the entries that are old and below a checkpoint, as vacuum does."""
    log = open_log(world, name)
    listed = list(log.store.list())
    state = log.reload().state
    for path in superfluous_entries(log, state, listed, store_time(log.store, log.clock) - int(OLD * 1000)):
        log.store.delete(path)


def schedule_with_removal(seed: int, fault: Fault | None = None, fault_rate: float = 0.0) -> World:
    """Two writers and a reader, while old entries are removed, by two at once in every other seed."""
    world = World(seed, fault, fault_rate, old=_long_history())
    others = {"other trimmer": trimmer} if seed % 2 else {}
    world.run(
        {
            "one": refresher("a", "b"),
            "two": refresher("c", sleeps=seed % 3 == 0),
            "trimmer": trimmer,
            "reader": reader,
            **others,
        }
    )
    return world
