"""How many files others read for the same question, by what Parquet keeps of each row group by itself."""

import time
from pathlib import Path

import pyarrow.dataset as ds

from bench.sieve.questions import Kept, Question, kept, require_all


class PyArrow:
    """A data set with all footers in memory."""

    def __init__(self, table: Path) -> None:
        self._fragments = list(ds.dataset(str(table), format="parquet").get_fragments())
        for fragment in self._fragments:
            fragment.ensure_complete_metadata()
        self._numbers = {path: place for place, path in enumerate(sorted(one.path for one in self._fragments))}

    def ask(self, column: str, questions: list[Question]) -> Kept:
        counts, seconds = [], []
        for question in questions:
            field = ds.field(column)
            asked = field == question.low if question.is_point else (field >= question.low) & (field <= question.high)
            start = time.perf_counter()
            found = [one for one in self._fragments if one.subset(asked).row_groups]
            seconds.append(time.perf_counter() - start)
            require_all(question, {self._numbers[one.path] for one in found}, "pyarrow")
            counts.append(len(found))
        return kept(questions, counts, seconds)


class DuckDB:
    """A file is read if more than its end, where the footer lies, is asked of the file system while the query runs."""

    def __init__(self, table: Path) -> None:
        import duckdb

        self._counting = f"SELECT count(*) FROM read_parquet('{table}/*.parquet')"
        files = sorted(table.glob("*.parquet"))
        self._files = {str(file): (place, file.stat().st_size) for place, file in enumerate(files)}
        self._connection = duckdb.connect()
        self._connection.execute("CALL enable_logging('FileSystem')")

    def ask(self, column: str, questions: list[Question]) -> Kept:
        """What it takes is the whole query, for pruning is a part of reading."""
        counts, seconds = [], []
        for question in questions:
            self._connection.execute("CALL truncate_duckdb_logs()")
            asked = f"= {question.low}" if question.is_point else f"BETWEEN {question.low} AND {question.high}"
            start = time.perf_counter()
            self._connection.execute(f"{self._counting} WHERE {column} {asked}").fetchall()
            seconds.append(time.perf_counter() - start)
            found = self._read()
            require_all(question, found, "DuckDB")
            counts.append(len(found))
        return kept(questions, counts, seconds)

    def _read(self) -> set[int]:
        reads = "SELECT path, min(pos + bytes) FROM duckdb_logs_parsed('FileSystem') WHERE op = 'READ' GROUP BY path"
        logged = self._connection.execute(reads).fetchall()
        return {self._files[path][0] for path, end in logged if end < self._files[path][1]}
