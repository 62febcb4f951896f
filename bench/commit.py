"""What does a commit cost, alone and contended, and does opening a table grow with its history?

The rival is deltalake: commits of metadata only (one AddAction each), on the same store, in the same run.
"""

import contextlib
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from bench.harness import Report, Scale, medians, timed
from grebe.clock import SYSTEM
from grebe.log.commit import Log
from testbed.hdfs import hdfs_server
from testbed.proxy import SOME_OF_EACH, fault_proxy
from testbed.racing import TABLE, one_commit, race
from testbed.recipes import StoreRecipe
from testbed.s3 import s3_server

RIVAL = "deltalake"


@dataclass(frozen=True)
class Place:
    """A fresh folder on one store, for both contestants."""

    name: str
    uri: str
    storage_options: Mapping[str, str]
    rival_options: Mapping[str, str] | None

    def recipe(self) -> StoreRecipe:
        return StoreRecipe(f"{self.uri}/{SYSTEM.new_id()}", self.storage_options)

    def rival_uri(self) -> str:
        return f"{self.uri}/{SYSTEM.new_id()}"


def run(scale: Scale, report: Report) -> None:
    with _places() as places:
        for place in places:
            _alone(place, scale, report)
        for place in places:
            _contended(place, scale, report)
        for place in places:
            _with_faults(place, scale, report, "15% of calls fail", 0.15)
        with _faulty_network(places[1]) as proxied:
            _with_faults(proxied, scale, report, "17% of requests fail", 0.0)
        _opening(places[0], scale, report)


@contextlib.contextmanager
def _places() -> Iterator[list[Place]]:
    with tempfile.TemporaryDirectory() as folder, s3_server() as s3, hdfs_server() as hdfs:
        rival_s3 = {f"AWS_{name.upper()}": value for name, value in s3.storage_options.items()}
        rival_s3 |= {"AWS_ENDPOINT_URL": s3.endpoint, "AWS_CONDITIONAL_PUT": "etag"}
        yield [
            Place("local", folder, {}, {}),
            Place("s3", s3.uri("bench"), s3.storage_options, rival_s3),
            Place("hdfs", hdfs.uri("bench"), {}, None),
        ]


def _alone(place: Place, scale: Scale, report: Report) -> None:
    commits = scale.pick(20, 100)
    log = Log(place.recipe().open()).create(TABLE)
    contestants = {"ours": timed(lambda: _repeat(lambda name: one_commit(log, name), commits))}
    if place.rival_options is not None:
        table = _rival_table(place.rival_uri(), place.rival_options)
        contestants[RIVAL] = timed(lambda: _repeat(lambda name: _rival_commit(table, name), commits))
    runs = scale.pick(3, 7)
    cost = {name: seconds / commits * 1000 for name, seconds in medians(contestants, runs).items()}
    rival = RIVAL if RIVAL in cost else None
    report.add(f"one commit alone, {place.name}", "ms", cost["ours"], rival, cost.get(RIVAL), runs)


def _repeat(commit: Callable[[str], None], times: int) -> None:
    for _ in range(times):
        commit(SYSTEM.new_id())


def _contended(place: Place, scale: Scale, report: Report) -> None:
    processes, commits = 8, scale.pick(20, 200)
    outcome = race(place.recipe(), processes, commits)
    _require_exactly_once(outcome.twice, outcome.missing)
    rival = _rival_race(place, processes, commits) if place.rival_options is not None else None
    each = 1000 / (processes * commits)
    case = f"one commit of {processes} x {commits} racing, {place.name}"
    report.add(case, "ms", outcome.seconds * each, RIVAL if rival else None, rival * each if rival else None)


@contextlib.contextmanager
def _faulty_network(place: Place) -> Iterator[Place]:
    """503s, 500s after the fact, lost replies, resets and false conflicts between the client and the S3 server."""
    with fault_proxy(place.storage_options["endpoint"]) as proxy:
        proxy.plan(seed=1, rates=SOME_OF_EACH)
        options = {**place.storage_options, "endpoint": proxy.endpoint, "timeout": "2s", "retry_timeout": "5"}
        yield Place(f"{place.name} by proxy", place.uri, options, None)


