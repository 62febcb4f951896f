"""How long does `import grebe` take, next to the import of other lake libraries?

Each in a new interpreter, whose own start-up is taken off.
"""

import subprocess
import sys
import time

from bench.harness import Contestant, Report, Scale, medians

RIVALS = ("pyiceberg.table", "deltalake", "pyspark.sql")


def _start(statement: str) -> Contestant:
    def contestant() -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", statement], check=True)
        return time.perf_counter() - start

    return contestant


def run(scale: Scale, report: Report) -> None:
    runs = scale.pick(7, 31)
    nothing, ours = "pass", "grebe"
    contestants = {nothing: _start(nothing)} | {name: _start(f"import {name}") for name in (ours, *RIVALS)}
    cost = medians(contestants, runs)
    for rival in RIVALS:
        report.add("import", "s", cost[ours] - cost[nothing], rival, cost[rival] - cost[nothing], runs)
