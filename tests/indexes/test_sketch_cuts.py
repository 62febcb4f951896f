"""Bounds of text are cut, and stay bounds: not above the least value, not below the greatest, in the order of their bytes."""

import random

import numpy as np
import pyarrow as pa
import pytest

from grebe.indexes.sketches.min_max import MinMax, cut_above, cut_below, extent_of, next_text
from grebe.indexes.sketches.protocol import On
from grebe.indexes.sketches.value_list import ValueList
from grebe.predicate.tree import Column, Compare, Literal, Predicate, StartsWith
from grebe.predicate.types import BINARY, STRING
from grebe.predicate.verdicts import Verdict
from tests.indexes.sketch_cases import FIELDS, anywhere, near

POINTS = ["\0", "a", "\x7f", "\x80", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff"]
LONGEST = 64


def texts(chance: random.Random) -> list[str]:
    pool = next(field.pool for field in FIELDS if field.path == ("s",))
    long = ["".join(chance.choices(POINTS, k=chance.randint(60, 70))) for _ in range(300)]
    ends = [chance.choice(POINTS) * 63 + "".join(chance.choices(POINTS, k=chance.randint(0, 4))) for _ in range(300)]
    return [*pool, *long, *ends, *(near(chance, one, STRING) for one in (*pool, *ends)), "a" * (1 << 20)]


def datas(chance: random.Random) -> list[bytes]:
    pool = next(field.pool for field in FIELDS if field.path == ("bin",))
    ends = [
        chance.choice(b"\0a\xfe\xff").to_bytes() * 63 + bytes(chance.choices(b"\0\xfe\xff", k=3)) for _ in range(300)
    ]
    return [*pool, *ends, *(anywhere(chance, BINARY) for _ in range(100)), b"\xff" * (1 << 20)]


def test_a_cut_text_is_a_bound() -> None:
    for text in texts(random.Random(1)):
        below, above = cut_below(text), cut_above(text)
        assert below.encode() <= text.encode()
        assert len(below) <= LONGEST
        assert above is None or (text.encode() <= above.encode() and len(above) <= LONGEST)
        assert above is not None or text.startswith("\U0010ffff" * LONGEST)
        assert len(text) > LONGEST or below == above == text


def test_cut_bytes_are_a_bound() -> None:
    for data in datas(random.Random(2)):
        below, above = cut_below(data), cut_above(data)
        assert below <= data
        assert above is None or (data <= above and len(above) <= LONGEST)
        assert above is not None or data.startswith(b"\xff" * LONGEST)


def test_the_next_text_is_above_all_that_begin_alike_and_nothing_lies_between() -> None:
    chance = random.Random(3)
    for text in [one for one in texts(chance) if 0 < len(one) <= LONGEST]:
        beyond = next_text(text)
        greatest = text + "\U0010ffff" * 5
        if beyond is None:
            assert set(text) == {"\U0010ffff"}
            continue
        assert greatest.encode() < beyond.encode()
        assert greatest.encode() + b"\xff" < beyond.encode(), "nor do bytes that are no text lie above"
        shared = beyond[:-1]
        assert text.startswith(shared), "the least such text differs in its last character alone"
        assert ord(beyond[-1]) - ord(text[len(shared)]) in (1, 0xE000 - 0xD7FF)


def unreadable(*values: bytes) -> pa.Array:
    """Text of any bytes, as Spark has it."""
    offsets = np.cumsum([0, *map(len, values)]).astype(np.int64)
    return pa.Array.from_buffers(
        pa.large_string(), len(values), [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(b"".join(values))]
    )


@pytest.mark.parametrize("seed", range(5))
def test_bounds_hold_for_text_that_is_no_utf_8(seed: int) -> None:
    chance = random.Random(seed)
    pieces = [b"a", b"\xff", b"\xc3", b"\xf4\x8f\xbf", "\U0010ffff".encode(), b"\xed\xa0\x80", "é".encode(), b"\0"]
    for _ in range(100):
        values = [b"".join(chance.choices(pieces, k=chance.randint(0, 80))) for _ in range(chance.randint(1, 4))]
        row = MinMax("s").row([], extent_of(unreadable(*values)))
        assert row["min"].encode() <= min(values)
        assert row["max"] is None or max(values) <= row["max"].encode()
        state = ValueList("s").state([], [unreadable(*values)])
        assert state.known is None or {one.encode() for one in state.known.to_pylist()} == set(values)


def verdict(values: list[str | None], predicate: Predicate) -> int:
    sketch, on = MinMax("s"), [On(("s",), STRING)]
    row = sketch.row(on, sketch.state(on, [pa.array(values, pa.large_string())]))
    stored = {"min": pa.string(), "max": pa.string(), "rows": pa.int64(), "nulls": pa.int64(), "exact": pa.bool_()}
    given = sketch.judge(on, {name: pa.array([row[name]], type) for name, type in stored.items()}).verdicts(predicate)
    return Verdict.MUST_READ if given is None else int(given[0])


def test_a_cut_bound_is_never_taken_for_a_value() -> None:
    subject, long = Column(("s",), STRING), "a" * 100
    for bound in (cut_below(long), cut_above(long)):
        assert verdict([long], Compare("=", subject, Literal(bound, STRING))) != Verdict.ALL_MATCH
    assert verdict([long], Compare(">", subject, Literal("a" * 64, STRING))) != Verdict.CANNOT_MATCH
    assert verdict([long], Compare("=", subject, Literal(long, STRING))) == Verdict.MUST_READ
    assert verdict([long], StartsWith(subject, "a" * 64)) == Verdict.MUST_READ
    assert verdict([long], StartsWith(subject, "a" * 63)) == Verdict.ALL_MATCH
    assert verdict([long], StartsWith(subject, "a" * 101)) == Verdict.MUST_READ
    assert verdict([long, None], StartsWith(subject, "a")) == Verdict.MUST_READ
    assert verdict([long], StartsWith(subject, "b")) == Verdict.CANNOT_MATCH
