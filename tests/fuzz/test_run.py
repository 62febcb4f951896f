"""What the fuzzers call slow: by the clock, whatever waits, and each time."""

import time

import pytest

from testbed.fuzz import run


class Sleeper:
    """A target that waits without using the processor."""

    def __init__(self, *seconds: float) -> None:
        self._seconds = iter(seconds)

    def case(self, number: int) -> bytes:
        return b""

    def consume(self, data: bytes) -> None:
        time.sleep(next(self._seconds))


@pytest.fixture(autouse=True)
def _limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "MOST_SECONDS", 0.2)


def test_a_case_that_waits_too_long_each_time_is_slow() -> None:
    begun: list[int] = []
    how, what = run.outcome(Sleeper(0.3, 0.4, 0.3), 7, begun.append)
    assert (how, begun) == ("slow", [0, 1, 2])
    assert what.count(" s") == 3


def test_a_case_that_is_fast_in_one_of_three_attempts_is_not_slow() -> None:
    begun: list[int] = []
    assert run.outcome(Sleeper(0.3, 0.3, 0), 7, begun.append) == (run.OK, "")
    assert run.outcome(Sleeper(0), 8, begun.append) == (run.OK, "")
    assert begun == [0, 1, 2, 0]


def test_a_failure_is_not_tried_again() -> None:
    begun: list[int] = []
    how, what = run.outcome(Sleeper(), 7, begun.append)  # it has no seconds left
    assert (how, begun) == ("foreign", [0])
    assert what.startswith("StopIteration")
