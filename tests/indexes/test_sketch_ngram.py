"""Whatever a text holds, all pieces of it are known: wherever it is cut, and however the texts lie in their array."""

import random

import numpy as np
import pyarrow as pa
import pytest

from grebe.indexes.sketches import ngram
from grebe.indexes.sketches.ngram import Ngram, pieces_of
from grebe.indexes.sketches.protocol import On
from grebe.predicate.tree import Column, Compare, Contains, EndsWith, In, Literal, Predicate, StartsWith
from grebe.predicate.types import BINARY, STRING
from grebe.predicate.verdicts import Verdict
from tests.indexes.sketch_cases import FIELDS, anywhere

(TEXTS,) = (field.pool for field in FIELDS if field.path == ("s",))
SIZES = range(2, 9)
TITLE, BODY = On(("title",), STRING), On(("body",), STRING)


def plain_pieces(texts: list[bytes], size: int) -> list[int]:
    found = {text[at : at + size] for text in texts for at in range(len(text) - size + 1)}
    return sorted(int.from_bytes(piece, "big") for piece in found)


@pytest.mark.parametrize("size", SIZES)
def test_pieces_are_those_of_each_text_and_of_no_two_together(size: int) -> None:
    chance = random.Random(size)
    for _ in range(20):
        texts = [chance.choice([*TEXTS, anywhere(chance, STRING)]).encode() for _ in range(chance.randint(0, 12))]
        array = pa.array([chance.choice([None, b"before"]), *texts, b"behind"], pa.large_binary())[1 : len(texts) + 1]
        assert pieces_of(array, size).tolist() == plain_pieces(texts, size)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_many_pieces_are_found_as_few_are(size: int) -> None:
    data = np.random.default_rng(size).integers(0, 256, 40_000).astype(np.uint8).tobytes()
    texts = [data[:20_000], b"", data[20_000:20_001], data[20_001:]]
    assert len(data) > ngram._MANY
    assert pieces_of(pa.array(texts, pa.large_binary()), size).tolist() == plain_pieces(texts, size)


def judged(sketch: Ngram, on: list[On], files: list[list[list[str | None]]], predicate: Predicate) -> list[int]:
    """`files` hold for each column its values."""
    states = [sketch.state(on, [pa.array(column, pa.large_string()) for column in columns]) for columns in files]
    stored = pa.array([sketch.row(on, state)["filter"] for state in states], pa.binary())
    verdicts = sketch.judge(on, {"filter": stored}).verdicts(predicate)
    return [Verdict.MUST_READ] * len(files) if verdicts is None else verdicts.tolist()


@pytest.mark.parametrize("size", SIZES)
def test_a_part_of_a_text_cut_anywhere_is_found(size: int) -> None:
    chance = random.Random(size)
    subject = Column(("title",), STRING)
    others: list[str | None] = ["zzzzzzzzzzz", None]
    ruled_out = 0
    for _ in range(60):
        text = chance.choice(TEXTS) + anywhere(chance, STRING)
        start, stop = sorted(chance.choices(range(len(text) + 1), k=2))
        asked = [
            Contains(subject, text[start:stop]),
            StartsWith(subject, text[:stop]),
            EndsWith(subject, text[start:]),
            Compare("=", subject, Literal(text, STRING)),
            In(subject, (Literal("nowhere", STRING), Literal(text, STRING))),
        ]
        for predicate in asked:
            first, second = judged(Ngram("title", size=size), [TITLE], [[[*others, text]], [others]], predicate)
            assert first == Verdict.MUST_READ
            ruled_out += second == Verdict.CANNOT_MATCH
    assert ruled_out > 60


def test_a_sketch_of_several_columns_rules_out_what_is_in_none_of_them() -> None:
    both = Ngram("title", "body")
    files: list[list[list[str | None]]] = [
        [["grebe"], ["lake"]],
        [["lake"], ["grebe"]],
        [["lake"], ["lake"]],
        [[None], [None]],
    ]
    for path in ("title", "body"):
        found = judged(both, [TITLE, BODY], files, Contains(Column((path,), STRING), "reb"))
        assert found == [Verdict.MUST_READ, Verdict.MUST_READ, Verdict.CANNOT_MATCH, Verdict.CANNOT_MATCH]
    other = Contains(Column(("another",), STRING), "reb")
    assert judged(both, [TITLE, BODY], files, other) == [Verdict.MUST_READ] * 4


def test_bytes_are_judged_by_equality() -> None:
    sketch, on = Ngram("b"), [On(("b",), BINARY)]
    stored = [
        sketch.row(on, sketch.state(on, [pa.array([one], pa.large_binary())]))["filter"]
        for one in (b"\xff\xfe\0", b"abc")
    ]
    asked = Compare("=", Column(("b",), BINARY), Literal(b"\xff\xfe\0", BINARY))
    verdicts = sketch.judge(on, {"filter": pa.array(stored, pa.binary())}).verdicts(asked)
    assert verdicts is not None
    assert verdicts.tolist() == [Verdict.MUST_READ, Verdict.CANNOT_MATCH]
