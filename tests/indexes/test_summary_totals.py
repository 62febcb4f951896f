"""What an index of summaries says of rows without reading any is what the rows say: how many match, in which files, and bounds."""

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from grebe.files import FileIds
from grebe.indexes.kind import Extreme
from grebe.indexes.sketches.min_max import MinMax
from grebe.indexes.summary.shape import shape_of
from grebe.predicate.tree import TRUE
from tests.indexes.sketch_cases import FIELDS, Files, column_at, files_of
from tests.indexes.sketch_questions import Question, question
from tests.indexes.summary_lake import folded, plan_of, reader, spec_of, stored, summaries

FILES = 40
WHOLE = [field for field in FIELDS if field.kind.is_integral or field.kind.name == "date"]


def true_extreme(files: Files, path: tuple[str, ...], rows: "np.ndarray[Any, np.dtype[np.bool_]]") -> Extreme:
    values = column_at(files.whole, path).filter(pa.array(rows))
    values = values.view(pa.int32()) if pa.types.is_date32(values.type) else values
    ends = pc.min_max(values)
    return Extreme(values.null_count, ends["min"].as_py(), ends["max"].as_py())


@pytest.mark.parametrize("seed", range(4))
def test_totals_are_those_of_the_rows(seed: int) -> None:
    chance = random.Random(seed)
    files, plan = files_of(chance, FILES), plan_of(chance, FILES)
    spec = spec_of(files.whole.schema, [MinMax(field.name) for field in FIELDS])
    shape = shape_of("i", spec)
    runs = summaries(shape, plan, folded(chance, files, shape))
    index, by = stored(chance, spec, plan, [[run] for run in runs]), reader()
    known = [place for place in range(FILES) if place not in plan.silent | plan.purged]
    told = told_bounds = certain = 0
    everywhere = Question("TRUE", TRUE, np.ones(len(files.owners), np.bool_))
    for one in [everywhere, *(question(chance, files) for _ in range(150))]:
        if one is None:
            continue
        matching, rows = files.matching(one.truth)
        surely, counts = index.certain(one.asked, by)
        places = np.searchsorted(plan.ids, surely)
        assert np.array_equal(matching[places], counts)
        assert np.array_equal(rows[places], counts)
        certain += len(surely)
        # What is asked of all files is seldom known of all of them.
        some = chance.sample(known, chance.choice([1, 2, 5, len(known)]))
        totals = index.totals(one.asked, FileIds.of(plan.ids[some]), by)
        if totals is None:
            continue
        told += 1
        here = np.isin(files.owners, some) & one.truth
        assert totals.rows == here.sum()
        for field in WHOLE:
            said = totals.columns[field.path]
            assert said == true_extreme(files, field.path, here)
            told_bounds += said.least is not None
    assert told > 20
    assert told_bounds > 20
    assert certain > 300


def test_nothing_is_told_of_files_that_the_index_does_not_know() -> None:
    chance = random.Random(99)
    files, plan = files_of(chance, FILES), plan_of(chance, FILES)
    spec = spec_of(files.whole.schema, [MinMax("i32")])
    shape = shape_of("i", spec)
    index = stored(chance, spec, plan, [[run] for run in summaries(shape, plan, folded(chance, files, shape))])
    for place in (*plan.silent, *plan.purged):
        assert index.totals(TRUE, FileIds.of([int(plan.ids[place])]), reader()) is None
    assert index.totals(TRUE, FileIds.of([100_000]), reader()) is None
