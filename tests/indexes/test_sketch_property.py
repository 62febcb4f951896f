"""No sketch rules a file out that has a matching row, and none says that all rows match where one does not.

A failing seed is in the name of its test, and makes the same table and the same predicates again.
"""

import random
from collections import Counter

import numpy as np
import numpy.typing as npt
import pytest

from grebe.indexes.sketches.bloom import Bloom
from grebe.indexes.sketches.intervals import Intervals
from grebe.indexes.sketches.min_max import MinMax, NullCount
from grebe.indexes.sketches.ngram import Ngram
from grebe.indexes.sketches.protocol import Sketch
from grebe.indexes.sketches.value_list import ValueList
from grebe.indexes.summary.probe import SummaryIndex
from grebe.indexes.summary.shape import shape_of
from grebe.predicate.verdicts import Verdict
from tests.indexes.sketch_cases import FIELDS, Files, files_of
from tests.indexes.sketch_questions import Question, question
from tests.indexes.summary_lake import (
    Plan,
    chosen,
    folded,
    pieces,
    plan_of,
    reader,
    spec_of,
    stored,
    summaries,
    verdicts,
)

FILES = QUESTIONS = 160
SEEDS = range(4)
SOAK_SEEDS = range(1_000, 1_040)
HUGE_EVERY = 4
PAIRS = -2
INDEXES = ("min_max", "null_count", "intervals", "value_list", "bloom", "ngram", "sieve", "everything")
TEXTS = ["s", "t", "bin", "st.in.s"]


def test_the_suite_asks_of_a_hundred_thousand_pairs_and_the_soak_of_a_million() -> None:
    assert len(SEEDS) * FILES * QUESTIONS >= 100_000
    assert len(SOAK_SEEDS) * FILES * QUESTIONS >= 1_000_000


def sketches(chance: random.Random) -> dict[str, list[Sketch]]:
    """Every sketch of every column that it takes."""
    names = [field.name for field in FIELDS]
    return {
        "min_max": [MinMax(name) for name in names],
        "null_count": [NullCount(name) for name in names],
        "intervals": [Intervals(name, chance.choice([1, 2, 5, 16])) for name in names],
        "value_list": [ValueList(name, chance.choice([1, 3, 256])) for name in names],
        "bloom": [Bloom(name, chance.choice([1, 10, 64])) for name in names],
        "ngram": [
            *(Ngram(name, size=chance.choice([2, 3, 4, 8])) for name in TEXTS),
            Ngram(*TEXTS, size=chance.choice([2, 3])),
        ],
    }


def built(chance: random.Random, files: Files, plan: Plan) -> dict[str, SummaryIndex]:
    """An index of each sketch alone, one of sieves alone, and one of everything."""
    schema = files.whole.schema
    alone = sketches(chance)
    together = [one for several in alone.values() for one in several]
    sieves = [(field.name, chance.choice([1e-9, 0.01, 0.3, 1.0])) for field in FIELDS]
    whole = spec_of(schema, together, sieves)
    shape = shape_of("i", whole)
    runs = summaries(shape, plan, folded(chance, files, shape))
    held = pieces(chance, shape, files, plan)
    found = {"everything": stored(chance, whole, plan, [[run, *held[place]] for place, run in enumerate(runs)])}
    for name, several in alone.items():
        own = spec_of(schema, several)
        found[name] = stored(chance, own, plan, [[chosen(run, shape, shape_of("i", own))] for run in runs])
    own = spec_of(schema, [], sieves)
    parts = [[chosen(one, shape, shape_of("i", own)) for one in (run, *held[n])] for n, run in enumerate(runs)]
    return found | {"sieve": stored(chance, own, plan, parts)}


def require_right(name: str, given: npt.NDArray[np.int8], files: Files, plan: Plan, asked: Question) -> None:
    matching, rows = files.matching(asked.truth)
    lost = np.flatnonzero((given == Verdict.CANNOT_MATCH) & (matching > 0))
    assert not len(lost), f"{name} rules out the files {lost}, which have rows of {asked.text}"
    belied = np.flatnonzero((given == Verdict.ALL_MATCH) & (matching < rows))
    assert not len(belied), f"{name} says that all rows of the files {belied} match {asked.text}"
    unknown = [place for place in plan.silent if given[place] != Verdict.MUST_READ]
    assert not unknown, f"{name} claims to know of the files {unknown}, for {asked.text}"


def check(seed: int) -> "Counter[tuple[str, int]]":
    """How often each index gave which verdict."""
    chance = random.Random(seed)
    files = files_of(chance, FILES, huge=seed % HUGE_EVERY == 0)
    plan = plan_of(chance, FILES)
    indexes = built(chance, files, plan)
    readers = {name: reader() for name in indexes}
    counts: Counter[tuple[str, int]] = Counter()
    asked = 0
    while asked < QUESTIONS:
        one = question(chance, files)
        if one is None:
            continue
        asked += 1
        for name, index in indexes.items():
            given = verdicts(index, plan, one.asked, readers[name])
            require_right(name, given, files, plan, one)
            counts.update((name, verdict) for verdict in given.tolist())
            counts[name, PAIRS] += len(given)
    return counts


def require_use(counts: "Counter[tuple[str, int]]") -> None:
    """It is no test of what is never said: each sketch rules files out, and those that can say so know when all rows match."""
    for name in INDEXES:
        assert counts[name, PAIRS] == FILES * QUESTIONS
        assert counts[name, Verdict.CANNOT_MATCH] > counts[name, PAIRS] / 200, name
    for name in ("everything", "min_max", "null_count", "value_list"):
        assert counts[name, Verdict.ALL_MATCH] > counts[name, PAIRS] / 50, name


@pytest.mark.parametrize("seed", SEEDS)
def test_no_verdict_of_a_sketch_is_belied_by_a_row(seed: int) -> None:
    require_use(check(seed))


@pytest.mark.soak
@pytest.mark.parametrize("seed", SOAK_SEEDS)
def test_no_verdict_of_a_sketch_is_belied_by_a_row_for_long(seed: int) -> None:
    require_use(check(seed))
