"""Which sketches prune a column well and cost least, found out by trying them on a sample of its keys.

First pass: bounds, intervals and some values of each file. Where these alone tell files apart nearly as well as can be, they are
taken. Else a second pass brings all keys of some stretches, and sieves of several sizes are tried on them. Where nothing small
prunes, a Bloom filter does for equality, at a price.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from grebe.formats.spark_types import arrow_type, type_json
from grebe.indexes.columns import Chosen
from grebe.indexes.kind import FILE_COLUMN, Rows
from grebe.indexes.sieving.keys import Keys, keys_for, separators_of
from grebe.indexes.sketches.bloom import Bloom
from grebe.indexes.sketches.columns import physical, width_of
from grebe.indexes.sketches.intervals import FileIntervals, Intervals
from grebe.indexes.sketches.min_max import MinMax
from grebe.indexes.sketches.ngram import Ngram
from grebe.indexes.sketches.protocol import Made, Sketch
from grebe.indexes.sketches.ranges import GREATEST, LEAST
from grebe.indexes.sketches.value_list import ValueList
from grebe.indexes.skipping.samples import KeysWithin, SomeValues
from grebe.indexes.skipping.trial import Kept, Questions, Sampled, asked, questions, sieves
from grebe.indexes.summary.fold import SketchFold
from grebe.indexes.summary.shape import Held, on_of

_MOST_PAIRS = 500_000
"""Pairs of key and file that sieves are tried on."""
_STRETCHES = 16
_SAMPLED = 64_000
_NEAR = 1.1
"""So much more than the best is near enough, where it is smaller."""
_LARGEST = 0.015
_BLOOM_SHARE = 1.25
"""Bytes of a Bloom filter a distinct value."""
_HOPELESS = 0.5
"""A structure that keeps this share of all files prunes nothing."""
_TEXTS = ("string", "binary")


@dataclass(frozen=True, slots=True)
class Choice:
    sketches: tuple[Sketch, ...]
    sieves: tuple[tuple[str, float], ...]
    """Columns and budgets."""
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Column:
    """A column, what the first pass found of it, and how its values are keyed."""

    chosen: Chosen
    keys: Keys | None
    lows: pa.Array
    highs: pa.Array
    intervals: FileIntervals | None
    values: pa.Array
    """Some, of all files."""
    distinct: int
    """Of one file, on average."""
    listable: bool
    """Whether each file has few values."""
    rows: int
    width: float


def choose(columns: Sequence[Chosen], together: bool, rows: Rows) -> Choice:
    """`together`: all columns of text share one sketch of their pieces."""
    texts = [column for column in columns if column.type == "string"] if together else []
    known = _first_pass([column for column in columns if column not in texts], rows)
    samples = _second_pass([one for one in known if one.keys is not None and one.rows], rows)
    chosen = [_of_column(one, samples.get(one.chosen.name), rows.files) for one in known]
    bounds = tuple(MinMax(column.name) for column in texts)
    pieces = (Ngram(*(column.name for column in texts)),) if texts else ()
    why = (
        [f"{', '.join(column.name for column in texts)}: bounds, and pieces of their text in one sketch"]
        if texts
        else []
    )
    return Choice(
        (*(sketch for one in chosen for sketch in one.sketches), *bounds, *pieces),
        tuple(sieve for one in chosen for sieve in one.sieves),
        (*(line for one in chosen for line in one.why), *why),
    )


def _folded(sketches: Sequence[tuple[Made, Chosen]], rows: Rows) -> tuple[list[Held[Made]], pa.Table]:
    held = [Held(number, sketch, (on_of(column),)) for number, (sketch, column) in enumerate(sketches)]
    fold = SketchFold(tuple(held))
    found = rows.folded(fold, {column.path[0] for _, column in sketches}).collect()
    schema = pa.schema([(name, arrow_type(type_json(kind))) for name, kind in fold.fields])
    return held, pa.Table.from_pylist([row.asDict() for row in found], schema)


def _first_pass(columns: Sequence[Chosen], rows: Rows) -> list[_Column]:
    if not columns:
        return []
    most = max(1, _SAMPLED // max(1, rows.files))
    asked_for: list[tuple[Made, Chosen]] = []
    for column in columns:
        own: list[Made] = [MinMax(column.name), ValueList(column.name), SomeValues(column.name, most)]
        if on_of(column).type.name not in _TEXTS:
            own.append(Intervals(column.name))
        asked_for += [(sketch, column) for sketch in own]
    held, table = _folded(asked_for, rows)
    return [_known(column, [one for one in held if one.on == (on_of(column),)], table) for column in columns]


def _known(column: Chosen, held: Sequence[Held[Made]], table: pa.Table) -> _Column:
    on = on_of(column)
    by_sketch = {one.sketch.sketch: one for one in held}

    def stored(sketch: str, name: str) -> pa.Array:
        return table[by_sketch[sketch].field(name)].combine_chunks()

    values = physical(stored("some_values", "values").flatten(), on.type)
    text = on.type.name in _TEXTS
    keys = keys_for(on.type, separators_of(values) if text else None) if len(values) else None
    intervals = None
    if "intervals" in by_sketch and keys is not None and not text:
        one = by_sketch["intervals"]
        fields = {name: table[one.field(name)].combine_chunks() for name in one.sketch.fields(one.on)}
        intervals = FileIntervals.of(on, keys, fields)
    width = float(np.mean(pc.binary_length(values).to_numpy())) if text and len(values) else width_of(on.type)
    nulls = sum(stored("min_max", "nulls").to_pylist())
    return _Column(
        column,
        keys,
        physical(stored("min_max", "min"), on.type),
        physical(stored("min_max", "max"), on.type),
        intervals,
        values,
        int(np.mean(stored("some_values", "distinct").to_numpy())) if len(table) else 0,
        bool(len(table)) and stored("value_list", "values").null_count == 0,
        sum(stored("min_max", "rows").to_pylist()) - nulls,
        max(1.0, width),
    )


def _second_pass(columns: Sequence[_Column], rows: Rows) -> Mapping[str, Sampled]:
    """All keys in some stretches, for all of these columns at once."""
    asked_for: list[tuple[Made, Chosen]] = []
    for column in columns:
        assert column.keys is not None
        starts, stops = _stretches(np.unique(column.keys.codes(column.values)), column.rows)
        asked_for.append((KeysWithin(column.chosen.name, column.keys, starts, stops), column.chosen))
    if not asked_for:
        return {}
    held, table = _folded(asked_for, rows)
    files = table[FILE_COLUMN].to_numpy().astype(np.uint32)
    found = {}
    for one, (sketch, own_column) in zip(held, asked_for, strict=True):
        assert isinstance(sketch, KeysWithin)
        parts = [np.frombuffer(data, np.int64) for data in table[one.field("codes")].to_pylist()]
        counts = [np.frombuffer(data, np.int64) for data in table[one.field("counts")].to_pylist()]
        codes = np.concatenate(parts)
        order = np.argsort(codes, kind="stable")
        own = np.repeat(files, [len(part) for part in parts])[order]
        stretch = np.searchsorted(np.array(sketch.starts, np.int64), codes[order], "right") - 1
        found[own_column.name] = Sampled(stretch, codes[order], own, np.concatenate(counts)[order])
    return found


def _stretches(codes: np.ndarray, rows: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Some of the key space, so that about `_MOST_PAIRS` rows lie there; everything, if there are no more."""
    share = min(1.0, _MOST_PAIRS / max(1, rows))
    if share == 1.0 or len(codes) < 4 * _STRETCHES:
        return (-(2**63),), (2**63 - 1,)
    each = max(1, int(len(codes) * share / _STRETCHES))
    firsts = np.linspace(0, len(codes) - 1 - each, _STRETCHES).astype(np.int64)
    firsts = firsts[np.append(True, np.diff(firsts) > each)]
    return tuple(codes[firsts].tolist()), tuple((codes[firsts + each] - 1).tolist())


