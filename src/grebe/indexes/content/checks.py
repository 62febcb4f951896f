"""Whether the files of an index are those that were written: by names, sizes and digests, and, if asked, by every page of them."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from grebe.errors import CorruptIndex, GrebeError
from grebe.files.untrusted import MOST_BYTES
from grebe.indexes.content.blocks import require_blocks
from grebe.indexes.content.copies import by_folder, listed
from grebe.indexes.content.directory import NAME, read_directory
from grebe.indexes.content.maps import NAME as MAPS
from grebe.indexes.content.parquet_table import read_parquet
from grebe.indexes.content.sealed import require, unsealed
from grebe.indexes.faults import Fault, fault
from grebe.log.entry import ContentFile
from grebe.log.states import IndexState
from grebe.store.protocol import ObjectMissing, Store

_AT_ONCE = 16


def faults_of(index: IndexState, store: Store, deep: bool) -> list[Fault]:
    """`deep` reads every byte."""
    tasks = [(folder, files) for folder, files in by_folder(index.content).items()]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return [found for folder, files in tasks for found in _of_run(index.name, store, folder, files, deep, pool)]


def _of_run(
    index: str, store: Store, folder: str, files: Sequence[ContentFile], deep: bool, pool: ThreadPoolExecutor
) -> Iterator[Fault]:
    try:
        directory = listed(read_directory(store, folder), store.uri, folder, list(files))
        tails = dict(
            zip(directory["path"].to_pylist(), directory.select(["tail", "tail_digest"]).to_pylist(), strict=True)
        )
    except GrebeError as problem:
        yield fault(index, f"{folder}/{NAME}", problem)
        tails = {}

    def check(file: ContentFile) -> Fault | None:
        try:
            check_file(file, store, tails.get(file.path), deep)
        except GrebeError as problem:
            return fault(index, file.path, problem)
        return None

    yield from (
        found for found in pool.map(check, (file for file in files if not file.path.endswith(f"/{NAME}"))) if found
    )


def check_file(file: ContentFile, store: Store, tail: dict[str, object] | None, deep: bool) -> None:
    uri = f"{store.uri}/{file.path}"
    try:
        size = store.stat(file.path).size
        if size != file.size:
            raise CorruptIndex(f"{uri} has {size:,} bytes and should have {file.size:,}", detail="SIZE")
        if file.path.endswith(f"/{MAPS}"):
            unsealed(store.get(file.path, MOST_BYTES), uri)
        length: int | None = None
        if tail is not None and not file.path.endswith(f"/{MAPS}"):
            told, digest = tail["tail"], tail["tail_digest"]
            assert isinstance(told, int)
            assert isinstance(digest, bytes)
            length = told
            require(store.get_range(file.path, size - length, length), digest, uri)
        if deep and file.rows:
            _read_whole(store.get(file.path, MOST_BYTES), file.rows, length, uri)
    except ObjectMissing as missing:
        raise CorruptIndex(f"{uri} is missing", detail="MISSING") from missing


def _read_whole(data: bytes, rows: int, tail: int | None, uri: str) -> None:
    """Every block has a checksum (of files of release 0.1: every page)."""
    table = read_parquet(data, uri)
    if tail is not None:
        require_blocks(data, table.schema.metadata, tail, uri)
    read = table.num_rows
    if read != rows:
        raise CorruptIndex(f"{uri} has {read:,} rows and should have {rows:,}", detail="ROWS")
