"""No key of a file is lost in the pieces of a sieve: whatever they are built of, however runs are merged and files left out."""

import random
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from grebe.errors import CorruptIndex
from grebe.files import FileIds
from grebe.indexes.kind import FILE_COLUMN
from grebe.indexes.sieving.keys import Keys, keys_for, separators_of
from grebe.indexes.sieving.sieve import Sieve
from grebe.indexes.sketches.columns import physical
from grebe.indexes.summary import pieces
from grebe.indexes.summary.pieces import KEY, PieceBuilder, PieceMerger, opened
from grebe.indexes.summary.shape import HIGH, LOW, PAYLOAD, SIEVE
from grebe.predicate.arrow_types import physical_type
from grebe.predicate.types import STRING
from tests.indexes.sketch_cases import FIELDS, Field, anywhere, array_of, near

KINDS = list({field.kind: field for field in FIELDS}.values())
NUMBER = 3

Pairs = list[tuple[Any, int]]


def pairs_of(chance: random.Random, field: Field, files: Iterable[int], rows: int) -> Pairs:
    found: Pairs = []
    for file in files:
        centre = chance.choice([*field.pool, anywhere(chance, field.kind)])
        few = [centre, *(near(chance, centre, field.kind) for _ in range(4))]
        from_ = chance.choice([few, field.pool, [anywhere(chance, field.kind) for _ in range(20)]])
        found += [(chance.choice(from_), file) for _ in range(rows)]
    return found


def keys_of(chance: random.Random, field: Field, pairs: Pairs) -> Keys:
    sample = [value for value, _ in pairs[:: chance.choice([1, 7])]]
    keys = keys_for(field.kind, separators_of(pa.array(sample, physical_type(field.kind))) if _is_text(field) else None)
    assert keys is not None
    return keys


def _is_text(field: Field) -> bool:
    return field.kind.name in ("string", "binary")


def batches(chance: random.Random, field: Field, pairs: Pairs) -> list[pa.RecordBatch]:
    whole = pa.record_batch(
        [array_of(field.kind, [value for value, _ in pairs]), pa.array([file for _, file in pairs], pa.int32())],
        names=[KEY, FILE_COLUMN],
    )
    cut = chance.randint(0, len(pairs))
    return [whole.slice(0, cut), whole.slice(cut)]


def codes_of(keys: Keys, field: Field, values: Sequence[Any]) -> list[int]:
    codes: list[int] = keys.codes(physical(array_of(field.kind, list(values)), field.kind)).tolist()
    return codes