def _of_column(column: _Column, sample: Sampled | None, files: int) -> Choice:
    name = column.chosen.name
    bounds: tuple[Sketch, ...] = (MinMax(name),)
    if sample is None or not len(sample.codes):
        return Choice(bounds, (), (f"{name}: bounds, as there are no values to learn from",))
    trial = questions(sample)
    tried = list(_tried(column, sample, trial, files))
    # Bounds are kept in any case, and cost nothing more.
    small = [one for one in tried if one.kept.share <= _LARGEST]
    best = (min(one.kept.point for one in small), min(one.kept.range for one in small))
    for one in sorted(small, key=_price):
        if one.kept.point <= best[0] * _NEAR and one.kept.range <= best[1] * _NEAR:
            break
    said = "; ".join(f"{other.name} {_told(other.kept)}" for other in tried if other is not one)
    if one.kept.point > _HOPELESS * files and trial.truth.point < one.kept.point / 2:
        share = min(1.0, column.distinct * files / max(1, column.rows)) * _BLOOM_SHARE / column.width
        why = f"a Bloom filter ({share:.1%} of the column), for equality only, as nothing small prunes"
        told = f"{one.name} {_told(one.kept)}; a Lookup index would tell rows"
        return Choice((*bounds, Bloom(name)), (), (f"{name}: {why}: {told}",))
    why = f"{one.name}, which {_told(one.kept)}; the files that hold rows: {trial.truth.point:.1f} and {trial.truth.range:.1f}"
    return Choice((*bounds, *one.sketches), one.sieves, (f"{name}: {why}" + (f"; {said}" if said else ""),))