def _with_faults(place: Place, scale: Scale, report: Report, faults: str, rate: float) -> None:
    """No rival: what deltalake does after a lost reply is its own affair."""
    processes, commits = 8, scale.pick(20, 200)
    outcome = race(place.recipe(), processes, commits, fault_rate=rate)
    _require_exactly_once(outcome.twice, outcome.missing)
    case = f"{processes} x {commits} racing, {faults}, {place.name}"
    report.add(f"{case}: lost", "entries", len(outcome.missing))
    report.add(f"{case}: doubled", "entries", len(outcome.twice))
    report.add(f"{case}: tries a commit", "puts", outcome.attempts / (processes * commits))


def _opening(place: Place, scale: Scale, report: Report) -> None:
    long, runs = scale.pick(1_000, 10_000), scale.pick(5, 11)
    opened: dict[str, tuple[StoreRecipe, str]] = {}
    for commits in (10, long):
        recipe, uri = place.recipe(), place.rival_uri()
        log = Log(recipe.open()).create(TABLE)
        table = _rival_table(uri, place.rival_options or {})
        for number in range(commits - 1):
            one_commit(log, f"{number:032x}")
            _rival_commit(table, str(number))
        table.create_checkpoint()
        opened[f"{commits}"] = (recipe, uri)
    contestants = {}
    for commits_text, (recipe, uri) in opened.items():
        contestants[f"ours {commits_text}"] = timed(partial(_our_open, recipe))
        contestants[f"rival {commits_text}"] = timed(partial(_rival_open, uri, place.rival_options or {}))
    cost = {name: seconds * 1000 for name, seconds in medians(contestants, runs).items()}
    for commits_text in opened:
        ours, rival = cost[f"ours {commits_text}"], cost[f"rival {commits_text}"]
        report.add(f"open after {commits_text} commits, {place.name}", "ms", ours, RIVAL, rival, runs)
    few, many = opened
    report.add(f"open after {many} commits", "ms", cost[f"ours {many}"], f"ours after {few}", cost[f"ours {few}"], runs)


def _our_open(recipe: StoreRecipe) -> None:
    Log(recipe.open()).open()


def _require_exactly_once(twice: list[str], missing: list[str]) -> None:
    if twice or missing:
        raise RuntimeError(f"the log is wrong: {len(twice)} transactions twice, {len(missing)} missing")


def _rival_table(uri: str, options: Mapping[str, str]) -> Any:
    import pyarrow as pa
    from deltalake import DeltaTable, Schema

    if "://" not in uri:
        Path(uri).mkdir(parents=True)
    schema = Schema.from_arrow(pa.schema([("a", pa.int64())]))
    return DeltaTable.create(uri, schema, storage_options=dict(options))


def _rival_open(uri: str, options: Mapping[str, str]) -> Any:
    from deltalake import DeltaTable

    return DeltaTable(uri, storage_options=dict(options))


def _rival_commit(table: Any, name: str) -> None:
    from deltalake.transaction import AddAction

    action = AddAction(f"{name}.parquet", 10, {}, 1, True, "{}")
    table.create_write_transaction([action], "append", table.schema())
    table.update_incremental()  # or each commit would read all entries since the table was opened


def _rival_race(place: Place, processes: int, commits: int) -> float:
    uri = place.rival_uri()
    _rival_table(uri, place.rival_options or {})
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(processes), context.Queue()
    arguments = (uri, dict(place.rival_options or {}), commits, barrier, results)
    workers = [context.Process(target=_rival_work, args=(w, *arguments), daemon=True) for w in range(processes)]
    for worker in workers:
        worker.start()
    seconds: float = max(results.get(timeout=1800) for _ in workers)
    for worker in workers:
        worker.join()
    return seconds


def _rival_work(worker: int, uri: str, options: dict[str, str], commits: int, barrier: Barrier, results: Any) -> None:
    from deltalake.exceptions import CommitFailedError

    table = _rival_open(uri, options)
    barrier.wait()
    start = time.perf_counter()
    for number in range(commits):
        while True:
            try:
                _rival_commit(table, f"{worker}-{number}")
                break
            except CommitFailedError:  # gave up after its own tries
                table.update_incremental()
    results.put(time.perf_counter() - start)
