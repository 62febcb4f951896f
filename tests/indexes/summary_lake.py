"""Indexes of summaries over the files of `sketch_cases`, made as in Spark's tasks but without Spark, in a store in memory."""

import io
import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from grebe.files import FileIds
from grebe.formats import Column, Reading
from grebe.formats.byte_cache import ByteCache
from grebe.formats.spark_types import arrow_type, spark_type, type_json, type_text
from grebe.indexes.content.sealed import sealed
from grebe.indexes.kind import FILE_COLUMN
from grebe.indexes.reading import Reader
from grebe.indexes.sieving.keys import Keys, keys_for, pack_separators, separators_of
from grebe.indexes.sketches.columns import physical
from grebe.indexes.sketches.protocol import Sketch
from grebe.indexes.summary import directory
from grebe.indexes.summary.fold import SketchFold, State
from grebe.indexes.summary.pieces import KEY, SCHEMA, PieceBuilder, PieceMerger
from grebe.indexes.summary.probe import SummaryIndex
from grebe.indexes.summary.shape import HIGH, LOW, PAYLOAD, SIEVE, HeldSieve, Shape, properties_of
from grebe.log.entry import ContentFile, IndexSpec
from grebe.log.states import ACTIVE, IndexState
from grebe.predicate.tree import Predicate
from grebe.store.memory import MemoryStore
from tests.indexes.sketch_cases import Files, as_read, column_at

Ids = npt.NDArray[np.int64]
UNCOVERED = -1


@dataclass(frozen=True)
class Plan:
    """Which files lie in which run of an index, under which ids."""

    ids: Ids
    runs: tuple[tuple[int, ...], ...]
    """Places of files. Those that are in no run are covered all the same, as a file without rows may be."""
    purged: frozenset[int]
    """Places of files that the content knows and the index does not hold any more."""

    @property
    def held(self) -> FileIds:
        return FileIds.of([int(one) for place, one in enumerate(self.ids) if place not in self.purged])

    @property
    def silent(self) -> set[int]:
        """Files that are held, of which the content says nothing."""
        return set(range(len(self.ids))) - {place for run in self.runs for place in run}


def plan_of(chance: random.Random, files: int) -> Plan:
    ids = np.cumsum([chance.choice([1, 1, 1, 7]) for _ in range(files)])
    chance.shuffle(places := list(range(files)))
    known = places[: -chance.randint(0, 2) or None]
    ends = sorted(chance.sample(range(1, len(known)), chance.randint(0, 2)))
    runs = [known[start:stop] for start, stop in zip([0, *ends], [*ends, len(known)], strict=True)]
    return Plan(ids.astype(np.int64), tuple(map(tuple, runs)), frozenset(chance.sample(known, chance.randint(0, 2))))


def reading_of(schema: pa.Schema) -> Reading:
    columns = [Column(field.name, type_text(spark_type(field.type))) for field in schema]
    return Reading.of("parquet", {}, columns, "UTC", local_times=False)


def spec_of(schema: pa.Schema, sketches: Sequence[Sketch], sieves: Sequence[tuple[str, float]] = ()) -> IndexSpec:
    names, properties = properties_of(sketches, sieves, reading_of(schema), True, "i")
    return IndexSpec("skipping", names, properties)


def folded(chance: random.Random, files: Files, shape: Shape) -> list[State]:
    """The state of each file, joined of parts in any grouping, as tasks may have had them."""
    fold = SketchFold(shape.sketches)
    states = []
    for part in files.parts:
        made = [fold.state(batch) for batch in as_read(chance, part)]
        while len(made) > 1 and chance.random() < 0.5:
            made[:2] = [fold.joined(made[:2])]
        states.append(fold.joined(made))
    return states


def summaries(shape: Shape, plan: Plan, states: Sequence[State]) -> list[pa.Table]:
    """One table a run."""
    fold = SketchFold(shape.sketches)
    tables = []
    for run in plan.runs:
        rows = fold.rows([int(plan.ids[place]) for place in run], [states[place] for place in run])
        tables.append(_filled(pa.Table.from_batches([rows]), shape))
    return tables


def _filled(table: pa.Table, shape: Shape) -> pa.Table:
    schema = pa.schema([(name, arrow_type(type_json(kind))) for name, kind in shape.fields])
    there = set(table.column_names)
    columns = [table[one.name] if one.name in there else pa.nulls(len(table), one.type) for one in schema]
    return pa.table(columns, schema=schema)


def chosen(table: pa.Table, whole: Shape, part: Shape) -> pa.Table:
    """Of a run of a larger index the run of one that has some of its sketches."""
    own = {(held.sketch, held.on): held for held in whole.sketches}
    names: dict[str, str] = {}
    for held in part.sketches:
        from_ = own[held.sketch, held.on]
        names |= {from_.field(name): held.field(name) for name in held.sketch.fields(held.on)}
    kept = [name for name in table.column_names if name in names or name.startswith("_grebe")]
    return _filled(table.select(kept).rename_columns([names.get(name, name) for name in kept]), part)


