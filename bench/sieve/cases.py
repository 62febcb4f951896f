"""The parts of the benchmark, in the order in which they run."""

from collections.abc import Callable, Sequence

from bench.harness import Report, Scale
from bench.sieve.build import build
from bench.sieve.distributions import distributions
from bench.sieve.probing import probing
from bench.sieve.queries import queries
from bench.sieve.stage import Stage, stage

PARTS: dict[str, Callable[[Stage], None]] = {part.__name__: part for part in (distributions, build, probing, queries)}


def run(scale: Scale, report: Report, parts: Sequence[str] = ()) -> None:
    with stage(scale, report) as shared:
        for name in parts or PARTS:
            PARTS[name](shared)
