"""Whether the footer of a Parquet file fits the file, before Arrow is given it: over some that do not, Arrow ends the process."""

from collections.abc import Collection

from grebe.formats.parquet_pages.failures import Damaged, naming
from grebe.formats.parquet_pages.footer import Footer, footer_length, parse_footer
from grebe.formats.parquet_pages.headers import read_header
from grebe.formats.parquet_pages.schema import FIXED, Leaf
from grebe.formats.parquet_pages.thrift import Struct
from grebe.formats.range_file import RangeFile

_ENDING = 8
_ENCRYPTED = b"PARE"
_MOST_LEVELS = 64
_MOST_WIDTH = 1 << 20
_MOST_UNPACKED = 256 * 1024 * 1024
_MOST_VALUES = _MOST_UNPACKED // 8
_SPANS = ((4, 5), (6, 7))
"""Fields of a column chunk: where its page indexes begin, and how long they are."""


def require_structure(raw: RangeFile) -> None:
    """Raise `UnreadableFile` where the footer contradicts itself or the file."""
    size, place = raw.file.size, raw.tell()
    raw.seek(max(0, size - _ENDING))
    ending = raw.read(_ENDING)
    with naming(raw.file.uri):
        length = footer_length(ending) + _ENDING
        if length > size:
            raise Damaged("its footer is longer than the file")
    raw.seek(size - length)
    tail = raw.read(length)
    raw.seek(place)
    checked_footer(tail, size - length, raw.file.uri)


def checked_footer(tail: bytes, tail_start: int, uri: str) -> Footer | None:
    """Return the footer at the end of a file, or None if it is encrypted: that is left to Arrow. Raise `UnreadableFile` where it
    contradicts itself or the file."""
    if tail[-4:] == _ENCRYPTED:
        return None
    with naming(uri):
        footer = parse_footer(tail, tail_start)
        check_footer(footer)
    return footer


def check_footer(footer: Footer) -> None:
    """Raise `Damaged`, or what `naming` takes for damage."""
    for leaf in footer.schema.leaves:
        if max(leaf.max_definition, leaf.max_repetition, len(leaf.path)) > _MOST_LEVELS:
            raise Damaged("its schema is nested too deeply")
        if leaf.physical == FIXED and not 0 < leaf.width <= _MOST_WIDTH:
            raise Damaged("a column has values of no width")
        for name in leaf.path:
            name.decode()
    for group in footer.groups:
        for leaf, column in zip(footer.schema.leaves, group[1], strict=True):
            _check_chunk(leaf, column, footer.start)


def check_whole(data: bytes, paths: Collection[tuple[bytes, ...]] | None = None) -> None:
    """Raise `Damaged`, or what `naming` takes for damage, where the footer or a page of a whole file is not to be given to Arrow.
    `paths`: looks at the pages of these columns only."""
    if footer_length(data) + _ENDING > len(data):
        raise Damaged("its footer is longer than the file")
    footer = parse_footer(data, 0)
    check_footer(footer)
    check_pages(data, footer, paths)


def check_pages(data: bytes, footer: Footer, paths: Collection[tuple[bytes, ...]] | None = None) -> None:
    """Raise `Damaged` if a page of a whole file lies outside its chunk, or if the pages unpack to more than a small file may: Arrow
    takes the memory that their headers ask for before it looks at the bytes. `paths`: of these columns only."""
    view, unpacked, values = memoryview(data), 0, 0
    for group in footer.groups:
        for column in group[1]:
            meta = column[3]
            if not meta[5] or (paths is not None and tuple(meta[3]) not in paths):
                continue  # no values: the offsets may be 0, and Arrow reads no page
            offset = min(meta.get(11) or meta[9], meta[9])
            stop = offset + meta[7]
            while offset < stop:
                header = read_header(view[:stop], offset)
                offset += header.length + header.stored
                unpacked, values = unpacked + header.size, values + header.entries
                if offset > stop:
                    raise Damaged("a page is longer than its column chunk")
                if unpacked > _MOST_UNPACKED or values > _MOST_VALUES:
                    raise Damaged("its pages unpack to more than such a file may hold")


def _check_chunk(leaf: Leaf, column: Struct, stop: int) -> None:
    for first, second in _SPANS:
        start, length = column.get(first, 0), column.get(second, 0)
        if start < 0 or length < 0 or start + length > stop:
            raise Damaged("a page index lies outside the file")
    meta = column.get(3)
    if meta is None or 8 in column:
        return  # encrypted
    if meta[1] != leaf.physical or tuple(meta[3]) != leaf.path:
        raise Damaged("a column chunk is of another column")
    start = min(meta.get(11) or meta[9], meta[9])
    if meta[5] < 0 or meta[6] < 0 or meta[7] < 0 or start < 0 or start + meta[7] > stop:
        raise Damaged("a column chunk lies outside the file")
    sizes = meta.get(16, {})
    for field, highest in ((2, leaf.max_repetition), (3, leaf.max_definition)):
        if field in sizes and len(sizes[field]) not in (0, highest + 1):
            raise Damaged("a count of levels has other levels than the column")
