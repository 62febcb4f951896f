"""A byte that changed in an index of summaries is found out: its content is never believed, and no file is lost by it."""

import random
from dataclasses import replace

import numpy as np
import pytest

from grebe.errors import CorruptIndex, SourceChanged
from grebe.files import FileIds
from grebe.indexes.sketches.bloom import Bloom
from grebe.indexes.sketches.min_max import MinMax
from grebe.indexes.sketches.ngram import Ngram
from grebe.indexes.sketches.protocol import Sketch
from grebe.indexes.sketches.value_list import ValueList
from grebe.indexes.summary import directory
from grebe.indexes.summary.kinds import Summary
from grebe.indexes.summary.probe import SummaryIndex
from grebe.indexes.summary.shape import shape_of
from grebe.predicate.bind import bind
from grebe.predicate.normalise import normalise
from grebe.predicate.parse import parse
from grebe.predicate.tree import FALSE, TRUE, Predicate
from grebe.predicate.verdicts import Verdict
from tests.indexes.sketch_cases import Files, files_of
from tests.indexes.summary_lake import Plan, folded, pieces, plan_of, reader, spec_of, stored, summaries, verdicts

SKETCHES: list[Sketch] = [MinMax("i32"), MinMax("s"), Bloom("s"), Ngram("s"), ValueList("d"), MinMax("ts")]
SIEVES = [("s", 0.3), ("ts", 0.3)]
FILES = 30
ASKED = [
    "i32 > 0",
    "s = 'a'",
    "s LIKE '%abc%'",
    "s >= 'b'",
    "d IS NULL",
    "ts < TIMESTAMP '2000-01-01'",
    "i32 > 0 AND s < 'c'",
]


def made(seed: int, plan: Plan | None = None) -> tuple[Files, Plan, SummaryIndex]:
    chance = random.Random(seed)
    files = files_of(chance, FILES)
    plan = plan or plan_of(chance, FILES)
    spec = spec_of(files.whole.schema, SKETCHES, SIEVES)
    shape = shape_of("i", spec)
    runs = summaries(shape, plan, folded(chance, files, shape))
    held = pieces(chance, shape, files, plan)
    return files, plan, stored(chance, spec, plan, [[run, *held[place]] for place, run in enumerate(runs)])


def understood(files: Files, text: str) -> Predicate:
    return normalise(bind(parse(text), files.whole.schema))


def answers(index: SummaryIndex, files: Files, plan: Plan) -> list[list[int]]:
    """By an index that has read nothing yet."""
    fresh, by = SummaryIndex.of(index.state, index.store), reader()
    fresh.warm(by, pin=True)
    return [verdicts(fresh, plan, understood(files, text), by).tolist() for text in ASKED]


@pytest.mark.parametrize("seed", range(3))
def test_no_flipped_byte_is_believed(seed: int) -> None:
    files, plan, index = made(seed)
    right = answers(index, files, plan)
    chance = np.random.default_rng(seed)
    store = index.store
    for file in index.state.content:
        data = store.get(file.path)
        for place in (0, len(data) - 1, *chance.choice(len(data), 6, replace=False).tolist()):
            flipped = bytes([data[place] ^ (1 << int(chance.integers(8)))])
            store.put(file.path, data[:place] + flipped + data[place + 1 :])
            with pytest.raises(
                CorruptIndex, match=r"\[CORRUPT_INDEX_DAMAGED\] .* is damaged; refresh the index with mode='full'"
            ):
                answers(index, files, plan)
            assert {fault.path for fault in Summary.faults_of(index.state, store, deep=True)} == {file.path}
        store.put(file.path, data)
    assert Summary.faults_of(index.state, store, deep=True) == []
    assert answers(index, files, plan) == right


def test_a_file_that_is_short_or_gone_is_not_believed() -> None:
    files, plan, index = made(5)
    store = index.store
    for file in index.state.content:
        data = store.get(file.path)
        for damaged in (data[:-1], b"", None):
            store.delete(file.path)
            if damaged is not None:
                store.put(file.path, damaged)
            with pytest.raises((CorruptIndex, SourceChanged)):
                answers(index, files, plan)
            assert {fault.path for fault in Summary.faults_of(index.state, store, deep=False)} == {file.path}
        store.put(file.path, data)
    assert Summary.faults_of(index.state, store, deep=False) == []


def test_content_of_another_run_in_place_of_its_own_is_not_believed() -> None:
    files, plan, index = made(6)
    one, other = sorted((file for file in index.state.content if file.rows), key=lambda file: file.size)[:2]
    index.store.put(one.path, index.store.get(other.path))
    with pytest.raises((CorruptIndex, SourceChanged)):
        answers(index, files, plan)


def test_a_directory_that_does_not_list_what_the_log_names_is_not_believed() -> None:
    files, plan, index = made(7)
    unlisted = replace(index.state.content[0], path=index.state.content[0].path.replace("part-", "other-"))
    changed = replace(index.state.content[0], size=index.state.content[0].size + 1)
    for wrong in ((unlisted, *index.state.content), (changed, *index.state.content[1:])):
        state = replace(index.state, content=wrong)
        with pytest.raises(CorruptIndex, match=r"\[CORRUPT_INDEX_DIRECTORY\].*does not list"):
            answers(SummaryIndex.of(state, index.store), files, plan)
    without = tuple(file for file in index.state.content if not file.path.endswith(directory.NAME))
    with pytest.raises(CorruptIndex, match=r"\[CORRUPT_INDEX_DIRECTORY\].*no directory"):
        answers(SummaryIndex.of(replace(index.state, content=without), index.store), files, plan)


def test_files_that_the_log_names_no_more_are_not_read() -> None:
    """They may have been replaced since their directory was written, and be gone."""
    plan = Plan(np.arange(FILES), (tuple(range(10)), tuple(range(10, FILES))), frozenset())
    files, _, index = made(8, plan)
    replaced = [file for file in index.state.content if file.path.startswith("data/i/0-x/part")]
    for file in replaced:
        index.store.delete(file.path)
    left = replace(index.state, content=tuple(file for file in index.state.content if file not in replaced))
    fewer, by = SummaryIndex.of(left, index.store), reader()
    found = verdicts(fewer, plan, understood(files, "i32 IS NULL AND i32 IS NOT NULL"), by)
    assert set(found[:10].tolist()) == {int(Verdict.MUST_READ)}
    assert Summary.faults_of(left, index.store, deep=True) == []


def test_a_covered_file_of_which_the_content_says_nothing_must_be_read() -> None:
    plan = Plan(np.arange(FILES), (tuple(range(1, FILES)),), frozenset({4}))
    files, _, index = made(9, plan)
    by = reader()
    for predicate in (FALSE, TRUE, *(understood(files, text) for text in ASKED)):
        found = verdicts(index, plan, predicate, by)
        assert found[0] == Verdict.MUST_READ
        assert found[4] == -1, "what is not covered is not spoken of"


def test_an_index_without_content_knows_nothing_and_says_so() -> None:
    spec = spec_of(files_of(random.Random(1), 1).whole.schema, SKETCHES, SIEVES)
    files, _, other = made(10)
    empty = replace(other.state, spec=spec, content=(), covered=FileIds.of([1, 5]), dormant=FileIds.of([]))
    index, by = SummaryIndex.of(empty, other.store), reader()
    index.warm(by, pin=False)
    for text in ASKED:
        judged = index.hits(understood(files, text), by)
        assert (judged.files.tolist(), judged.verdicts.tolist()) == ([1, 5], [Verdict.MUST_READ] * 2)
