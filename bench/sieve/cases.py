"""The parts of the benchmark, in the order in which they run."""

from collections.abc import Callable, Sequence

from bench._stage import Stage, stage
from bench.harness import Report, Scale
from bench.sieve.build import build, heap
from bench.sieve.distributions import distributions
from bench.sieve.probing import probing
from bench.sieve.queries import queries

PARTS: dict[str, Callable[[Stage], None]] = {
    part.__name__: part for part in (distributions, build, heap, probing, queries)
}
_ONLY_LARGE = {heap.__name__}
"""At small scale these tell nothing, and run only if they are asked for."""


def run(scale: Scale, report: Report, parts: Sequence[str] = ()) -> None:
    some = [name for name in PARTS if name not in scale.pick(_ONLY_LARGE, set())]
    with stage(scale, report) as shared:
        for name in parts or some:
            PARTS[name](shared)
