"""Digests of the ends of files: a part of their identity where the setting `identity` is `footer`.

The end of a Parquet or ORC file is its footer, with the statistics and the offsets of all that lies before: other rows leave it as
it is only if they have the same bounds and take the same bytes. It is read again whenever files are listed, so it costs a request
for each file.
"""

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from grebe.clock import SYSTEM
from grebe.errors import SourceChanged
from grebe.files import FileList
from grebe.formats import DataFile
from grebe.store.protocol import Store

_END_BYTES = 64 * 1024
_AT_ONCE = 16


def with_ends(files: FileList, store: Store) -> FileList:
    """Return the same files, each with the digest of its end. `store` is that of the table's own files."""
    here = files.rebased(store.uri)
    facts = (here.table[name].to_pylist() for name in ("size", "modified_ms", "etag"))
    listed = [DataFile(store, *each) for each in zip(here.paths().to_pylist(), *facts, strict=True)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        digests: Sequence[str] = list(pool.map(_end_of, listed))
    return files.with_ends(digests)


def _end_of(file: DataFile) -> str:
    try:
        end = file.read(max(0, file.size - _END_BYTES), _END_BYTES)
    except SourceChanged:
        return f"changed {SYSTEM.new_id()}"  # since it was listed: like no other, and so not covered
    return hashlib.blake2b(end, digest_size=16).hexdigest()
