"""What a refresh takes in each mode, by how much of the table has changed. The rival is the full refresh of the same state."""

from statistics import median

import grebe
from bench._ageing import AgeingTable
from bench._stage import Stage
from bench.harness import Contestant, samples, timed
from bench.hybrid.states import INDEXED, KINDS, State, line_items, states

MODES = ("quick", "incremental", "full")
_ONE_PERCENT = State(1, 0)
_SHARE_OF_FULL, _SECONDS_MORE = 0.05, 2.0
"""What an incremental refresh of one percent may take."""


def refreshes(stage: Stage) -> None:
    runs, files, report = stage.scale.pick(2, 3), line_items(stage.scale), stage.report
    table = AgeingTable(stage.lake, stage.folder / "refreshed", stage.folder / "indexes" / "refreshed")
    table.hold(files[:INDEXED])
    table.create(*KINDS)
    for state in (state for state in states() if state.changed):
        table.hold(state.files(files))
        costs = samples({mode: _refresh(table, mode) for mode in MODES}, runs, warm_up=int(state == _ONE_PERCENT))
        seconds = {mode: median(costs[mode]) for mode in MODES}
        for mode in ("quick", "incremental"):
            report.add(f"{mode} refresh, {state}", "s", seconds[mode], "full refresh", seconds["full"], runs)
        if state == _ONE_PERCENT:
            allowed = _SHARE_OF_FULL * seconds["full"] + _SECONDS_MORE
            goal = f"goal: {_SHARE_OF_FULL:.0%} of a full refresh and {_SECONDS_MORE:g} s"
            report.add("incremental refresh of 1%", "s", seconds["incremental"], goal, allowed, runs)


def _refresh(table: AgeingTable, mode: str) -> Contestant:
    young: list[grebe.LakeTable] = []

    def before() -> None:
        young[:] = [table.young()]

    def refresh() -> None:
        done = young[0].refresh(mode=mode)
        require_fresh(done, mode)

    return timed(refresh, before)


def require_fresh(done: "list[grebe.IndexInfo]", mode: str) -> None:
    """No file is left out, nor is one that is gone; a quick refresh leaves out what is new."""
    if len(done) < len(KINDS) or (mode != "quick" and any(info.files_stale for info in done)):
        raise AssertionError(f"a refresh in mode {mode} left indexes behind: {done}")
