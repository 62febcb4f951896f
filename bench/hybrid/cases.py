"""The parts of the benchmark, in the order in which they run."""

from collections.abc import Callable, Sequence

from bench._stage import Stage, stage
from bench.harness import Report, Scale
from bench.hybrid.queries import queries
from bench.hybrid.refreshes import refreshes
from bench.hybrid.workload import workload

PARTS: dict[str, Callable[[Stage], None]] = {part.__name__: part for part in (refreshes, queries, workload)}


def run(scale: Scale, report: Report, parts: Sequence[str] = ()) -> None:
    with stage(scale, report) as shared:
        for name in parts or PARTS:
            PARTS[name](shared)
