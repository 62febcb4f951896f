"""The place of a value among those of its column, as a coordinate of the curve: skew, types and units do not matter then.

A sample of the column, in Spark's own order, is cut at even steps: the values there are *separators*, and where one occurs several
times its stretch is as much wider. A value's coordinate is the middle of the stretch that it falls into. NULL comes before all
values. In Spark a coordinate is found by halving: comparisons with constants, so that its order is Spark's, whatever the type. One
expression of all comparisons would be more code than Java's compiler takes on.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from grebe.indexes.classic import functions
from grebe.indexes.columns import Chosen
from grebe.indexes.content.by_range import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LONGEST_TEXT = 64
"""Characters of a separator: any value will do, if it only separates."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Values from this one (SQL; None: NULL, and whatever is less than all separators) up to the next have this coordinate."""

    start: str | None
    cell: int


@dataclass(frozen=True, slots=True)
class Ranks:
    column: Chosen
    stretches: tuple[Stretch, ...]
    nulls: int
    """The coordinate of NULL."""

    @property
    def tell(self) -> bool:
        """Whether they tell any two rows apart."""
        return len({self.nulls, *(one.cell for one in self.stretches)}) > 1

    @property
    def steps(self) -> int:
        """How often the stretches are halved until one is left."""
        return (len(self.stretches) - 1).bit_length()

    def halved(self, place: str, step: int) -> str:
        """The number of the stretch of a row's value, to one more bit; `place` is what the steps before have found."""
        bit = 1 << self.steps - 1 - step
        # Beyond the last there is NULL, which no value is above.
        starts = [one.start or "NULL" for one in self.stretches] + ["NULL"] * ((1 << self.steps) - len(self.stretches))
        beyond = f"{quoted(self.column.content)} >= element_at(array({', '.join(starts)}), {place} + {bit + 1})"
        return f"IF({beyond}, {place} + {bit}, {place})"

    def code(self, place: str, code: Callable[[int], int]) -> str:
        """The code of the coordinate of a row whose value is in the stretch at this place."""
        codes = ", ".join(f"{code(one.cell)}L" for one in self.stretches)
        return (
            f"IF({quoted(self.column.content)} IS NULL, {code(self.nulls)}L, element_at(array({codes}), {place} + 1))"
        )


def ranks_of(column: Chosen, steps: Sequence[str | None], cells: int) -> Ranks:
    """`steps`: a sample of the column at even steps, in its order, as `stepped` gives it."""
    stretches, nulls, place = [], 0, 0
    for text, group in groupby(steps):
        wide = len(list(group))
        cell = (2 * place + wide) * cells // (2 * len(steps))
        if text is None:
            nulls = cell
        else:
            stretches.append(Stretch(_value_sql(text, column.type), cell))
        place += wide
    return Ranks(column, tuple(stretches) or (Stretch(None, nulls),), nulls)


def stepped(sample: "DataFrame", columns: Sequence[Chosen], steps: int) -> list[list[str | None]]:
    """Of each column: its values at so many even steps through the sample, NULL first, as text."""
    ordered = [f"sort_array(collect_list({quoted(column.content)})) AS v{n}" for n, column in enumerate(columns)]
    once = sample.agg(functions.expr("count(1) AS n"), *map(functions.expr, ordered))
    (found,) = once.select(
        *(functions.expr(_steps_sql(f"v{n}", c.type, steps)) for n, c in enumerate(columns))
    ).collect()
    return [list(texts) for texts in found]


def _steps_sql(ordered: str, kind: str, steps: int) -> str:
    """A place before the first value is one of the NULLs."""
    place = f"CAST(floor(i * n / {steps}) - (n - size({ordered})) AS INT)"
    return f"transform(sequence(0L, {steps - 1}L), i -> {_text_sql(f'get({ordered}, {place})', kind)})"


def _text_sql(value: str, kind: str) -> str:
    """A value as text that gives the very same value again, whatever the session's time zone. Long ones are cut."""
    if kind in ("string", "binary"):
        return f"hex(CAST(substr({value}, 1, {_LONGEST_TEXT}) AS BINARY))"
    return f"CAST({f'unix_micros({value})' if kind == 'timestamp' else value} AS STRING)"


def _value_sql(text: str, kind: str) -> str:
    if kind in ("string", "binary"):
        return f"CAST(X'{text}' AS {kind})"
    if kind == "timestamp":
        return f"timestamp_micros({text}L)"
    return f"CAST('{text}' AS {_DDL.get(kind, kind)})"


# Where Spark's JSON and its SQL name a type differently.
_DDL = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