@dataclass(frozen=True, slots=True)
class _Tried:
    name: str
    kept: Kept
    sketches: tuple[Sketch, ...] = ()
    sieves: tuple[tuple[str, float], ...] = ()
    exact: bool = False


def _price(one: _Tried) -> tuple[bool, float]:
    """The smaller the better; but a list of values serves all conditions, and nothing else does."""
    return not one.exact, one.kept.share


def _tried(column: _Column, sample: Sampled, trial: Questions, files: int) -> "list[_Tried]":
    name = column.chosen.name
    assert column.keys is not None
    size = column.rows * column.width
    lows, highs = _codes(column.keys, column.lows, LEAST), _codes(column.keys, column.highs, GREATEST)
    empty = ~column.lows.is_valid().to_numpy(zero_copy_only=False) & ~column.highs.is_valid().to_numpy(
        zero_copy_only=False
    )
    lows[empty] = GREATEST
    near = asked(trial, lambda ends: int(((lows <= ends[1]) & (highs >= ends[0])).sum()), 0.0)
    found = [_Tried("bounds", near)]
    if column.intervals is not None:
        own = column.intervals
        kept = asked(trial, lambda ends: int(own.touching(*ends).sum()), 136 * files / size)
        found.append(_Tried("16 intervals a file", kept, (Intervals(name),)))
    if column.listable:
        share = (column.distinct * column.width * files) / size
        found.append(
            _Tried(
                "a list of values", Kept(trial.truth.point, trial.truth.range, share), (ValueList(name),), exact=True
            )
        )
    for budget, kept in sieves(sample, trial, column.width):
        found.append(_Tried(f"a sieve of {kept.share:.2%}", kept, (), ((name, budget),)))
    return found


def _codes(keys: Keys, values: pa.Array, unknown: int) -> np.ndarray:
    found = np.full(len(values), unknown, np.int64)
    found[values.is_valid().to_numpy(zero_copy_only=False)] = keys.codes(values.drop_null())
    return found


def _told(kept: Kept) -> str:
    return f"keeps {kept.point:.1f} files for a value and {kept.range:.1f} for a range"
