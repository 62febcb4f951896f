"""The maps of the files that indexes are built of, read beside Spark: once for all indexes that keep them."""

import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from grebe.files import FileList
from grebe.formats import KeepsMaps, format_named
from grebe.indexes.content.maps import packed
from grebe.maintenance.facts import data_files
from grebe.store.protocol import Store

_AT_ONCE = 16


class TableMaps:
    def __init__(self, format: str, files: FileList, ids: npt.NDArray[np.uint32], store: Store) -> None:
        self._format = format_named(format)
        self._files = files
        self._ids = ids
        self._store = store
        self._aside = ThreadPoolExecutor(1, thread_name_prefix="grebe-maps")
        self._read: Future[list[Any]] | None = None
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Reads them aside, if nobody has begun to."""
        with self._lock:
            if self._read is None and isinstance(self._format, KeepsMaps):
                self._read = self._aside.submit(self._maps, self._format)

    def packed(self, older: Mapping[int, Any]) -> bytes | None:
        """Together with those of older files, by id; None for a format whose files have none."""
        self.begin()
        if self._read is None or not isinstance(self._format, KeepsMaps):
            return None
        ids = np.concatenate((self._ids, np.fromiter(older, np.uint32, len(older))))
        return packed(self._format, ids, [*self._read.result(), *older.values()])

    def _maps(self, format: KeepsMaps) -> list[Any]:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return list(pool.map(format.map_of, data_files(self._files, self._store)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._aside.shutdown(cancel_futures=True)
