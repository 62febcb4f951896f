"""The parts of the benchmark, in the order in which they run."""

from collections.abc import Callable, Sequence

from bench.harness import Report, Scale
from bench.needle.build import build, size
from bench.needle.crowd import memory, processes, threads
from bench.needle.in_spark import flat, join, needle
from bench.needle.requests import requests
from bench.needle.stage import Stage, stage
from bench.needle.sweep import sweep, sweep_in_spark
from bench.needle.warm import key_value, lance, rottnest, scans

PARTS: dict[str, Callable[[Stage], None]] = {
    part.__name__: part
    for part in (
        *(lance, rottnest, key_value, scans),
        *(size, build),
        *(requests, threads),
        *(sweep, sweep_in_spark, needle, join, flat),
        *(processes, memory),
    )
}


def run(scale: Scale, report: Report, parts: Sequence[str] = ()) -> None:
    with stage(scale, report) as shared:
        for name in parts or PARTS:
            PARTS[name](shared)
            shared.rivals.close()
