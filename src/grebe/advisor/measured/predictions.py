"""Predicted beside measured, for people: of every index that was built, and of the queries that used one."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from grebe.advisor.workload.observed import Observed
from grebe.log.states import TableState
from grebe.shown import html, plots
from grebe.shown.records import Records

FIELDS = ("what", "of", "predicted", "measured", "ratio", "count")


@dataclass(frozen=True, slots=True)
class Compared:
    """`what`: `bytes` or `seconds` of an index that was built, `milliseconds` of queries alike, by their medians."""

    what: str
    of: str
    predicted: float
    measured: float
    count: int = 1

    @property
    def ratio(self) -> float | None:
        return self.measured / self.predicted if self.predicted > 0 else None

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "ratio": self.ratio}


class Predictions(Records[Compared]):
    """Predicted and measured; a notebook shows both as a picture."""

    def __init__(self, found: Iterable[Compared]) -> None:
        super().__init__(found, FIELDS, NOTHING)

    def picture(self) -> str:
        """SVG: predicted across, measured upwards, both by powers of ten; what lies on the line was right."""
        points = [plots.Point(one.predicted, one.measured, one.what, f"{one.what} of {one.of}") for one in self]
        return plots.against(points, "predicted", "measured")

    def _repr_html_(self) -> str:
        if not self:
            return html.block(html.paragraph(NOTHING))
        return html.block(self.picture(), html.table(FIELDS, [one.to_dict() for one in self]))


NOTHING = "Nothing was predicted yet: with record_workload=true every build is, and every query that uses an index."


def predictions_of(state: TableState | None, observed: Sequence[Observed]) -> Predictions:
    found = []
    for index in state.indexes.values() if state is not None else ():
        if (one := index.measured) is not None:
            found.append(Compared("bytes", index.name, float(one.predicted.bytes), float(one.bytes)))
            found.append(Compared("seconds", index.name, round(one.predicted.seconds, 3), round(one.seconds, 3)))
    alike: dict[str, list[Observed]] = {}
    for query in observed:
        if query.expected is not None:
            alike.setdefault(query.digest, []).append(query)
    for some in alike.values():
        expected = float(np.median([query.expected or 0.0 for query in some]))
        measured = float(np.median([query.milliseconds for query in some]))
        found.append(Compared("milliseconds", some[0].shape, round(expected, 3), round(measured, 3), len(some)))
    return Predictions(found)
