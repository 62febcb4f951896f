"""Whether the footer of a Parquet file fits the file, before Arrow is given it: over some that do not, Arrow ends the process."""

from collections.abc import Collection

from grebe.formats.parquet_pages.failures import Damaged, naming
from grebe.formats.parquet_pages.footer import Footer, footer_length, parse_footer, read_tail
from grebe.formats.parquet_pages.headers import read_header
from grebe.formats.parquet_pages.schema import FIXED, Leaf
from grebe.formats.parquet_pages.thrift import BINARIES, INTEGERS, LONGS, STRUCTS, Struct, require_kinds
from grebe.formats.protocol import DataFile
from grebe.formats.range_file import RangeFile

_ENDING = 8
_ENCRYPTED = b"PARE"
_MOST_LEVELS = 64
_MOST_WIDTH = 1 << 20
_MOST_UNPACKED = 256 * 1024 * 1024
_MOST_VALUES = _MOST_UNPACKED // 8
_NUMBERS = (INTEGERS, LONGS)
_GROUP_LISTS = {1: (STRUCTS,), 4: (STRUCTS,)}
_CHUNK_LISTS = {2: _NUMBERS, 3: (BINARIES,), 8: (STRUCTS,), 13: (STRUCTS,)}
_SIZE_LISTS = {2: _NUMBERS, 3: _NUMBERS}
_GEO_LISTS = {2: _NUMBERS}
_KEY_LISTS = {1: (BINARIES,)}
_SPANS = ((4, 5), (6, 7))
"""Fields of a column chunk: where its page indexes begin, and how long they are."""


def require_structure(raw: RangeFile) -> Footer:
    """Return the footer of a file. Raise `UnreadableFile` where it contradicts itself or the file, or is encrypted.

    What was read is kept, so that whoever parses the footer of `raw` afterwards gets the same bytes, without another request."""
    size = raw.file.size
    ending = raw.keep_tail(_ENDING)
    with naming(raw.file.uri):
        length = footer_length(ending) + _ENDING
        if length > size:
            raise Damaged("its footer is longer than the file")
    tail = raw.keep_tail(length)
    return _checked(tail, size - len(tail), raw.file.uri)


def read_checked_footer(file: DataFile) -> Footer:
    """Return the footer of a file of which nothing else is read. Raise as `require_structure` does."""
    tail, start = read_tail(file)
    return _checked(tail, start, file.uri)


def _checked(tail: bytes, tail_start: int, uri: str) -> Footer:
    with naming(uri):
        if tail[-4:] == _ENCRYPTED:
            raise Damaged("its footer is encrypted")
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
        require_kinds(group, _GROUP_LISTS)
        if not isinstance(group[3], int):
            raise Damaged("a row group has no number of rows")
        for leaf, column in zip(footer.schema.leaves, group[1], strict=True):
            _check_chunk(leaf, column, footer.start)


def check_whole(data: bytes, columns: Collection[str] | None = None, *, by_page: bool = False) -> None:
    """Raise `Damaged`, or what `naming` takes for damage, where the footer or a page of a whole file is not to be given to Arrow.
    `columns`: look at the pages of these only, or of what is nested in them. `by_page`: limit what one page unpacks to, not all."""
    if footer_length(data) + _ENDING > len(data):
        raise Damaged("its footer is longer than the file")
    footer = parse_footer(data, 0)
    check_footer(footer)
    _check_pages(data, footer, columns, by_page=by_page)


def _check_pages(data: bytes, footer: Footer, columns: Collection[str] | None, *, by_page: bool) -> None:
    """Raise `Damaged` if a page of a whole file lies outside its chunk, or if the pages unpack to more than a small file may: Arrow
    takes the memory that their headers ask for before it looks at the bytes."""
    view, unpacked, values = memoryview(data), 0, 0
    for group in footer.groups:
        for column in group[1]:
            if 3 not in column:
                continue  # encrypted
            meta = column[3]
            if not meta[5] or (columns is not None and not _is_among(b".".join(meta[3]).decode(), columns)):
                continue  # no values: the offsets may be 0, and Arrow reads no page
            offset = min(meta.get(11) or meta[9], meta[9])
            stop = offset + meta[7]
            while offset < stop:
                header = read_header(view[:stop], offset)
                offset += header.length + header.stored
                if by_page:
                    unpacked = values = 0
                unpacked, values = unpacked + header.size, values + header.entries
                if offset > stop:
                    raise Damaged("a page is longer than its column chunk")
                if unpacked > _MOST_UNPACKED or values > _MOST_VALUES:
                    raise Damaged("its pages unpack to more than such a file may hold")


def _is_among(leaf: str, columns: Collection[str]) -> bool:
    """As Arrow takes the names of columns."""
    return any(leaf == column or leaf.startswith(f"{column}.") for column in columns)


def _check_chunk(leaf: Leaf, column: Struct, stop: int) -> None:
    for first, second in _SPANS:
        start, length = column.get(first, 0), column.get(second, 0)
        if start < 0 or length < 0 or start + length > stop:
            raise Damaged("a page index lies outside the file")
    if 8 in column:
        require_kinds(column[8].get(2, {}), _KEY_LISTS)
    meta = column.get(3)
    if meta is None:
        if 8 not in column:
            raise Damaged("a column chunk does not say where it lies")
        return  # encrypted
    sizes = meta.get(16, {})
    for fields, kinds in ((meta, _CHUNK_LISTS), (sizes, _SIZE_LISTS), (meta.get(17, {}), _GEO_LISTS)):
        require_kinds(fields, kinds)
    if meta[1] != leaf.physical or tuple(meta[3]) != leaf.path:
        raise Damaged("a column chunk is of another column")
    numbers = meta[5], meta[6], meta[7], meta[9], meta.get(11, 0)
    if not all(isinstance(one, int) for one in numbers):
        raise Damaged("a size of a column chunk is no number")
    start = min(meta.get(11) or meta[9], meta[9])
    if min(numbers) < 0 or start + meta[7] > stop:
        raise Damaged("a column chunk lies outside the file")
    for field, highest in ((2, leaf.max_repetition), (3, leaf.max_definition)):
        if field in sizes and len(sizes[field]) not in (0, highest + 1):
            raise Damaged("a count of levels has other levels than the column")
