"""What a build wrote: its content files are looked at once, and the tree over their chunks is written beside them."""

import re
from concurrent.futures import ThreadPoolExecutor

from grebe.errors import CorruptIndex, UnreadableFile
from grebe.formats import DataFile
from grebe.formats.parquet_pages import PageMap, read_footer
from grebe.indexes.spatial.shape import places_of
from grebe.indexes.spatial.tree import NAME, Branch, tree_bytes, units_of
from grebe.log.entry import ContentFile, IndexSpec
from grebe.store.protocol import ObjectInfo, Store

_PARTITION = re.compile(r"_(\d+)\.gix$")
_AT_ONCE = 16


def describe(index: str, spec: IndexSpec, folder: str, store: Store) -> tuple[ContentFile, ...]:
    corners, odd = places_of(index, spec).corners, int(spec.properties["odd_parts"])
    found = list(store.list(folder))
    numbered = {one.path: int(match[1]) for one in found if (match := _PARTITION.search(one.path)) is not None}

    def examine(one: ObjectInfo) -> tuple[Branch, int]:
        file = DataFile(store, one.path, one.size)
        try:
            footer = read_footer(file)
            pages = PageMap.from_footer(file, footer)
        except UnreadableFile as problem:
            raise CorruptIndex(f"what was written cannot be read: {problem.args[0]}", detail="CONTENT") from problem
        return Branch(file, pages, units_of(footer, corners, numbered[one.path] >= odd), 0), file.size - footer.start

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        examined = list(pool.map(examine, [one for one in found if one.path in numbered]))
        written = [one for one in examined if one[0].pages.rows]
        # Checksums that Hadoop keeps beside local files, and files without rows: the log knows nothing of them.
        kept = {branch.file.path for branch, _ in written}
        list(pool.map(store.delete, [one.path for one in found if one.path not in kept]))
    if not written:
        return ()
    # The number of a file within its partition has three digits, or more.
    written.sort(key=lambda one: (numbered[one[0].file.path], len(one[0].file.path), one[0].file.path))
    data, root = tree_bytes([branch for branch, _ in written], corners)
    store.put(f"{folder}/{NAME}", data)
    content = (ContentFile(one.file.path, one.file.size, one.pages.rows, footer) for one, footer in written)
    return (*content, ContentFile(f"{folder}/{NAME}", len(data), 0, root))
