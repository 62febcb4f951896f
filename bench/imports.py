"""How long does `import grebe` take, next to the import of other lake libraries? Each in a new interpreter.

`import grebe` alone loads little by design, so the second case imports all that opening and changing a log takes.
"""

import subprocess
import sys

from bench.harness import Contestant, Report, Scale, medians

CASES = {"import grebe": "grebe", "import what a commit needs": "grebe.log.registration, grebe.store.opening"}
RIVALS = ("pyiceberg.table", "deltalake", "pyspark.sql")


def _import(modules: str) -> Contestant:
    """Timed by the new interpreter itself, so that its own start-up does not count."""
    program = f"import time; start = time.perf_counter(); import {modules}; print(time.perf_counter() - start)"

    def contestant() -> float:
        run = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
        return float(run.stdout)

    return contestant


def run(scale: Scale, report: Report) -> None:
    runs = scale.pick(5, 31)
    cost = medians({modules: _import(modules) for modules in (*CASES.values(), *RIVALS)}, runs)
    for case, ours in CASES.items():
        for rival in RIVALS:
            report.add(case, "s", cost[ours], rival, cost[rival], runs)
