"""The maps of the files that indexes are built of, read beside Spark: once for all indexes that keep them."""

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self

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
        self._packed: Future[bytes] | None = None
        self._lock = threading.Lock()

    def packed(self) -> "Future[bytes] | None":
        """Begun by the first who asks; None for a format whose files have none."""
        format = self._format
        if not isinstance(format, KeepsMaps):
            return None
        with self._lock:
            if self._packed is None:
                self._packed = self._aside.submit(self._pack, format)
            return self._packed

    def _pack(self, format: KeepsMaps) -> bytes:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return packed(format, self._ids, list(pool.map(format.map_of, data_files(self._files, self._store))))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._aside.shutdown(cancel_futures=True)