def keys_of(chance: random.Random, sieve: HeldSieve, files: Files) -> Keys:
    values = physical(column_at(files.whole, sieve.on.path), sieve.on.type).drop_null()
    some = values.take(pa.array(chance.sample(range(len(values)), min(len(values), 20)), pa.int64()))
    texts = sieve.on.type.name in ("string", "binary")
    keys = keys_for(sieve.on.type, separators_of(some) if texts else None)
    assert keys is not None
    return keys


def pieces(chance: random.Random, shape: Shape, files: Files, plan: Plan) -> list[list[pa.Table]]:
    """Of each run what it holds of sieves. Some of the runs may be merged, which leaves the others without."""
    found: list[list[pa.Table]] = [[] for _ in plan.runs]
    for sieve in shape.sieves:
        keys = keys_of(chance, sieve, files)
        runs = [list(_built(chance, sieve, keys, files, plan, run)) for run in plan.runs]
        if chance.random() < 0.5:
            gone = FileIds.of([int(plan.ids[place]) for place in plan.purged])
            merger = PieceMerger(sieve.number, gone)
            runs = [*([] for _ in runs[1:]), list(merger(batch for run in runs for batch in run))]
        for number, batches in enumerate(runs):
            if keys.separators is not None:
                row = {
                    SIEVE: [sieve.number],
                    LOW: [None],
                    HIGH: [None],
                    PAYLOAD: [sealed(pack_separators(keys.separators))],
                }
                batches = [*batches, pa.RecordBatch.from_pydict(row, SCHEMA)]
            if batches:
                found[number].append(_filled(pa.Table.from_batches(batches), shape))
    return found


def _built(
    chance: random.Random, sieve: HeldSieve, keys: Keys, files: Files, plan: Plan, run: Sequence[int]
) -> list[pa.RecordBatch]:
    columns = [column_at(files.parts[place], sieve.on.path) for place in run]
    values = pa.concat_arrays([column.drop_null() for column in columns])
    owners = np.concatenate(
        [np.repeat(plan.ids[place], len(c) - c.null_count) for place, c in zip(run, columns, strict=True)]
    )
    builder = PieceBuilder(sieve.number, keys, int(sieve.budget * 8 * len(values)))
    return [made for part in _by_range(chance, keys, values, owners) for made in builder(part)]


def _by_range(chance: random.Random, keys: Keys, values: pa.Array, owners: Ids) -> list[list[pa.RecordBatch]]:
    """Partitions of ranges of the key: equal keys lie together, batches cut anywhere."""
    if not len(values):
        return [[]]
    codes = keys.codes(physical(values, keys.type))
    cuts = sorted(chance.choice(codes.tolist()) for _ in range(chance.randint(0, 2)))
    parts = []
    of = np.searchsorted(cuts, codes, "right") if cuts else np.zeros(len(codes), np.int64)
    for number in range(len(cuts) + 1):
        places = np.flatnonzero(of == number)
        np.random.default_rng(chance.randrange(2**32)).shuffle(places)
        batch = pa.record_batch(
            [values.take(pa.array(places)), pa.array(owners[places], pa.int32())], names=[KEY, FILE_COLUMN]
        )
        cut = chance.randint(0, batch.num_rows)
        parts.append([batch.slice(0, cut), batch.slice(cut)])
    return parts


def stored(chance: random.Random, spec: IndexSpec, plan: Plan, runs: Sequence[Sequence[pa.Table]]) -> SummaryIndex:
    """Written as Parquet, described and opened. Each run is a folder; what it holds may lie in one file or in several."""
    store = MemoryStore()
    content: list[ContentFile] = []
    for number, tables in enumerate(runs):
        folder = f"data/i/{number}-x"
        for place, table in enumerate(_laid(chance, tables)):
            sink = io.BytesIO()
            pq.write_table(table, sink, compression="zstd", row_group_size=max(1, len(table) // 2))
            store.put(f"{folder}/part-{place}.gix", sink.getvalue())
            store.put(f"{folder}/.part-{place}.gix.crc", b"crc")
        content += directory.describe(folder, store)
    # Some of the files are gone from the newest version of the table, which changes nothing for those who ask about them.
    dormant = FileIds.of(plan.held.to_numpy()[::3])
    state = IndexState("i", spec, ACTIVE, 1, tuple(content), plan.held - dormant, "", 0, 0, None, dormant)
    return SummaryIndex.of(state, store)


def _laid(chance: random.Random, tables: Sequence[pa.Table]) -> list[pa.Table]:
    whole = pa.concat_tables(tables)
    if chance.random() < 0.5:
        return [whole, whole.slice(0, 0)]
    ends = np.array([chance.random() < 0.5 for _ in range(len(whole))], np.bool_)
    return [whole.filter(pa.array(side)) for side in (ends, ~ends)]


def reader() -> Reader:
    return Reader(ByteCache(1 << 30))


def verdicts(index: SummaryIndex, plan: Plan, predicate: Predicate, by: Reader) -> npt.NDArray[np.int8]:
    """One for each file, `UNCOVERED` where the index does not speak of it."""
    judged = index.hits(predicate, by)
    found = np.full(len(plan.ids), UNCOVERED, np.int8)
    found[np.searchsorted(plan.ids, judged.files)] = judged.verdicts
    assert np.array_equal(np.sort(judged.files), plan.held.to_numpy())
    assert np.array_equal(np.sort(judged.entries(by).files), plan.ids[found > 0])
    return found
