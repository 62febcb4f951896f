"""Every value at the edge of its type, alone in a file and among others, is found by every sketch and by the sieve."""

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from grebe.indexes.sketches.bloom import Bloom
from grebe.indexes.sketches.intervals import Intervals
from grebe.indexes.sketches.min_max import MinMax, NullCount
from grebe.indexes.sketches.ngram import Ngram
from grebe.indexes.sketches.protocol import Sketch
from grebe.indexes.sketches.value_list import ValueList
from grebe.indexes.summary.shape import shape_of
from grebe.predicate.bind import bind
from grebe.predicate.evaluate import matches
from grebe.predicate.normalise import normalise
from grebe.predicate.tree import Column, Compare, In, Literal, Operator, Predicate, StartsWith
from grebe.predicate.types import FLOAT, STRING
from grebe.predicate.verdicts import Verdict
from tests.indexes.sketch_cases import FIELDS, Field, Files, anywhere, array_of, near
from tests.indexes.summary_lake import Plan, folded, pieces, reader, spec_of, stored, summaries, verdicts

KINDS = list({field.kind: field for field in FIELDS}.values())
OPERATORS: list[Operator] = ["=", "<=>", "<>", "<", "<=", ">", ">="]
SUBJECT = Column(("c",))
MOST = 24


def files_of(chance: random.Random, field: Field, values: list[Any]) -> Files:
    """A value a file; pairs of neighbours; all of them; none but NULL."""
    lists: list[list[Any]] = [[value] for value in values]
    lists += [[value, near(chance, value, field.kind)] for value in values[::3]]
    lists += [values, [*values[::2], None], [None, None], []]
    return Files(tuple(pa.record_batch([array_of(field.kind, one)], names=["c"]) for one in lists))


def literals(chance: random.Random, field: Field, values: list[Any]) -> list[Literal]:
    around = [*values, *(near(chance, value, field.kind) for value in values[::2])]
    found = [Literal(value, field.kind) for value in around]
    if field.kind == FLOAT:
        # As a plan of Spark writes it.
        found += [Literal(float(str(np.float32(value))), FLOAT) for value in around]
    return found


def asked(chance: random.Random, field: Field, values: list[Any]) -> list[Predicate]:
    known = literals(chance, field, values)
    found: list[Predicate] = [Compare(chance.choice(OPERATORS), SUBJECT, one) for one in known for _ in range(2)]
    found += [Compare("=", SUBJECT, one) for one in known]
    found += [In(SUBJECT, tuple(chance.sample(known, min(3, len(known))))) for _ in range(10)]
    if field.kind == STRING:
        found += [StartsWith(SUBJECT, value[: chance.randint(0, len(value))]) for value in values]
    return found


@pytest.mark.parametrize("field", KINDS, ids=lambda field: str(field.kind))
def test_a_value_at_an_edge_is_found(field: Field) -> None:
    chance = random.Random(str(field.kind))
    values = [*field.pool, *(anywhere(chance, field.kind) for _ in range(6))]
    values = chance.sample(values, min(MOST, len(values)))
    files = files_of(chance, field, values)
    count = len(files.parts)
    plan = Plan(np.arange(count), (tuple(range(0, count, 2)), tuple(range(1, count, 2))), frozenset())
    sketches: list[Sketch] = [MinMax("c"), NullCount("c"), Intervals("c"), ValueList("c"), Bloom("c")]
    if field.kind.name in ("string", "binary"):
        sketches.append(Ngram("c"))
    indexes = {}
    for one in [[sketch] for sketch in sketches] + [[]]:
        spec = spec_of(files.whole.schema, one, [] if one else [("c", 0.5)])
        shape = shape_of("i", spec)
        runs = summaries(shape, plan, folded(chance, files, shape))
        held = pieces(chance, shape, files, plan)
        parts = [[run, *held[place]] for place, run in enumerate(runs)]
        indexes[one[0].sketch if one else "sieve"] = (stored(chance, spec, plan, parts), reader())
    ruled_out = dict.fromkeys(indexes, 0)
    for predicate in asked(chance, field, values):
        bound = bind(predicate, files.whole.schema)
        truth = matches(files.whole, bound).to_numpy(zero_copy_only=False)
        matching, rows = files.matching(truth)
        for name, (index, by) in indexes.items():
            given = verdicts(index, plan, normalise(bound), by)
            lost = np.flatnonzero((given == Verdict.CANNOT_MATCH) & (matching > 0))
            assert not len(lost), f"{name} loses {predicate} in the files {lost}"
            belied = np.flatnonzero((given == Verdict.ALL_MATCH) & (matching < rows))
            assert not len(belied), f"{name} is belied by {predicate} in the files {belied}"
            ruled_out[name] += int((given == Verdict.CANNOT_MATCH).sum())
    assert all(ruled_out.values()), ruled_out
