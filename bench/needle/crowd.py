"""Many lookups at once: threads that wait for a network, processes that share a disk, and a minute without pause."""

import itertools
import multiprocessing
import os
import statistics
import threading
import time
from collections.abc import Sequence
from multiprocessing.synchronize import Barrier
from pathlib import Path

import grebe
from bench.harness import in_fresh_process
from bench.needle.data import KEYS, THREE, some_keys
from bench.needle.stage import INDEXES, LATENCY, Remote, Stage

_THREADS = 64
_CACHE_BYTES = 64 * 1024 * 1024
_start: Barrier
"""Of a process of a pool."""


def threads(stage: Stage) -> None:
    """Through 30 ms of latency. The proxy and the server share the machine, so that its processors may be full first."""
    runs, seconds = stage.scale.pick((2, 2.0), (5, 4.0))
    keys = [int(key) for key in some_keys(stage.table, 2_000)["id"]]
    stage.remote.proxy.plan(latency=LATENCY)
    rounds = in_fresh_process(_in_threads, stage.remote, keys, runs, seconds).value
    one, many, busy = (statistics.median(figures) for figures in zip(*rounds, strict=True))
    stage.report.add(f"a lookup by {_THREADS} threads, 30 ms away", "s", many, "by one thread", one, runs)
    stage.report.add(f"processors busy with {_THREADS} threads", "share", busy, runs=runs)


def _in_threads(remote: Remote, keys: list[int], runs: int, seconds: float) -> list[tuple[float, float, float]]:
    """Of each round the seconds of a lookup by one thread and by many, and how busy the processors were with many."""
    table = remote.open()
    table.warm(INDEXES["id"])
    found = []
    for _ in range(runs):
        alone = _lookups(table, keys, 1, seconds)
        before = _processors()
        together = _lookups(table, keys, _THREADS, seconds)
        spent = [after - start for after, start in zip(_processors(), before, strict=True)]
        found.append((seconds / alone, seconds / together, spent[0] / sum(spent)))
    return found


def _lookups(table: "grebe.Table", keys: Sequence[int], count: int, seconds: float) -> int:
    """How many are done in that time."""
    done = [0] * count
    end = time.perf_counter() + seconds

    def work(number: int) -> None:
        own = itertools.cycle(keys[number::count])
        while time.perf_counter() < end:
            table.get("id", next(own), columns=THREE)
            done[number] += 1

    workers = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(done)


def _processors() -> tuple[int, int]:
    """Ticks of all processors, at work and idle. Linux only."""
    user, nice, system, idle, waiting, *rest = map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:])
    return user + nice + system + sum(rest), idle + waiting


def processes(stage: Stage) -> None:
    """On the local disk: do two do twice as much as one?"""
    runs, seconds = stage.scale.pick((2, 2.0), (5, 4.0))
    keys = some_keys(stage.table, 2_000)["id"]
    costs: dict[int, list[float]] = {1: [], 2: []}
    for number in range(runs):
        for count in (1, 2) if number % 2 == 0 else (2, 1):
            costs[count].append(_by_processes(stage.table, keys, count, seconds))
    one, two = (statistics.median(costs[count]) for count in (1, 2))
    stage.report.add("a lookup by two processes, local disk", "s", two, "by one process", one, runs)


def _by_processes(table: Path, keys: Sequence[object], count: int, seconds: float) -> float:
    """The seconds of a lookup."""
    context = multiprocessing.get_context("spawn")
    work = [(str(table), keys[number::count], seconds) for number in range(count)]
    with context.Pool(count, initializer=_meet_at, initargs=(context.Barrier(count, timeout=120),)) as pool:
        return seconds / sum(pool.starmap(_in_process, work, chunksize=1))


def _meet_at(barrier: Barrier) -> None:
    """All processes of a pool start their work together."""
    global _start
    _start = barrier


def _in_process(path: str, keys: Sequence[int], seconds: float) -> int:
    table = grebe.open(path)
    table.warm(INDEXES["id"])
    for key in keys[:50]:
        table.get("id", key, columns=THREE)
    _start.wait()
    return _lookups(table, keys, 1, seconds)


def memory(stage: Stage) -> None:
    """A minute without pause, over all keys and all columns."""
    seconds = stage.scale.pick(5.0, 60.0)
    keys = some_keys(stage.table, 20_000)
    grown, lookups = in_fresh_process(_unceasing, str(stage.table), keys, seconds).value
    allowed = _CACHE_BYTES * 1.1
    what = f"memory, {seconds:.0f} s without pause"
    stage.report.add(what, "bytes", grown, "cache_bytes and a tenth", allowed, lookups)


def _unceasing(path: str, keys: dict[str, list[int | str]], seconds: float) -> tuple[int, int]:
    """By how many bytes the process grew after its first lookups, at most; and how many lookups it did."""
    table = grebe.open(path, config=grebe.Config(cache_bytes=_CACHE_BYTES))
    turns = itertools.cycle(zip(*([(key, value) for value in keys[key]] for key in KEYS), strict=True))
    for column, value in next(turns):
        table.get(column, value)
    start, most, done = _resident(), 0, 0
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for column, value in next(turns):
            table.get(column, value)
            done += 1
        most = max(most, _resident())
    return most - start, done


def _resident() -> int:
    """Linux only."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
