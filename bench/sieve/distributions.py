"""Six ways in which keys lie in files: how many files are kept by each structure, beside the truth, and how large it is.

Sizes are in percent of the attribute's bytes. Files are asked for by `Table.files`, warm; only the sieves of other sizes than the
default, which make the curve of size and accuracy, are asked as such.
"""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

import grebe
from bench.sieve import curve, data
from bench.sieve.questions import Column, Kept, Question, kept, require_all
from bench.sieve.rivals import DuckDB, PyArrow
from bench.sieve.stage import Stage
from grebe.indexes.summary import directory
from grebe.predicate.tree import Predicate

SKETCHES = {"zone map": grebe.MinMax, "Intervals": grebe.Intervals, "Bloom": grebe.Bloom}
DEFAULT, OTHERS = 0.01, (0.0025, 0.005, 0.015, 0.03)
MOST = 1.5
"""Percent: what a structure may take to be one that the automatic choice has to keep up with."""


@dataclass(frozen=True)
class Measured:
    name: str
    kept: Kept
    percent: float


def distributions(stage: Stage) -> None:
    rows, files, questions, of_duckdb = stage.scale.pick((2_000_000, 50, 50, 5), (20_000_000, 500, 200, 20))
    table = data.distributions(rows, files)
    made = _Made(stage, table, rows)
    pyarrow, duckdb = PyArrow(table), DuckDB(table)
    for name in data.DISTRIBUTIONS:
        column = Column.read(table, name)
        asked = column.questions(questions)
        few = [*asked[:of_duckdb], *asked[-of_duckdb:]]
        truth = kept(asked, [len(one.truth) for one in asked], [0.0])
        structures = [*made.ask(name, asked), *made.curve(column, asked)]
        automatic = made.ask_automatic(name, asked)
        _report(stage, name, truth, [*structures, automatic], 2 * questions)
        _best(stage, name, structures, automatic, 2 * questions)
        for rival, by_rival, of in (
            ("pyarrow by row groups", pyarrow.ask(name, asked), automatic.kept),
            ("DuckDB, files read", duckdb.ask(name, few), made.automatic(name, few)),
        ):
            for what in ("points", "ranges"):
                mine, other = getattr(of, what), getattr(by_rival, what)
                stage.report.add(f"{name}, {what}, automatic", "files", mine, rival, other, questions)
            stage.report.add(f"{name}, a question", "us", of.microseconds, rival, by_rival.microseconds, 2 * questions)


def _report(stage: Stage, name: str, truth: Kept, structures: list[Measured], runs: int) -> None:
    for what in ("points", "ranges"):
        for one in structures:
            case = f"{name}, {what}, {one.name}"
            stage.report.add(case, "files", getattr(one.kept, what), "truth", getattr(truth, what), runs)
    for one in structures:
        stage.report.add(f"{name}, size, {one.name}", "%", one.percent)


def _best(stage: Stage, name: str, structures: list[Measured], automatic: Measured, runs: int) -> None:
    small = [one for one in structures if one.percent <= MOST]
    for what in ("points", "ranges"):
        best = min(small, key=lambda one: getattr(one.kept, what))
        rival = f"{best.name} ({best.percent:.2g}%), the best of at most {MOST}%"
        mine, other = getattr(automatic.kept, what), getattr(best.kept, what)
        stage.report.add(f"{name}, {what}, automatic choice", "files", mine, rival, other, runs)


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

    def ask(self, column: str, questions: list[Question]) -> Iterator[Measured]:
        for name, place in self._sketched.items():
            size = _bytes_of_sketch(place, self._columns.index(column), len(self._columns))
            yield Measured(name, _ask(self._opened[name], column, questions), self._percent(size))
        size = self._sieves.index(column).bytes
        yield Measured(_sieve(DEFAULT), _ask(self._sieves, column, questions), self._percent(size))

    def curve(self, column: Column, questions: list[Question]) -> Iterator[Measured]:
        """Up to the size at which the sieve is exact and would take no more."""
        bounds = _bytes_of_sketch(self._sketched["zone map"], self._columns.index(column.name), len(self._columns))
        for budget in OTHERS:
            whole = curve.sieve(column, budget)
            yield Measured(_sieve(budget), whole.ask(questions), self._percent(whole.bytes + bounds))
            if whole.bytes < self._attribute * budget / 2:
                return

    def ask_automatic(self, column: str, questions: list[Question]) -> Measured:
        """It says what it chose."""
        explained = self._automatic.explain(_predicate(column, questions[0])).chosen.get(column, "nothing said")
        size = self._automatic.index(column).bytes
        return Measured(f"automatic: {explained}", self.automatic(column, questions), self._percent(size))

    def automatic(self, column: str, questions: list[Question]) -> Kept:
        return _ask(self._automatic, column, questions)

    def _percent(self, size: int) -> float:
        return 100 * size / self._attribute


def _sieve(budget: float) -> str:
    return f"Sieve {100 * budget:g}%"


def _ask(table: "grebe.Table", column: str, questions: list[Question]) -> Kept:
    numbers = {one.path: place for place, one in enumerate(table.files("TRUE").files)}
    predicates = [_predicate(column, question) for question in questions]
    for predicate in predicates:
        table.files(predicate)
    counts, seconds = [], []
    for question, predicate in zip(questions, predicates, strict=True):
        start = time.perf_counter()
        answer = table.files(predicate)
        seconds.append(time.perf_counter() - start)
        require_all(question, {numbers[one.path] for one in answer.files}, "an index")
        counts.append(len(answer.files))
    return kept(questions, counts, seconds)


def _predicate(column: str, question: Question) -> Predicate:
    named = grebe.col(column)
    return named == question.low if question.is_point else (named >= question.low) & (named <= question.high)


def _bytes_of_sketch(location: Path, place: int, count: int) -> int:
    """What the index holds of the column at this place, and its share of what is common to all."""
    whole, held = 0, Counter[str]()
    for file in (location / "data").rglob("*.gix"):
        whole += file.stat().st_size
        if file.name != directory.NAME:
            content = pq.read_metadata(file)
            for group in map(content.row_group, range(content.num_row_groups)):
                for chunk in map(group.column, range(group.num_columns)):
                    held[chunk.path_in_schema.partition("_")[0]] += chunk.total_compressed_size
    sketches = [held[f"s{number}"] for number in range(count)]
    return sketches[place] + (whole - sum(sketches)) // count
