"""The footer of a Parquet file, and where its page indexes and Bloom filters lie."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from grebe.formats.parquet_pages.failures import Damaged, NoPages, naming
from grebe.formats.parquet_pages.schema import FileSchema, pack_schema, schema_of
from grebe.formats.parquet_pages.thrift import STRUCTS, Spans, Struct, read_field, read_struct, require_kinds
from grebe.formats.protocol import DataFile

# One request for this much spares most files a second one.
TAIL_BYTES = 64 * 1024
_ENDING = 8
_MAGIC, _ENCRYPTED = b"PAR1", b"PARE"
_ROWS = 3
_LISTS = dict.fromkeys((2, 4, 5, 7), (STRUCTS,))
"""Of the schema's elements, row groups, pairs of texts and orders of columns."""


@dataclass(frozen=True, slots=True)
class Footer:
    schema: FileSchema
    groups: tuple[Struct, ...]
    """`RowGroup`s of Parquet's metadata, by field number."""
    rows: int
    start: int
    """Of the footer in the file."""
    tail_start: int
    tail: bytes
    """The end of the file, that was read on the way."""

    def only(self, groups: Sequence[int]) -> "Footer":
        """With just these row groups."""
        kept = tuple(self.groups[group] for group in groups)
        return replace(self, groups=kept, rows=sum(group[3] for group in kept))

    def inside_tail(self, start: int, length: int) -> bytes | None:
        place = start - self.tail_start
        return self.tail[place : place + length] if place >= 0 else None


def footer_length(ending: bytes) -> int:
    """From the last bytes of a file, at least eight."""
    if len(ending) < _ENDING or ending[-4:] not in (_MAGIC, _ENCRYPTED):
        raise Damaged("it does not end as one")
    return int.from_bytes(ending[-_ENDING:-4], "little")


def read_tail(file: DataFile, tail_bytes: int = TAIL_BYTES) -> tuple[bytes, int]:
    """The end of the file, with all of its footer, and where that end begins: in one request, or two if the footer is
    longer than `tail_bytes`."""
    start = max(0, file.size - tail_bytes)
    tail = file.read(start, file.size - start)
    with naming(file.uri):
        needed = footer_length(tail) + _ENDING
        if needed > file.size:
            raise Damaged("its footer is longer than the file")
    if needed > len(tail):
        start = file.size - needed
        tail = file.read(start, needed)
    return tail, start


def read_footer(file: DataFile, tail_bytes: int = TAIL_BYTES) -> Footer:
    tail, start = read_tail(file, tail_bytes)
    with naming(file.uri):
        return parse_footer(tail, start)


def read_row_count(file: DataFile) -> int:
    """Return the number of rows that the footer states, without reading what it says of row groups."""
    tail, _ = read_tail(file)
    with naming(file.uri):
        if tail[-4:] == _ENCRYPTED:
            raise Damaged("its footer is encrypted")
        rows = read_field(tail, len(tail) - _ENDING - footer_length(tail), _ROWS)
        if not isinstance(rows, int) or rows < 0:
            raise Damaged("it says of no number how many rows it has")
        return rows


def parse_footer(tail: bytes, tail_start: int) -> Footer:
    """From the end of a file, that holds all of the footer."""
    if tail[-4:] == _ENCRYPTED:
        raise NoPages("its footer is encrypted")
    place = len(tail) - _ENDING - footer_length(tail)
    data = tail[place:-_ENDING]
    spans: Spans = {}
    meta, _ = read_struct(data, 0, spans)
    require_kinds(meta, _LISTS)
    start, stop = spans[2]
    schema = schema_of(pack_schema(data[start:stop], meta.get(6, b""), meta.get(5, ())))
    groups = tuple(meta[4])
    if any(len(group[1]) != len(schema.leaves) for group in groups):
        raise Damaged("a row group has other columns than the schema")
    rows = sum(group[3] for group in groups)
    if rows != meta[3] or any(group[3] < 0 for group in groups):
        raise Damaged(f"its row groups have {rows} rows and it says {meta[3]}")
    return Footer(schema, groups, rows, tail_start + place, tail_start, tail)


def tail_length(footer: Footer, size: int) -> int:
    """How much of the end of a file holds all that is known of its chunks."""
    columns: list[Struct] = [column for group in footer.groups for column in group[1]]
    starts = [column.get(number) for column in columns for number in (4, 6)]
    starts += [column.get(3, {}).get(14) for column in columns]
    return size - min([start for start in starts if start], default=footer.start)
