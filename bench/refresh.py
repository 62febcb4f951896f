"""Does an incremental refresh of the same change cost more in a larger table?

One file is appended to tables of one, three and ten times the files, all of the same size. `stream` goes on: file after file, each
with a refresh, so that what is merged now and then counts too. The rival is the smallest table.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean, median

import grebe
from bench._ageing import AgeingTable
from bench._session import bench_session
from bench.harness import Contestant, Report, Scale, samples, timed
from grebe.indexes.kind import Kind
from testbed import tpch
from testbed.ageing import numbered

SIZES = (1, 3, 10)
_MOST_GROWTH = 1.5
KINDS: dict[str, Kind] = {
    "covering": grebe.Covering("by_order", on="l_orderkey", include=["l_quantity", "l_extendedprice", "l_shipdate"]),
    "lookup": grebe.Lookup("by_part", on="l_partkey"),
    "skipping": grebe.Skipping("bounds", grebe.MinMax("l_shipdate"), grebe.Bloom("l_partkey")),
    "sieve": grebe.Sieve("by_date", on="l_shipdate"),
}
_ALL = "all four"


@dataclass(frozen=True)
class _Stage:
    lake: "grebe.Lake"
    folder: Path
    files: list[Path]
    unit: int
    """Files of the smallest table."""
    runs: int
    later: int
    """Files that are appended one after the other."""
    report: Report

    def tables(self, name: str, kinds: Sequence[Kind]) -> dict[int, AgeingTable]:
        """By size, indexed."""
        made = {}
        for size in SIZES:
            folder = self.folder / f"{name} {size}"
            made[size] = table = AgeingTable(self.lake, folder / "lineitem", folder / "indexes")
            table.hold(self.files[: self.unit * size])
            table.create(*kinds)
        return made

    def grown(self, table: AgeingTable, size: int, by: int) -> None:
        table.hold([*self.files[: self.unit * size], *self.files[self.unit * SIZES[-1] :][:by]])

    def told(self, case: str, seconds: dict[int, float], runs: int) -> None:
        first, last = SIZES[0], SIZES[-1]
        for size in SIZES[1:]:
            self.report.add(f"{case}, {size}x", "s", seconds[size], f"{first}x", seconds[first], runs)
        goal = f"goal: at most {_MOST_GROWTH:g}"
        self.report.add(f"{case}, growth", "ratio", seconds[last] / seconds[first], goal, _MOST_GROWTH, runs)


def _one_file(name: str, stage: _Stage) -> None:
    kinds = [KINDS[name]] if name in KINDS else list(KINDS.values())
    tables = stage.tables(name, kinds)
    for size, table in tables.items():
        stage.grown(table, size, 1)
    costs = samples({str(size): _refresh(table, len(kinds)) for size, table in tables.items()}, stage.runs)
    stage.told(f"{name}, one file", {size: median(costs[str(size)]) for size in SIZES}, stage.runs)


def _refresh(table: AgeingTable, indexes: int) -> Contestant:
    """Every round begins with the indexes as they were made."""
    young: list[grebe.LakeTable] = []

    def before() -> None:
        young[:] = [table.young()]

    return timed(lambda: _refreshed(young[0], indexes), before)


def _refreshed(table: "grebe.LakeTable", indexes: int) -> None:
    done = table.refresh()
    if len(done) < indexes or any(info.files_stale for info in done):
        raise AssertionError(f"a refresh left indexes behind: {done}")


def _stream(stage: _Stage) -> None:
    tables = stage.tables("stream", list(KINDS.values()))
    living = {size: table.young() for size, table in tables.items()}
    costs: dict[int, list[float]] = {size: [] for size in SIZES}
    for by in range(1, stage.later + 1):
        for size in SIZES if by % 2 else SIZES[::-1]:
            grow = partial(stage.grown, tables[size], size, by)
            costs[size].append(timed(partial(_refreshed, living[size], len(KINDS)), grow)())
    stage.told(f"{_ALL}, {stage.later} files in a row, mean", {size: fmean(costs[size]) for size in SIZES}, stage.later)
    stage.told(
        f"{_ALL}, {stage.later} files in a row, slowest", {size: max(costs[size]) for size in SIZES}, stage.later
    )


PARTS: dict[str, Callable[[_Stage], None]] = {
    **{name: partial(_one_file, name) for name in KINDS},
    "together": partial(_one_file, _ALL),
    "stream": _stream,
}


def run(scale: Scale, report: Report, parts: Sequence[str] = ()) -> None:
    factor, unit, later, runs = scale.pick((0.01, 10, 12, 3), (1, 100, 30, 7))
    files = numbered(tpch.generate(factor, parts=unit * SIZES[-1] + 30, tables=["lineitem"]) / "lineitem")
    with bench_session() as (spark, folder):
        stage = _Stage(grebe.attach(spark), folder, files, unit, runs, later, report)
        for name in parts or PARTS:
            PARTS[name](stage)
