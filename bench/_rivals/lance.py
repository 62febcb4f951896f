"""Lance: its own copy of the data in its own format, with a BTREE over each key."""

import time
from pathlib import Path

import lance
import pyarrow.dataset


class Contestant:
    def load(self, source: str, target: str, keys: list[str]) -> int:
        """Bytes of all indexes together."""
        rows = pyarrow.dataset.dataset(source, format="parquet").scanner().to_reader()
        made = lance.write_dataset(rows, target)
        for key in keys:
            made.create_scalar_index(key, "BTREE")
        self._dataset = lance.dataset(target)
        return sum(file.stat().st_size for file in (Path(target) / "_indices").rglob("*") if file.is_file())

    def get(self, column: str, values: list[object], columns: list[str] | None) -> tuple[list[float], int]:
        seconds, rows = [], 0
        for value in values:
            literal = f"'{value}'" if isinstance(value, str) else str(value)
            start = time.perf_counter()
            found = self._dataset.to_table(columns=columns, filter=f"{column} = {literal}")
            seconds.append(time.perf_counter() - start)
            rows += found.num_rows
        return seconds, rows
