"""Lance: its own copy of the data in its own format, with a BTREE over each key."""

import time
from pathlib import Path

import lance
import pyarrow.dataset


class Contestant:
    def load(self, source: str, target: str, keys: list[str]) -> dict[str, float]:
        """The seconds of the copy, and of each index."""
        start = time.perf_counter()
        rows = pyarrow.dataset.dataset(source, format="parquet").scanner().to_reader()
        made = lance.write_dataset(rows, target)
        seconds = {"copy": time.perf_counter() - start}
        for key in keys:
            start = time.perf_counter()
            made.create_scalar_index(key, "BTREE")
            seconds[key] = time.perf_counter() - start
        self._dataset = lance.dataset(target)
        return seconds

    def sizes(self, target: str) -> dict[str, int]:
        """Bytes of the copy, and of all indexes together."""
        files = [file for file in Path(target).rglob("*") if file.is_file()]
        indexes = sum(file.stat().st_size for file in files if "_indices" in file.parts)
        return {"indexes": indexes, "copy": sum(file.stat().st_size for file in files) - indexes}

    def get(self, column: str, values: list[object], columns: list[str] | None) -> tuple[list[float], int]:
        seconds, rows = [], 0
        for value in values:
            literal = f"'{value}'" if isinstance(value, str) else str(value)
            start = time.perf_counter()
            found = self._dataset.to_table(columns=columns, filter=f"{column} = {literal}")
            seconds.append(time.perf_counter() - start)
            rows += found.num_rows
        return seconds, rows
