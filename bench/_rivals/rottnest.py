"""Rottnest: an index of UUIDs beside the Parquet files. Besides its key it can give one column, which must be named `id`."""

import os
import time
from pathlib import Path

from rottnest import internal


class Contestant:
    def load(self, source: str, target: str, column: str) -> int:
        """Bytes of the index."""
        Path(target).mkdir()
        # It leaves files in the folder where it runs.
        os.chdir(target)
        files = sorted(str(file) for file in Path(source).glob("*.parquet"))
        internal.index_files_uuid(files, column, "index")
        return sum(file.stat().st_size for file in Path(target).iterdir())

    def get(self, column: str, values: list[str], columns: list[str] | None) -> tuple[list[float], int]:
        others = [name for name in columns or [] if name != column]
        seconds, rows = [], 0
        for value in values:
            start = time.perf_counter()
            found = internal.search_index_uuid(["index"], value, 10, columns=others)
            seconds.append(time.perf_counter() - start)
            rows += 0 if found is None else len(found)
        return seconds, rows
