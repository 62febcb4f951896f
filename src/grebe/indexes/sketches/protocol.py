"""What a sketch is: something small that is made of the rows of each file, and judges all files at once.

*Made*: `state` of some rows of a file, `joined` of several states, `row` of all of them: that is stored, one row a file. These run
in Spark's tasks, on Arrow arrays. *Asked*: `judge` of what is stored of all files, which then gives one verdict a file for each
simple predicate. Nothing is claimed that a row unknown to the sketch could belie.

Arrays are in the physical form of the column's type (`predicate.arrow_types`): dates are days, timestamps microseconds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import pyarrow as pa

from grebe.formats.parquet_statistics import Statistics
from grebe.predicate.tree import Path, Predicate
from grebe.predicate.types import Type
from grebe.predicate.verdicts import Verdicts


@dataclass(frozen=True, slots=True)
class On:
    """A column that a sketch is made of."""

    path: Path
    type: Type


class Judge(Protocol):
    @property
    def nbytes(self) -> int:
        """What it takes to keep."""
        ...

    def verdicts(self, predicate: Predicate) -> Verdicts | None:
        """What is known of a simple predicate, or of an AND of such about one column (a range), one verdict a file; None if
        nothing is."""
        ...


class Made(Protocol):
    """What is made of the rows of each file, whether or not it is stored and asked."""

    sketch: ClassVar[str]
    """`min_max`: its name in the log, in SQL and on the command line."""

    @property
    def columns(self) -> tuple[str, ...]:
        """As the user named them."""
        ...

    def refusal(self, on: Sequence[On]) -> str | None:
        """Why it cannot be made of columns of these types."""
        ...

    def fields(self, on: Sequence[On]) -> Mapping[str, str]:
        """What is stored of a file: names, and types as Spark writes them. Each may be NULL: unknown."""
        ...

    def state(self, on: Sequence[On], values: Sequence[pa.Array]) -> Any:
        """Of some rows of a file. It may be sent to another process."""
        ...

    def joined(self, states: Sequence[Any]) -> Any: ...

    def row(self, on: Sequence[On], state: Any) -> Mapping[str, Any]:
        """What is stored, as Python's values, by the names of `fields`."""
        ...


class Sketch(Made, Protocol):
    """A frozen dataclass that users make: `grebe.MinMax("a")`. Its fields other than `columns` are options, plain data."""

    def judge(self, on: Sequence[On], stored: Mapping[str, pa.Array]) -> Judge:
        """Of all files at once."""
        ...

    def helps(self, on: Sequence[On], predicate: Predicate) -> bool:
        """Whether it can tell anything of this predicate, as `Judge.verdicts` is given it."""
        ...


@runtime_checkable
class FromStatistics(Protocol):
    """A sketch that the footer of a file can tell, so that its rows need not be read."""

    def told(self, on: Sequence[On], known: Statistics, rows: int) -> Any:
        """The state of a whole file with so many rows."""
        ...


class OfOneColumn:
    """What sketches of a single column, of any type, have in common."""

    __slots__ = ()

    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def refusal(self, on: Sequence[On]) -> str | None:
        return None
