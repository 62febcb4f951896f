"""Runs fuzzers in child processes with limits, and counts what came out.

    python -m testbed.fuzz.run --cases 1000 [--target sieve] [--seed 0]

A case is a seed: the same number gives the same bytes. A child that dies, or that does not end a case in time, is replaced, and
goes on behind the case that it died of.
"""

import argparse
import json
import logging
import os
import resource
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from grebe.errors import GrebeError

MOST_BYTES = 512 * 1024 * 1024
"""Address space that a case may take beyond what the process had before."""
MOST_SECONDS = 2.0
"""For one case, of the processor or by the clock, whichever is more: what a case waits for counts, too."""
_ATTEMPTS = 3
"""A case is slow if it is slow so many times: what else the machine does must not count."""
_STALLED_SECONDS = 60.0
_ENVIRONMENT = {
    "MALLOC_ARENA_MAX": "2",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
OK, REFUSED = "ok", "refused"
FAILURES = ("crash", "stalled", "slow", "memory", "foreign", "wrong")


@dataclass
class Summary:
    """How many cases of a target ended how, and the first of each way to fail."""

    target: str
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[dict[str, Any]] = field(default_factory=list)

    @property
    def cases(self) -> int:
        return sum(self.counts.values())

    @property
    def sound(self) -> bool:
        return not any(self.counts[one] for one in FAILURES)

    def __str__(self) -> str:
        counted = ", ".join(f"{self.counts[one]} {one}" for one in (OK, REFUSED, *FAILURES) if self.counts[one])
        return f"{self.target:<18} {self.cases:>7} cases: {counted}"


def run(target: str, start: int, cases: int) -> Summary:
    """Run the cases from `start` on in child processes."""
    summary = Summary(target)
    stop = start + cases
    while start < stop:
        with tempfile.TemporaryDirectory() as scratch:
            start = _run_child(summary, target, start, stop, Path(scratch))
    return summary


def _run_child(summary: Summary, target: str, start: int, stop: int, scratch: Path) -> int:
    """The case to go on with."""
    reached, results = scratch / "reached", scratch / "results"
    command = [sys.executable, "-m", "testbed.fuzz.run", "--child", target, str(start), str(stop), str(scratch)]
    child = subprocess.Popen(
        command, env={**os.environ, **_ENVIRONMENT}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    last, moved, stalled = "", time.monotonic(), False
    while True:
        try:
            child.wait(0.2)
            break
        except subprocess.TimeoutExpired:
            now = reached.read_text() if reached.exists() else ""
            if now != last:
                last, moved = now, time.monotonic()
            elif time.monotonic() - moved > _STALLED_SECONDS:
                child.kill()
                child.wait()
                stalled = True
                break
    said = child.stderr.read() if child.stderr else b""
    for line in results.read_text().splitlines() if results.exists() else ():
        summary.failures.append(json.loads(line))
    if (scratch / "ended").exists():
        ways = {one[:1]: one for one in (OK, REFUSED, "slow", "memory", "foreign", "wrong")}
        summary.counts.update(ways[one] for one in (scratch / "ended").read_text())
    if child.returncode == 0:
        return stop
    if not reached.exists():
        raise RuntimeError(f"the fuzzer of {target} did not start: {said.decode(errors='replace')[-2000:]}")
    case = int(reached.read_text().split()[0])
    how = "stalled" if stalled else "crash"
    summary.counts[how] += 1
    summary.failures.append(
        {
            "case": case,
            "how": how,
            "what": f"exit code {child.returncode}",
            "said": said.decode(errors="replace")[-500:],
        }
    )
    return case + 1


def child(target: str, start: int, stop: int, scratch: Path) -> None:
    from testbed.fuzz.targets import opened

    logging.getLogger("grebe").setLevel(logging.CRITICAL)
    tried = opened(target, scratch)
    tried.warm()
    # A field of the address space that is only reserved counts, too: that is the strict way to count.
    most = _address_space() + MOST_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    reached = os.open(scratch / "reached", os.O_CREAT | os.O_RDWR)
    ended = os.open(scratch / "ended", os.O_CREAT | os.O_WRONLY)
    with (scratch / "results").open("w", buffering=1) as results:
        for case in range(start, stop):
            how, what = outcome(tried, case, partial(_mark, reached, case))
            if how not in (OK, REFUSED):
                results.write(json.dumps({"case": case, "how": how, "what": what}) + "\n")
            os.write(ended, how[:1].encode())


def _mark(reached: int, case: int, number: int) -> None:
    """Say in the file `reached` that this attempt at a case begins."""
    os.pwrite(reached, b"%020d %d" % (case, number), 0)


def outcome(tried: Any, case: int, begin: Callable[[int], object]) -> tuple[str, str]:
    """How one case ends, after several attempts if it is slow; `begin` is called before each."""
    seconds = list[float]()
    for number in range(_ATTEMPTS):
        begin(number)
        processor, clock = time.process_time(), time.monotonic()
        how, what = attempt(tried, case)
        seconds.append(max(time.process_time() - processor, time.monotonic() - clock))
        if seconds[-1] <= MOST_SECONDS or how not in (OK, REFUSED):
            return how, what
    return "slow", ", ".join(f"{one:.1f} s" for one in seconds)


def attempt(tried: Any, case: int) -> tuple[str, str]:
    """How one case ends."""
    try:
        wrong = tried.consume(tried.case(case))
    except GrebeError as refusal:
        lacking = _out_of_memory(refusal)
        return ("memory", lacking) if lacking else (REFUSED, "")
    except MemoryError as problem:
        return "memory", _said(problem)
    except Exception as problem:  # noqa: BLE001 - any that is none of ours is what is looked for
        return ("memory" if _out_of_memory(problem) else "foreign"), _said(problem)
    return ("wrong", str(wrong)) if wrong else (OK, "")


def _out_of_memory(problem: BaseException | None) -> str:
    """An error of ours may stand for one of memory, which only the limit of this process has made."""
    while problem is not None:
        if isinstance(problem, MemoryError) or ("alloc" in str(problem) and "failed" in str(problem)):
            return _said(problem)
        problem = problem.__cause__ or problem.__context__
    return ""


def _said(problem: BaseException) -> str:
    frames = [
        f"{Path(one.filename).name}:{one.lineno}"
        for one in traceback.extract_tb(problem.__traceback__)
        if "grebe" in one.filename
    ]
    return f"{type(problem).__name__}: {str(problem)[:200]} at {' > '.join(frames[-4:])}"


def _address_space() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def main(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["--child"]:
        _, target, start, stop, scratch = arguments
        child(target, int(start), int(stop), Path(scratch))
        return 0
    from testbed.fuzz.targets import TARGETS, TOGETHER

    parser = argparse.ArgumentParser(prog="python -m testbed.fuzz.run", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000, help="of each target")
    parser.add_argument("--target", action="append", choices=[*TARGETS, TOGETHER], help="all, if none is named")
    parser.add_argument("--seed", type=int, default=0, help="the first case")
    parser.add_argument("--all", action="store_true", help="show every failure, not one of a kind")
    asked = parser.parse_args(arguments)
    sound = True
    for name in asked.target or TARGETS:
        summary = run(name, asked.seed, asked.cases)
        sound = sound and summary.sound
        sys.stdout.write(f"{summary}\n")
        for one in summary.failures if asked.all else _first_of_each(summary.failures):
            sys.stdout.write(f"    case {one['case']}: {one['how']}: {one['what']} {one.get('said', '')}\n")
        sys.stdout.flush()
    return 0 if sound else 1


def _first_of_each(failures: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    seen: Counter[tuple[str, str]] = Counter()
    for one in failures:
        kind = one["how"], one["what"].rpartition(" at ")[2]
        seen[kind] += 1
        if seen[kind] == 1:
            yield one


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
