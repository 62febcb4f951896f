"""PostgreSQL as a key-value store: filled by COPY and an index after it, or by an INSERT a row in one transaction."""

import json
import time

import psycopg
import pyarrow.csv

from bench._rivals import pairs

_LOCATORS, _ROWS = "locators", "rows_of_keys"


class Contestant:
    def connect(self, port: int, user: str) -> None:
        self._client = psycopg.connect(host="127.0.0.1", port=port, user=user, dbname="postgres", autocommit=True)

    def empty(self) -> None:
        self._client.execute(f"DROP TABLE IF EXISTS {_LOCATORS}")

    def copy(self, source: str, key: str) -> float:
        start = time.perf_counter()
        with self._client.transaction(), self._client.cursor() as cursor:
            cursor.execute(f"CREATE TABLE {_LOCATORS} (key bigint NOT NULL, value bigint NOT NULL)")
            with cursor.copy(f"COPY {_LOCATORS} FROM STDIN WITH (FORMAT csv)") as copy:
                for part in pairs.located(source, key):
                    text = pyarrow.BufferOutputStream()
                    pyarrow.csv.write_csv(part, text, pyarrow.csv.WriteOptions(include_header=False))
                    copy.write(text.getvalue())
            cursor.execute(f"CREATE UNIQUE INDEX ON {_LOCATORS} (key)")
        return time.perf_counter() - start

    def one_by_one(self, source: str, key: str, count: int) -> float:
        start = time.perf_counter()
        with self._client.transaction(), self._client.cursor() as cursor:
            cursor.execute(f"CREATE TABLE {_LOCATORS} (key bigint PRIMARY KEY, value bigint NOT NULL)")
            insert = f"INSERT INTO {_LOCATORS} VALUES (%s, %s)"
            for part in pairs.located(source, key, count):
                for pair in zip(part["key"].to_pylist(), part["value"].to_pylist(), strict=True):
                    cursor.execute(insert, pair)
        return time.perf_counter() - start

    def load_rows(self, source: str, key: str, columns: list[str]) -> int:
        with self._client.transaction(), self._client.cursor() as cursor:
            cursor.execute(f"CREATE TABLE {_ROWS} (key bigint NOT NULL, value text NOT NULL)")
            with cursor.copy(f"COPY {_ROWS} FROM STDIN") as copy:
                for keys, values in pairs.rows(source, key, columns):
                    for pair in zip(keys, values, strict=True):
                        copy.write_row(pair)
            cursor.execute(f"CREATE UNIQUE INDEX ON {_ROWS} (key)")
        self._client.execute(f"ANALYZE {_ROWS}")
        counted = self._client.execute(f"SELECT count(*) FROM {_ROWS}").fetchone()
        assert counted is not None
        return int(counted[0])

    def get(self, column: str, values: list[int], columns: list[str] | None) -> tuple[list[float], int]:
        seconds, rows = [], 0
        for value in values:
            start = time.perf_counter()
            found = self._client.execute(f"SELECT value FROM {_ROWS} WHERE key = %s", (value,), prepare=True).fetchone()
            if found is not None:
                json.loads(found[0])
                rows += 1
            seconds.append(time.perf_counter() - start)
        return seconds, rows
