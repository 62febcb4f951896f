"""Whether indexes hold what their files say: their rows are derived anew and compared with those they hold, file by file.

What a kind makes of the rows of a file is compared by its number and by sums of hashes, which no order changes. A sieve is no such
thing, as it depends on when it was merged with what: of it every value is asked whether it leads to its file.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from grebe.errors import CorruptIndex, Unsupported
from grebe.files import FileIds, RegisteredFiles
from grebe.formats.spark_types import type_text
from grebe.indexes.classic import functions
from grebe.indexes.faults import Fault, fault
from grebe.indexes.kind import FILE_COLUMN, Kind
from grebe.indexes.registry import kind_of
from grebe.log.commit import Log
from grebe.log.entry import NO_FILES, IndexSpec
from grebe.log.registration import Registry
from grebe.log.states import ACTIVE, IndexState, TableState
from grebe.maintenance.build import Files
from grebe.maintenance.create import planned_for
from grebe.maintenance.failures import spark_errors
from grebe.maintenance.operation import observed
from grebe.maintenance.rows import IndexRows, TableRows
from grebe.maintenance.runs import Older, Run, runs_of
from grebe.maintenance.steps import OF_ONE_INDEX
from grebe.maintenance.verify_sieves import not_admitted
from grebe.spark.source import SparkSource
from grebe.spark.stores import table_store_for

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_HASH, _ROWS, _LOW, _HIGH = "_grebe_hash", "_grebe_count", "_grebe_low", "_grebe_high"
_ANY_FILE = -1
_SPLIT_BY_SPARK = ("csv", "json", "text", "avro")
_LOW_BITS = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Compared:
    findings: tuple[Fault, ...]
    unchecked: tuple[str, ...]
    """Sentences: what could not be derived anew, and why."""


def compare(source: SparkSource, log: Log, state: TableState, known: Sequence[Fault]) -> Compared:
    """All indexes in use. Runs that have a fault already (`known`) are left out."""
    with observed(log, "verify_rows", sorted(state.indexes)) as told:
        told.begun()
        compared = _compared(source, log, state, known)
        told.add(faults=len(compared.findings), unchecked=len(compared.unchecked))
    return compared


def _compared(source: SparkSource, log: Log, state: TableState, known: Sequence[Fault]) -> Compared:
    files, registered = files_now(source, log, state)
    findings: list[Fault] = []
    unchecked: list[str] = []
    by_files: dict[FileIds, list[IndexState]] = {}
    for index in state.indexes.values():
        if index.state == ACTIVE and not any(one.index == index.name and not one.path for one in known):
            try:
                reason = _otherwise(source, index)
            except OF_ONE_INDEX as problem:
                findings.append(fault(index.name, "", problem))
                continue
            if reason is None:
                by_files.setdefault(index.held & files.covered, []).append(index)
            else:
                unchecked.append(reason)
    for present, together in by_files.items():
        kinds = {index.name: kind_of(index.name, index.spec) for index in together}
        columns = {column for index in together for column in kinds[index.name].reads(index.spec)}
        own = files.only(present)
        store = table_store_for(source.session, source.uri)
        with (
            spark_errors(f"verifying {', '.join(kinds)}", log.store.uri),
            TableRows(source, own.files, own.ids, store, columns, len(together)) as table,
        ):
            for index in together:
                runs = sound_runs(index, known)
                one = _Comparison(index, kinds[index.name], table, log, registered, present, runs)
                try:
                    findings += one.findings()
                    unchecked += one.unchecked()
                except Unsupported as refusal:
                    unchecked.append(f"{index.name}: its rows were not compared: {refusal.args[0]}")
    return Compared(tuple(findings), tuple(unchecked))


def files_now(source: SparkSource, log: Log, state: TableState) -> tuple[Files, RegisteredFiles]:
    """The files of the table that are registered and unchanged, and all that ever were."""
    registered = Registry(log).files(state)
    listed = source.files()
    ids = registered.ids_of(listed)
    there = ids.is_valid().to_numpy(zero_copy_only=False)
    return Files(listed.filter(there), ids.drop_null().to_numpy()), registered


def sound_runs(index: IndexState, known: Sequence[Fault]) -> list[Run]:
    """Those without a fault."""
    broken = {one.path for one in known if one.index == index.name and one.path.startswith("data/")}
    folders = {path.rpartition("/")[0] for path in broken}
    return [run for run in runs_of(index) if run.files[0].path.rpartition("/")[0] not in folders]


def reads_alike(index: IndexState, anew: IndexSpec) -> bool:
    """Whether files are read now as they were when the index was made."""
    return all(
        index.spec.properties.get(name) == anew.properties.get(name) for name in ("reading", "where", "definition")
    )


def _otherwise(source: SparkSource, index: IndexState) -> str | None:
    """Why its rows cannot be derived in this session."""
    if reads_alike(index, planned_for(source, kind_of(index.name, index.spec)).spec):
        return None
    return f"{index.name}: its rows were not compared: this session reads the table otherwise than it was read for the index"


class _Taken(IndexRows):
    """Remembers the rows that an index is made of, and gives none of them to be laid out."""

    taken: "DataFrame | None" = None

    def counted(self, frame: "DataFrame", whole: bool) -> "DataFrame":
        self.taken = frame
        return frame.limit(0)


@dataclass(frozen=True, slots=True)
class _Comparison:
    index: IndexState
    kind: Kind
    table: TableRows
    log: Log
    registered: RegisteredFiles
    present: FileIds
    """Files that it holds and that are there unchanged."""
    runs: Sequence[Run]
    """Without faults."""

    def unchecked(self) -> Iterator[str]:
        if left_out := self._not_told():
            yield f"{self.index.name}: {', '.join(sorted(left_out))} were not compared: they depend on how Spark split the files"

    def findings(self) -> Iterator[Fault]:
        anew = self._anew()
        lineage = FILE_COLUMN in anew.columns
        if not lineage and (not self._all_runs or self.index.held != self.present):
            return  # rows of files that are gone cannot be told apart
        yield from self._differing(anew, lineage)
        if self._has_rows and self.index.spec.properties.get("sieves"):
            for file, values in not_admitted(self.index, self.table, self._older, self.present):
                yield self._about(file, f"{values:,} of its values do not lead to it")

    def _anew(self) -> "DataFrame":
        rows = _Taken(self.table, self.index.name)
        properties = self.index.spec.properties
        spec = self.index.spec
        if "sieves" in properties:
            spec = replace(spec, properties={**properties, "sieves": []})
        arranged = self.kind.arranged(spec, rows)
        return arranged.frame if rows.taken is None else rows.taken

    def _differing(self, anew: "DataFrame", lineage: bool) -> Iterator[Fault]:
        fields = [(field.name, type_text(field.dataType.jsonValue())) for field in anew.schema.fields]
        names = [name for name, _ in fields if name not in (FILE_COLUMN, *self._not_told())]
        arrays = {name for name, kind in fields if self._folded and "array" in kind}
        derived = _sums(anew, names, arrays, lineage)
        held = derived.limit(0)
        if self._has_rows:
            held = _sums(self._older.frame(self.table.session, fields), names, arrays, lineage)
        either = _renamed(held, "held_").join(derived, FILE_COLUMN, "full_outer")
        same = [functions.col(f"held_{name}").eqNullSafe(functions.col(name)) for name in (_ROWS, _LOW, _HIGH)]
        for row in either.where(~(same[0] & same[1] & same[2])).collect():
            yield from self._judged(row[FILE_COLUMN], row[f"held_{_ROWS}"], row[_ROWS])

    def _judged(self, file: int, held: int | None, derived: int | None) -> Iterator[Fault]:
        if file == _ANY_FILE:
            yield fault(self.index.name, "", CorruptIndex(_numbers(held, derived), detail="DIFFERS"))
        elif file in self.present:
            # What a run with a fault holds is not known.
            if held is not None or self._all_runs:
                yield self._about(file, _numbers(held, derived))
        elif file not in self.index.held:
            yield self._about(file, f"it holds {held:,} rows of a file that it does not cover")

    def _about(self, file: int, sentence: str) -> Fault:
        found = self.registered.select(FileIds.of([file])).files.uris().to_pylist()
        path = str(found[0]) if found else ""
        problem = CorruptIndex(f"{path or f'file {file}'}: {sentence}", detail="DIFFERS")
        return replace(fault(self.index.name, path, problem), file=file)

    @property
    def _older(self) -> Older:
        return Older(self.index, self.log.store, tuple(self.runs), NO_FILES)

    @property
    def _has_rows(self) -> bool:
        return any(run.rows for run in self.runs)

    @property
    def _all_runs(self) -> bool:
        return len(self.runs) == len(runs_of(self.index))

    @property
    def _folded(self) -> bool:
        """Whether it holds one row a file."""
        return "sketches" in self.index.spec.properties

    def _not_told(self) -> Collection[str]:
        """What may come out otherwise. Of intervals some gaps are closed for each part of a file that Spark read by itself: others
        do as well."""
        properties = self.index.spec.properties
        if "definition" in properties:
            # Sums of these hang on the order in which Spark met the rows.
            return [one["name"] for one in properties["definition"]["measures"] if one["type"] in ("double", "float")]
        if not self._folded or properties["reading"]["format"] not in _SPLIT_BY_SPARK:
            return ()
        of = [number for number, one in enumerate(properties["sketches"]) if one["sketch"] == "intervals"]
        return [f"s{number}_{name}" for number in of for name in ("low", "high", "intervals")]


def _numbers(held: int | None, derived: int | None) -> str:
    if held == derived:
        return f"the {held:,} rows that the index holds of it have other values"
    return f"the index holds {held or 0:,} rows of it and should hold {derived or 0:,}"


def _sums(frame: "DataFrame", names: Sequence[str], arrays: Collection[str], lineage: bool) -> "DataFrame":
    """Of each file the number of rows, and sums of the halves of their hashes, which cannot overflow."""
    file = functions.col(FILE_COLUMN) if lineage else functions.lit(_ANY_FILE).alias(FILE_COLUMN)
    hashed = functions.xxhash64(*(_hashable(name, name in arrays) for name in names)).alias(_HASH)
    kept = frame.where(functions.col(FILE_COLUMN).isNotNull()) if lineage else frame
    one = functions.col(_HASH)
    return (
        kept.select(file, hashed)
        .groupBy(FILE_COLUMN)
        .agg(
            functions.count(functions.lit(1)).alias(_ROWS),
            functions.sum(one.bitwiseAND(functions.lit(_LOW_BITS))).alias(_LOW),
            functions.sum(functions.shiftrightunsigned(one, 32)).alias(_HIGH),
        )
    )


def _hashable(name: str, sorted_first: bool) -> "Column":
    column = functions.col("`" + name.replace("`", "``") + "`")
    return functions.sort_array(column) if sorted_first else column


def _renamed(frame: "DataFrame", prefix: str) -> "DataFrame":
    return frame.select(FILE_COLUMN, *(functions.col(name).alias(prefix + name) for name in (_ROWS, _LOW, _HIGH)))
