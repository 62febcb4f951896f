"""The fuzzers, in their short form: `make fuzz` is the long one."""

import pytest

from testbed.fuzz.run import run
from testbed.fuzz.targets import TARGETS, TOGETHER, UNSEALED


@pytest.mark.parametrize(("target", "cases"), [(TOGETHER, 300), *((one, 15) for one in UNSEALED)])
def test_mutated_bytes_crash_nothing_and_end_in_errors_of_ours(target: str, cases: int) -> None:
    summary = run(target, 1_000_000, cases)
    assert (summary.cases, summary.failures) == (cases, [])


@pytest.mark.soak
@pytest.mark.parametrize("target", TARGETS)
def test_many_mutated_bytes_crash_nothing(target: str) -> None:
    summary = run(target, 2_000_000, 2_000)
    assert (summary.cases, summary.failures) == (2_000, [])
