"""Processes that race on one log, for the tests at a small count and for the bench at the full one."""

import contextlib
import multiprocessing
import queue
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from typing import Protocol

from grebe.clock import SYSTEM
from grebe.log.commit import Log
from grebe.log.entry import Change, OperationBegun, OperationEnded, TableInfo, Verb
from grebe.log.snapshot import history
from grebe.log.states import TableState
from grebe.store.protocol import Store
from testbed.faults import FaultyStore

TABLE = TableInfo("memory://raced", "plain")
_LONGEST_STEP = 120.0


class Recipe(Protocol):
    """How another process opens the same store. Can be pickled."""

    def open(self) -> Store: ...


@dataclass(frozen=True)
class Outcome:
    """What a race left behind. `attempts` counts puts of entries: the more above `entries`, the harder the race was."""

    processes: int
    commits: int
    entries: int
    twice: list[str]
    missing: list[str]
    attempts: int
    seconds: float


def race(recipe: Recipe, processes: int, commits: int, fault_rate: float = 0.0, *, in_step: bool = False) -> Outcome:
    """Each of the processes makes that many commits, all on one log; in step, all meet before every commit."""
    Log(recipe.open()).create(TABLE)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, recipe.__class__.__module__])  # loaded once, not by every process
    barrier, results = context.Barrier(processes), context.Queue()
    workers = [
        context.Process(target=_work, args=(recipe, w, commits, fault_rate, in_step, barrier, results), daemon=True)
        for w in range(processes)
    ]
    for worker in workers:
        worker.start()
    done: list[tuple[int, float]] = []
    while len(done) < processes:
        with contextlib.suppress(queue.Empty):
            done.append(results.get(timeout=1))
        if any(worker.exitcode for worker in workers):
            raise RuntimeError("a racing process failed; its traceback is above")
    for worker in workers:
        worker.join()
    return _judge(recipe.open(), processes, commits, done)


def _work(
    recipe: Recipe,
    worker: int,
    commits: int,
    fault_rate: float,
    in_step: bool,
    barrier: Barrier,
    results: "Queue[tuple[int, float]]",
) -> None:
    store = FaultyStore(recipe.open(), worker, fault_rate)
    log = Log(store).open()
    barrier.wait()
    start = SYSTEM.monotonic()
    for number in range(commits):
        if in_step:
            barrier.wait(_LONGEST_STEP)
        one_commit(log, _id_of(worker, number))
    results.put((store.entry_puts, SYSTEM.monotonic() - start))


def _id_of(worker: int, number: int) -> str:
    """Return the id of an operation, as the log takes it."""
    return f"{worker:016x}{number:016x}"


def one_commit(log: Log, name: str) -> None:
    """An entry that can be recognised and leaves the state as it was."""

    def changes(state: TableState) -> Sequence[Change]:
        begun = OperationBegun(name, Verb.REFRESH, (), log.writer, 60.0)
        return (begun, OperationEnded(name, committed=True))

    log.commit("race", changes)


def _judge(store: Store, processes: int, commits: int, done: list[tuple[int, float]]) -> Outcome:
    log = Log(store).open()  # folds and checks what it reads
    entries = list(history(log.store, log.newest.number))
    counted = Counter(c.id for e in entries for c in e.changes if isinstance(c, OperationBegun))
    wanted = {_id_of(w, n) for w in range(processes) for n in range(commits)}
    return Outcome(
        processes=processes,
        commits=commits,
        entries=len(entries),
        twice=sorted(name for name, count in counted.items() if count > 1),
        missing=sorted(wanted - counted.keys()),
        attempts=sum(puts for puts, _ in done),
        seconds=max(seconds for _, seconds in done),
    )
