"""What measured builds and queries teach: by how much predictions were off, so that the next ones are not."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from grebe.advisor.workload.observed import Observed
from grebe.log.entry import Measured, Prediction
from grebe.log.states import TableState

_FURTHEST = 8.0
"""What is off by more is a fault of something else, and is not learned from beyond this."""
_DOUBT = 1.0
"""So many builds weigh as much as what was believed before."""
_QUERIES = 5


@dataclass(frozen=True, slots=True)
class Scales:
    """Factors on predictions: of bytes and of seconds to build by kind, and of what queries take."""

    bytes: Mapping[str, float] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)

    def predicted(self, kind: str, bytes: int, seconds: float) -> Prediction:
        """What the model says, as it is to be believed."""
        by, slower = self.bytes.get(kind, 1.0), self.seconds.get(kind, 1.0)
        return Prediction(round(bytes * by), seconds * slower, by, slower)


NEUTRAL = Scales()


def scales_of(state: TableState) -> Scales:
    """By the indexes that are there and whose building was predicted."""
    by_kind: dict[str, list[Measured]] = {}
    for index in state.indexes.values():
        if index.measured is not None:
            by_kind.setdefault(index.spec.kind, []).append(index.measured)
    return Scales(
        {
            kind: _factor((one.bytes, one.predicted.bytes / one.predicted.scale_bytes) for one in some)
            for kind, some in by_kind.items()
        },
        {
            kind: _factor((one.seconds, one.predicted.seconds / one.predicted.scale_seconds) for one in some)
            for kind, some in by_kind.items()
        },
    )


def _factor(pairs: Iterable[tuple[float, float]]) -> float:
    """Of measured to predicted: the geometric mean, which few builds move only part of the way."""
    logs = [_log_ratio(measured, model) for measured, model in pairs if measured > 0 and model > 0]
    return math.exp(sum(logs) / (len(logs) + _DOUBT)) if logs else 1.0


def _log_ratio(measured: float, model: float) -> float:
    bound = math.log(_FURTHEST)
    return min(bound, max(-bound, math.log(measured / model)))


def pace_of(observed: Iterable[Observed]) -> float:
    """How much longer queries take than the planner reckons with, by those that used an index."""
    logs = [
        _log_ratio(one.milliseconds, one.expected)
        for one in observed
        if one.expected is not None and one.expected > 0 and one.milliseconds > 0
    ]
    return math.exp(float(np.median(logs))) if len(logs) >= _QUERIES else 1.0
