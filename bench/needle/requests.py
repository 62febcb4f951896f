"""What a lookup asks of an object store through 30 ms of latency: requests, and how many of them wait for one another."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow.parquet as pq

import grebe
from bench.harness import in_fresh_process
from bench.needle.data import THREE, some_keys
from bench.needle.stage import INDEXES, LATENCY, Remote, Stage
from testbed import proxy

_MANY = 10_000
TWO = ["id", "d0"]
_ROWS_OF_A_CHUNK, _ROWS_OF_A_PAGE = 6_150, 20_000


@dataclass(frozen=True)
class Measured:
    seconds: float
    requests: int
    rounds: int
    """Requests that came when none was under way: each begins after the answers of those before it."""


@dataclass(frozen=True)
class Asked:
    first: int
    others: list[int]
    high: int
    """Far from `first`, so that it lies in another file of the index."""
    absent: list[int]
    many: list[int]
    local: str
    """The same table on this machine."""

    def get_ready(self) -> None:
        """Loads all modules, which is no cost of a request."""
        grebe.open(self.local).get("id", self.first, columns=THREE)


def requests(stage: Stage) -> None:
    keys = [int(key) for key in some_keys(stage.table, _MANY)["id"]]
    low, *others = keys[:20]
    asked = Asked(
        first=min(low, *others),
        others=others,
        high=max(keys) - 1,
        absent=_absent(keys, stage.scale.pick(300, 2_000)),
        many=sorted(keys),
        local=str(stage.table),
    )
    runs = stage.scale.pick(2, 5)
    rounds: list[dict[str, list[Measured]]] = [
        {
            case: measured
            for work in (_one_after_another, _absent_first, _many_first)
            for case, measured in in_fresh_process(work, stage.remote, asked).value.items()
        }
        for _ in range(runs)
    ]
    promises = {"open": 3, "get, cold": 4, "get, warm": 2, "absent key, cold beyond the root": 1, "absent key, cold": 2}
    for case in rounds[0]:
        of_case = [measured for one in rounds for measured in one[case]]
        _report(stage, case, of_case, promises.get(case), runs)
    none = [one.requests > 0 for each in rounds for one in each["absent key, warm"]]
    stage.report.add("absent key, warm: share with any request", "share", statistics.mean(none), "promised", 0.01, runs)
    chunks = _chunks(stage, asked.many)
    for case in ("get_many, cold", "get_many, warm"):
        counted = statistics.median(one.requests for each in rounds for one in each[case])
        what = f"{case}, {len(asked.many):,} keys: requests"
        stage.report.add(what, "requests", counted, "chunks and pages it must touch", chunks, runs)


def _report(stage: Stage, case: str, of_case: list[Measured], promised: int | None, runs: int) -> None:
    middle = Measured(
        statistics.median(one.seconds for one in of_case),
        int(statistics.median(one.requests for one in of_case)),
        int(statistics.median(one.rounds for one in of_case)),
    )
    if promised is not None:
        stage.report.add(f"{case}: dependent round trips", "rounds", middle.rounds, "promised", promised, runs)
        stage.report.add(f"{case}: requests", "requests", middle.requests, runs=runs)
    stage.report.add(f"{case}: time", "s", middle.seconds, "one round trip", LATENCY, runs)


def _absent(keys: list[int], count: int) -> list[int]:
    """Random as the keys are."""
    known = set(keys)
    drawn = np.random.default_rng(7).integers(0, 2**63 - 1, count).tolist()
    return [key for key in drawn if key not in known]


def _measured(remote: Remote, work: Callable[[], object]) -> Measured:
    remote.proxy.plan(latency=LATENCY)
    start = time.perf_counter()
    work()
    seconds = time.perf_counter() - start
    seen = remote.proxy.seen()
    return Measured(seconds, len(seen), proxy.rounds(seen))


def _one_after_another(remote: Remote, asked: Asked) -> dict[str, list[Measured]]:
    """In a process of its own, where nothing is kept yet."""
    asked.get_ready()
    found = {"open": [_measured(remote, remote.open)]}
    table = remote.open()

    def get(key: int) -> Measured:
        return _measured(remote, lambda: table.get("id", key, columns=THREE))

    found["get, cold"] = [get(asked.first)]
    # The root is there by now, the end of that file of the index is not.
    found["absent key, cold beyond the root"] = [get(asked.high)]
    table.warm(INDEXES["id"])
    found["get, warm"] = [get(key) for key in asked.others]
    found["absent key, warm"] = [get(key) for key in asked.absent]
    found["get_many, warm"] = [_many(remote, table, asked)]
    return found


def _absent_first(remote: Remote, asked: Asked) -> dict[str, list[Measured]]:
    asked.get_ready()
    table = remote.open()
    return {"absent key, cold": [_measured(remote, lambda: table.get("id", asked.high, columns=THREE))]}


def _many_first(remote: Remote, asked: Asked) -> dict[str, list[Measured]]:
    asked.get_ready()
    return {"get_many, cold": [_many(remote, remote.open(), asked)]}


def _many(remote: Remote, table: "grebe.Table", asked: Asked) -> Measured:
    return _measured(remote, lambda: table.get_many("id", asked.many, columns=TWO))


def _chunks(stage: Stage, keys: list[int]) -> int:
    """Chunks of the index in which the keys lie, and pages of the two columns in which their rows do."""
    whole = [pq.read_table(file, columns=["id"])["id"].to_numpy() for file in sorted(stage.table.glob("*.parquet"))]
    ranks = np.searchsorted(np.sort(np.concatenate(whole)), keys)
    in_index = len(np.unique(ranks // _ROWS_OF_A_CHUNK))
    in_data = sum(len(np.unique(np.flatnonzero(np.isin(ids, keys)) // _ROWS_OF_A_PAGE)) for ids in whole)
    return in_index + len(TWO) * in_data
