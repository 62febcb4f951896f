"""What may be said of a predicate for a whole unit of rows: a file, a row group, a page.

**Inputs.** An index knows something about the rows of each unit, such as their smallest and largest value. For one simple predicate
(a comparison, IN, LIKE, IS NULL, …) it gives one verdict a unit; `judge` carries these through AND, OR and NOT.

**Outputs.** Three verdicts, ordered:

    CANNOT_MATCH   no row of the unit makes the predicate true: it need not be read
    MUST_READ      nothing is known: it must be read
    ALL_MATCH      every row of the unit makes the predicate true: it need not be filtered

The names speak of rows that are *true*. A row may also be false or NULL, and neither matches, so CANNOT_MATCH covers both. That is
why the verdicts are not the three truth values of SQL, though they combine much alike:

    AND  the lesser verdict    one part that no row makes true settles it; all parts must hold in all rows
    OR   the greater verdict   one part that holds in all rows settles it; none may be true in any row
    NOT  ALL_MATCH becomes CANNOT_MATCH, but CANNOT_MATCH becomes MUST_READ: rows that are not true may be NULL, and so is
         their NOT

So a NOT loses knowledge. `normalise` therefore pushes NOT down into the simple predicates, where an index can answer `a >= 5` or
`a IS NOT NULL` itself, and leaves it only where there is no opposite, as in NOT LIKE.

**Worked example.** Three files hold a column `a` with these ranges and NULLs, and the question is `NOT (a < 10 OR a IS NULL)`,
normalised to `a >= 10 AND a IS NOT NULL`:

    file   a           NULLs   a >= 10        a IS NOT NULL   AND
    1      1 to 5      none    CANNOT_MATCH   ALL_MATCH       CANNOT_MATCH   skipped
    2      7 to 20     some    MUST_READ      MUST_READ       MUST_READ      read and filtered
    3      10 to 30    none    ALL_MATCH      ALL_MATCH       ALL_MATCH      read whole

In file 2 `a >= 10` may not be called ALL_MATCH even if its range were 10 to 20: its NULL rows make the comparison NULL.

**What is not exact.** A leaf knows columns, not functions of them. Where it cannot tell, the predicate may still have a weaker form
about the bare column (`weaker`), true wherever the predicate is: if no row makes that true, none makes the predicate true. That and
no more is taken from it: it can rule a unit out, and never say that all of its rows match.

Verdicts of many units are numpy arrays of small integers, so that a table of a million files is judged in a few passes.
"""

from collections.abc import Callable
from enum import IntEnum
from typing import TypeAlias

import numpy as np

from grebe.predicate.tree import And, Constant, Not, Or, Predicate
from grebe.predicate.weaker import weaker


class Verdict(IntEnum):
    CANNOT_MATCH = 0
    MUST_READ = 1
    ALL_MATCH = 2


Verdicts: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int8]]
Leaf: TypeAlias = Callable[[Predicate], Verdicts | None]

_NOT = np.array([Verdict.MUST_READ, Verdict.MUST_READ, Verdict.CANNOT_MATCH], np.int8)


def same(verdict: Verdict, units: int) -> Verdicts:
    """One verdict for every unit."""
    return np.full(units, verdict, np.int8)


def both(one: Verdicts, other: Verdicts) -> Verdicts:
    """AND, and also what two indexes say of the same predicate when each may only rule out."""
    return np.minimum(one, other)


def either(one: Verdicts, other: Verdicts) -> Verdicts:
    """OR."""
    return np.maximum(one, other)


def opposite(verdicts: Verdicts) -> Verdicts:
    """NOT."""
    return _NOT[verdicts]


def must_read(verdicts: Verdicts) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which units have to be read."""
    return np.not_equal(verdicts, Verdict.CANNOT_MATCH)


def judge(predicate: Predicate, units: int, leaf: Leaf) -> Verdicts:
    """The verdicts of a whole predicate from those of its simple parts. A leaf that cannot tell returns None."""
    match predicate:
        case Constant(value):
            return same(Verdict.ALL_MATCH if value else Verdict.CANNOT_MATCH, units)
        case And(below):
            whole = same(Verdict.ALL_MATCH, units)
            for part in below:
                whole = both(whole, judge(part, units, leaf))
                if not whole.any():  # no unit is left; what the other parts say cannot matter
                    break
            return whole
        case Or(below):
            whole = same(Verdict.CANNOT_MATCH, units)
            for part in below:
                whole = either(whole, judge(part, units, leaf))
            return whole
    answer = leaf(predicate)
    if answer is not None:
        return answer
    if isinstance(predicate, Not):
        return opposite(judge(predicate.predicate, units, leaf))
    unsure = same(Verdict.MUST_READ, units)
    implied = weaker(predicate)
    return unsure if implied is None else both(unsure, judge(implied, units, leaf))
