"""What a build wrote: its content files are looked at, and the tree over their chunks is written beside them."""

import re
from concurrent.futures import ThreadPoolExecutor

from grebe.errors import CorruptIndex, UnreadableFile
from grebe.formats import DataFile
from grebe.formats.parquet_pages import PageMap, read_footer
from grebe.indexes.content import directory
from grebe.indexes.spatial.shape import WKB, Places, places_of
from grebe.indexes.spatial.tree import NAME, Branch, tree_bytes, units_of
from grebe.log.entry import ContentFile, IndexSpec
from grebe.store.protocol import Store

_PARTITION = re.compile(r"_([0-9]+)\.gix$")
_AT_ONCE = 16


def describe(index: str, spec: IndexSpec, folder: str, store: Store) -> tuple[ContentFile, ...]:
    """The directory holds digests, and of points and boxes bounds: they can stand in for the columns they are made of."""
    places, odd = places_of(index, spec), int(spec.properties["odd_parts"])
    if places.form == WKB:
        content = directory.describe_files(folder, store, (), bucketed=False)
    else:
        content = directory.describe(index, spec, folder, store)
    files = [file for file in content if file.path.rpartition("/")[2] != directory.NAME]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        branches = list(pool.map(lambda file: _branch(DataFile(store, file.path, file.size), places, odd), files))
    written = [branch for branch in branches if branch.pages.rows]
    if not written:
        return tuple(file for file in content if file not in files)
    data, root = tree_bytes(written, places.corners)
    store.put(f"{folder}/{NAME}", data)
    rows = {branch.file.path: branch.pages.rows for branch in written}
    counted = (
        ContentFile(file.path, file.size, rows.get(file.path, 0), file.footer)
        for file in content
        if file not in files or file.path in rows
    )
    return (*counted, ContentFile(f"{folder}/{NAME}", len(data), 0, root))


def _branch(file: DataFile, places: Places, odd: int) -> Branch:
    try:
        footer = read_footer(file)
        pages = PageMap.from_footer(file, footer)
    except UnreadableFile as problem:
        raise CorruptIndex(f"what was written cannot be read: {problem.args[0]}", detail="CONTENT") from problem
    return Branch(file, pages, units_of(footer, places.corners, _partition(file.path) >= odd), 0)


def _partition(path: str) -> int:
    found = _PARTITION.search(path)
    if found is None:
        raise CorruptIndex(f"{path} is no content of an index", detail="CONTENT")
    return int(found[1])
