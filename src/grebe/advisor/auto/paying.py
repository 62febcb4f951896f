"""What an index has saved, by the queries that used it: measured against queries alike that used none, or, where there are none,
by what the planner reckons that they would have taken."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from grebe.advisor.workload.observed import Observed
from grebe.log.states import IndexState

_ENOUGH = 50
"""Of fewer queries since it was built nothing is concluded; and of so many of the last ones at least one must have used it."""
_ALIKE = 3
_MOST_TIMES = 1000.0
_SECOND = 1000.0


@dataclass(frozen=True, slots=True)
class Paid:
    """Of an index, since it was built."""

    queries: int
    """On the table."""
    used: int
    used_lately: int
    saved_seconds: float
    upkeep_seconds: float

    @property
    def complaint(self) -> str | None:
        """Why it does not pay; None: it does, or that cannot be told yet."""
        if self.queries < _ENOUGH:
            return None
        if not self.used_lately:
            return f"none of the last {_ENOUGH} queries used it"
        if self.saved_seconds < self.upkeep_seconds:
            return f"queries saved {self.saved_seconds:,.1f} s by it, its upkeep took {self.upkeep_seconds:,.1f} s"
        return None


def paid_by(index: IndexState, observed: Sequence[Observed]) -> Paid:
    """`observed`: the queries on the table, oldest first."""
    since = [one for one in observed if one.at_ms >= index.created_ms]
    plain = plain_milliseconds(observed)
    users = [one for one in since if index.name in one.indexes]
    saved = sum((_without(one, plain) - one.milliseconds) / len(one.indexes) for one in users)
    lately = sum(index.name in one.indexes for one in since[-_ENOUGH:])
    return Paid(len(since), len(users), lately, saved / _SECOND, index.upkeep_seconds)


def plain_milliseconds(observed: Sequence[Observed]) -> dict[str, float]:
    """What queries of a shape take without any index, where enough of them were asked so."""
    taken: dict[str, list[float]] = defaultdict(list)
    for one in observed:
        if not one.indexes:
            taken[one.digest].append(one.milliseconds)
    return {digest: float(np.median(some)) for digest, some in taken.items() if len(some) >= _ALIKE}


def _without(one: Observed, plain: Mapping[str, float]) -> float:
    if one.digest in plain:
        return plain[one.digest]
    if one.expected is not None and one.expected_without is not None and one.expected > 0:
        return one.milliseconds * min(_MOST_TIMES, one.expected_without / one.expected)
    read = sum(scan.bytes or 0 for scan in one.scans)
    whole = sum(scan.bytes_of or 0 for scan in one.scans)
    return one.milliseconds * min(_MOST_TIMES, whole / read) if read else one.milliseconds
