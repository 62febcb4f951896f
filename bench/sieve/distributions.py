"""Six ways in which keys lie in files: how many files are kept by each structure, beside the truth, and how large it is.

Sizes are in percent of the attribute's bytes. Files are asked for by `Table.files`, warm; only the sieves of other sizes than the
default, which make the curve of size and accuracy, are asked as such.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.pool import Pool
from pathlib import Path

import pyarrow.parquet as pq

import grebe
from bench._stage import Stage
from bench.sieve import curve, data
from bench.sieve.questions import Column, Kept, Question, kept, require_all
from bench.sieve.rivals import DuckDB, PyArrow
from grebe.indexes.summary import directory
from grebe.predicate.tree import Predicate

SKETCHES = {"zone map": grebe.MinMax, "Intervals": grebe.Intervals, "Bloom": grebe.Bloom}
DEFAULT = 0.01
BUDGETS = (0.0025, 0.005, DEFAULT, 0.015, 0.03)
MOST = 1.5
"""Percent: what a structure may take to be one that the automatic choice has to keep up with."""


@dataclass(frozen=True)
class Measured:
    name: str
    kept: Kept
    percent: float
    remark: str = ""


def distributions(stage: Stage) -> None:
    rows, files, count, of_duckdb = stage.scale.pick((2_000_000, 50, 40, 4), (20_000_000, 500, 200, 10))
    budgets = stage.scale.pick((BUDGETS[0], DEFAULT), BUDGETS)
    table = data.distributions(rows, files)
    made = _Made(stage, table, rows)
    pyarrow, duckdb = PyArrow(table), DuckDB(table)
    with curve.processes() as pool:
        for name in data.DISTRIBUTIONS:
            column = Column.read(table, name)
            asked = column.questions(count)
            truth = kept(asked, [len(one.truth) for one in asked], [0.0])
            structures = [*made.sketches(name, asked), *made.sieves(column, asked, truth, budgets, pool)]
            automatic = made.automatic(name, asked)
            _beside_truth(stage, name, truth, [*structures, automatic], count)
            _beside_best(stage, name, structures, automatic, count)
            _beside_rival(stage, name, automatic.kept, "pyarrow by row groups", pyarrow.ask(name, asked), count)
            few = [*asked[:of_duckdb], *asked[-of_duckdb:]]
            mine = made.automatic(name, few).kept
            _beside_rival(stage, name, mine, "DuckDB, files read", duckdb.ask(name, few), of_duckdb)


def _beside_truth(stage: Stage, name: str, truth: Kept, structures: list[Measured], runs: int) -> None:
    for what in ("points", "ranges"):
        for one in structures:
            case = f"{name}, {what}, {one.name}"
            stage.report.add(case, "files", getattr(one.kept, what), "truth", getattr(truth, what), runs)
    for one in structures:
        stage.report.add(f"{name}, size, {one.name}{one.remark}", "%", one.percent)


def _beside_best(stage: Stage, name: str, structures: list[Measured], automatic: Measured, runs: int) -> None:
    small = [one for one in structures if one.percent <= MOST]
    for what in ("points", "ranges"):
        best = min(small, key=lambda one: getattr(one.kept, what))
        rival = f"{best.name} ({best.percent:.2g}%), the best of at most {MOST}%"
        mine, other = getattr(automatic.kept, what), getattr(best.kept, what)
        stage.report.add(f"{name}, {what}, {automatic.name}", "files", mine, rival, other, runs)


def _beside_rival(stage: Stage, name: str, mine: Kept, rival: str, other: Kept, runs: int) -> None:
    for what in ("points", "ranges"):
        case = f"{name}, {what}, automatic"
        stage.report.add(case, "files", getattr(mine, what), rival, getattr(other, what), runs)
    stage.report.add(f"{name}, a question", "us", mine.microseconds, rival, other.microseconds, 2 * runs)


class _Made:
    """The indexes of all columns: of each sketch one, since its part for a column is the same as if it were alone."""

    def __init__(self, stage: Stage, table: Path, rows: int) -> None:
        self._attribute = rows * data.KEY_BYTES
        self._columns = list(data.DISTRIBUTIONS)
        self._sketched: dict[str, Path] = {}
        for name, sketch in SKETCHES.items():
            kind = grebe.Skipping("sketches", *map(sketch, self._columns))
            self._sketched[name] = Path(stage.indexed(table, name, kind))
        sieves = (grebe.Sieve(column, on=column, budget=DEFAULT) for column in self._columns)
        chosen = (grebe.Skipping(column, on=column) for column in self._columns)
        self._opened = {name: grebe.open(str(table), location=str(place)) for name, place in self._sketched.items()}
        self._sieves = grebe.open(str(table), location=stage.indexed(table, "sieves", *sieves))
        self._automatic = grebe.open(str(table), location=stage.indexed(table, "automatic", *chosen))

    def sketches(self, column: str, questions: list[Question]) -> Iterator[Measured]:
        for name in SKETCHES:
            percent = self._percent(self._bytes_of_sketch(name, column))
            yield Measured(name, _ask(self._opened[name], column, questions), percent)

    def sieves(
        self, column: Column, questions: list[Question], truth: Kept, budgets: Sequence[float], pool: Pool
    ) -> Iterator[Measured]:
        """Up to the size at which nothing can be better."""
        for budget in budgets:
            if budget == DEFAULT:
                found, size = _ask(self._sieves, column.name, questions), self._sieves.index(column.name).bytes
            else:
                whole = curve.sieve(column, budget, pool)
                found, size = whole.ask(questions), whole.bytes + self._bytes_of_sketch("zone map", column.name)
            yield Measured(f"Sieve {100 * budget:g}%", found, self._percent(size))
            if budget >= DEFAULT and found.as_few_as(truth):
                return

    def automatic(self, column: str, questions: list[Question]) -> Measured:
        """It says what it chose: that, and then why."""
        explained = self._automatic.explain(_predicate(column, questions[0])).chosen[column]
        remark = f": {explained.removeprefix(f'{column}: ').partition(',')[0]}"
        percent = self._percent(self._automatic.index(column).bytes)
        return Measured("automatic", _ask(self._automatic, column, questions), percent, remark)

    def _bytes_of_sketch(self, name: str, column: str) -> int:
        """What its index holds of the column, and the share of what is common to all."""
        whole, held = 0, Counter[str]()
        for file in (self._sketched[name] / "data").rglob("*.gix"):
            whole += file.stat().st_size
            if file.name != directory.NAME:
                content = pq.read_metadata(file)
                for group in map(content.row_group, range(content.num_row_groups)):
                    for chunk in map(group.column, range(group.num_columns)):
                        held[chunk.path_in_schema.partition("_")[0]] += chunk.total_compressed_size
        of_sketches = [held[f"s{number}"] for number in range(len(self._columns))]
        common = whole - sum(of_sketches)
        return of_sketches[self._columns.index(column)] + common // len(self._columns)

    def _percent(self, size: int) -> float:
        return 100 * size / self._attribute


def _ask(table: "grebe.Table", column: str, questions: list[Question]) -> Kept:
    numbers = {one.path: place for place, one in enumerate(table.files("TRUE").files)}
    for index in table.indexes():
        table.warm(index.name)
    counts, seconds = [], []
    for question in questions:
        predicate = _predicate(column, question)
        start = time.perf_counter()
        answer = table.files(predicate)
        seconds.append(time.perf_counter() - start)
        require_all(question, {numbers[one.path] for one in answer.files}, "an index")
        counts.append(len(answer.files))
    return kept(questions, counts, seconds)


def _predicate(column: str, question: Question) -> Predicate:
    named = grebe.col(column)
    return named == question.low if question.is_point else (named >= question.low) & (named <= question.high)