def require_held(made: Sequence[pa.RecordBatch], keys: Keys, field: Field, pairs: Pairs) -> None:
    """Each key alone, and in ranges of keys, in the very pieces that say they have it."""
    held: list[tuple[int, int, Sieve]] = []
    for batch in made:
        for row in batch.to_pylist():
            assert row[SIEVE] == NUMBER
            held.append((row[LOW], row[HIGH], opened(row[PAYLOAD], "a piece")))
    codes = codes_of(keys, field, [value for value, _ in pairs])
    by_code: dict[int, set[int]] = {}
    for code, (value, file) in zip(codes, pairs, strict=True):
        assert keys.code(physical(array_of(field.kind, [value]), field.kind)[0].as_py()) == code
        by_code.setdefault(code, set()).add(file)
    for code, files in by_code.items():
        assert files <= _found(held, [(code, code)]), f"a file of code {code} is lost"
    ordered = sorted(by_code)
    for first in range(0, len(ordered), max(1, len(ordered) // 20)):
        last = min(len(ordered) - 1, first + 5)
        wanted = set().union(*(by_code[code] for code in ordered[first : last + 1]))
        assert wanted <= _found(held, [(ordered[first], ordered[last])])
    everything = set().union(*by_code.values()) if by_code else set()
    assert _found(held, [(-(2**63), 2**63 - 1)]) == everything, "no file is made up, and none is left out"


def _found(held: Sequence[tuple[int, int, Sieve]], ranges: list[tuple[int, int]]) -> set[int]:
    (first, last) = ranges[0]
    asked = [sieve for low, high, sieve in held if first <= high and last >= low]
    return {int(file) for sieve in asked for file in sieve.files(ranges)}


@pytest.mark.parametrize("budget", [0, 800])
@pytest.mark.parametrize("field", KINDS, ids=lambda field: str(field.kind))
def test_no_key_of_a_file_is_lost(field: Field, budget: int) -> None:
    chance = random.Random(f"{field.kind} {budget}")
    for rows in (1, 25):
        pairs = pairs_of(chance, field, range(0, 60, 3), rows)
        keys = keys_of(chance, field, pairs)
        made = list(PieceBuilder(NUMBER, keys, budget)(batches(chance, field, pairs)))
        require_held(made, keys, field, pairs)


@pytest.mark.parametrize("budget", [0, 500])
@pytest.mark.parametrize("field", KINDS, ids=lambda field: str(field.kind))
def test_no_key_is_lost_when_runs_are_merged_and_files_left_out(
    field: Field, budget: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(f"merged {field.kind} {budget}")
    monkeypatch.setattr(pieces, "_STRETCHES", chance.choice([60, 500_000]))
    everything: Pairs = []
    keys: Keys | None = None
    merged: list[pa.RecordBatch] = []
    for first in (0, 40, 70):
        pairs = pairs_of(chance, field, range(first, first + 20), 10)
        keys = keys or keys_of(chance, field, pairs)
        run = list(PieceBuilder(NUMBER, keys, budget)(batches(chance, field, pairs)))
        gone = FileIds.of(chance.sample(range(90), 5))
        everything = [(value, file) for value, file in everything + pairs if file not in gone]
        merged = list(PieceMerger(NUMBER, gone)([*merged, *run]))
        require_held(merged, keys, field, everything)


def test_many_pairs_are_thinned_out_without_losing_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "_MOST_PAIRS", 100)
    field = next(field for field in FIELDS if field.kind == STRING)
    chance = random.Random(1)
    pairs = pairs_of(chance, field, range(30), 60)
    keys = keys_of(chance, field, pairs)
    many = [batch for start in range(0, len(pairs), 37) for batch in batches(chance, field, pairs[start : start + 37])]
    require_held(list(PieceBuilder(NUMBER, keys, 5_000)(many)), keys, field, pairs)


def test_where_nothing_is_left_there_is_no_piece() -> None:
    field = FIELDS[4]
    keys = keys_for(field.kind)
    assert keys is not None
    assert list(PieceBuilder(NUMBER, keys, 5_000)([])) == []
    assert list(PieceBuilder(NUMBER, keys, 5_000)(batches(random.Random(1), field, []))) == []
    (one,) = PieceBuilder(NUMBER, keys, 5_000)(batches(random.Random(1), field, [(5, 7)]))
    assert list(PieceMerger(NUMBER, FileIds.of([7]))([one])) == []
    assert list(PieceMerger(NUMBER, FileIds.of([]))([])) == []


def test_a_damaged_piece_is_no_piece() -> None:
    field = FIELDS[4]
    keys = keys_for(field.kind)
    assert keys is not None
    pairs = pairs_of(random.Random(2), field, range(10), 20)
    (one,) = PieceBuilder(NUMBER, keys, 5_000)(batches(random.Random(2), field, pairs))
    payload = one.column(PAYLOAD)[0].as_py()
    for place in np.random.default_rng(1).choice(len(payload), min(len(payload), 60), replace=False).tolist():
        damaged = payload[:place] + bytes([payload[place] ^ 1]) + payload[place + 1 :]
        with pytest.raises(CorruptIndex):
            opened(damaged, "a piece")
        with pytest.raises(CorruptIndex):
            opened(payload[:place], "a piece")
