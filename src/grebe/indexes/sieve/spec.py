"""What users ask for: `grebe.Sieve("by_time", on="ts", budget=0.01)`."""

from dataclasses import dataclass
from typing import ClassVar

from grebe.errors import CorruptIndex, InvalidIndex
from grebe.formats import Reading
from grebe.indexes import columns
from grebe.indexes.kind import Kind
from grebe.indexes.sketches.min_max import MinMax
from grebe.indexes.summary.kinds import Summary
from grebe.indexes.summary.shape import properties_of
from grebe.log.entry import IndexSpec


@dataclass(frozen=True)
class Sieve(Summary):
    """Which files hold which keys of the column `on`, learned from how they lie: `budget` bytes for each byte of the column."""

    kind: ClassVar[str] = "sieve"

    name: str
    on: str
    budget: float = 0.01

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidIndex("an index needs a name: Sieve(name, on=…)", detail="NAME")
        named = columns.names_of(self.on, "on", self.name)
        if len(named) != 1:
            raise InvalidIndex(f"index {self.name}: a sieve has one column, not {len(named)}", detail="COLUMNS")
        object.__setattr__(self, "on", named[0])
        columns.path_of(self.on, self.name)
        try:
            object.__setattr__(self, "budget", float(self.budget))
        except (TypeError, ValueError):
            raise InvalidIndex(f"index {self.name}: budget is a number, not {self.budget!r}", detail="BUDGET") from None
        if not 0 < self.budget <= 1:
            raise InvalidIndex(
                f"index {self.name}: budget is a share of the column's bytes, above 0 and at most 1, not {self.budget!r}",
                detail="BUDGET",
            )

    def spec(self, reading: Reading, case_sensitive: bool, time_zone: str = "UTC", ansi: bool = True) -> IndexSpec:
        names, properties = properties_of(
            [MinMax(self.on)], [(self.on, self.budget)], reading, case_sensitive, self.name
        )
        return IndexSpec(self.kind, names, properties)

    @classmethod
    def from_spec(cls, name: str, spec: IndexSpec) -> Kind:
        try:
            (sieve,) = spec.properties["sieves"]
            return cls(name, sieve["column"], sieve["budget"])
        except (KeyError, ValueError) as lacking:
            raise CorruptIndex(f"the log does not say what index {name} is; create it anew", detail="SPEC") from lacking
