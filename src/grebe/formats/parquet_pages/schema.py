"""What all files of one writer and one schema share: the tree of columns, kept in the writer's own bytes so that a small
file re-emitted with it means the same to every reader.
"""

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import pyarrow as pa

from grebe.formats.parquet_pages.failures import Damaged, NoPages
from grebe.formats.parquet_pages.thrift import (
    BINARIES,
    INTEGERS,
    STRUCTS,
    Struct,
    binary,
    field_kinds,
    list_head,
    read_struct,
    varint,
)

BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTE_ARRAY, FIXED = range(8)
_WIDTHS = {BOOLEAN: 0, INT32: 4, INT64: 8, INT96: 12, FLOAT: 4, DOUBLE: 8, BYTE_ARRAY: 0}
_REPEATED = 2
_KINDS = {**dict.fromkeys((1, 2, 3, 5, 6, 7, 8, 9), INTEGERS), 4: BINARIES, 10: STRUCTS}
"""How the fields of an element are written."""
ARROW_SCHEMA = b"ARROW:schema"
_OLD_WRITER = re.compile(rb"parquet-mr version (\d+)\.(\d+)")
_SCHEMAS_KEPT = 256


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column of values."""

    path: tuple[bytes, ...]
    physical: int
    width: int
    """In bytes; 0 where values have none (booleans) or each its own."""
    max_definition: int
    max_repetition: int


@dataclass(frozen=True, slots=True)
class Top:
    """A column as users see it, with all that is nested in it."""

    name: str
    elements: bytes
    """Its part of the schema, as written."""
    element_count: int
    leaves: range
    field_id: int | None = None
    """As a table format gave it."""


@dataclass(frozen=True, eq=False)
class FileSchema:
    """Compared by identity: `schema_of` gives one object for equal bytes."""

    blob: bytes = field(repr=False)
    tops: tuple[Top, ...]
    leaves: tuple[Leaf, ...]
    created_by: bytes
    arrow_bytes: bytes = field(repr=False)

    @cached_property
    def names(self) -> dict[str, int]:
        """The numbers of the columns; none for a name that several have."""
        numbers = {top.name: number for number, top in enumerate(self.tops)}
        doubled = {top.name for number, top in enumerate(self.tops) if numbers[top.name] != number}
        return {name: number for name, number in numbers.items() if name not in doubled}

    @cached_property
    def arrow(self) -> pa.Schema | None:
        """The schema that Arrow stored for itself: types that Parquet has not."""
        if not self.arrow_bytes:
            return None
        schema = pa.ipc.read_schema(pa.py_buffer(self.arrow_bytes))
        if schema.names != [top.name for top in self.tops]:
            raise NoPages("the Arrow schema stored in it is that of other columns")
        return schema

    @cached_property
    def delta_strings_cross_pages(self) -> bool:
        """A defect of old writers (PARQUET-246): a page of DELTA_BYTE_ARRAY goes on from the one before."""
        version = _OLD_WRITER.match(self.created_by)
        return version is not None and (int(version[1]), int(version[2])) < (1, 8)


def pack_schema(elements: bytes, created_by: bytes, key_values: Sequence[Struct]) -> bytes:
    """The bytes of `FileSchema` from those of a footer: its list of elements as written, with the head of the list."""
    stored = next((pair.get(2, b"") for pair in key_values if pair[1] == ARROW_SCHEMA), b"")
    return b"".join((binary(created_by), binary(base64.b64decode(stored)), elements))


@lru_cache(maxsize=_SCHEMAS_KEPT)
def schema_of(blob: bytes) -> FileSchema:
    length, place = varint(blob, 0)
    created_by, place = blob[place : place + length], place + length
    length, place = varint(blob, place)
    arrow_bytes, place = blob[place : place + length], place + length
    elements, bounds = _elements(blob, place)
    tops, leaves = _tree(elements, blob, bounds)
    return FileSchema(blob, tuple(tops), tuple(leaves), created_by, arrow_bytes)


def _elements(blob: bytes, place: int) -> tuple[list[Struct], list[int]]:
    """The elements, and the places where each begins and the last ends."""
    count, _, place = list_head(blob, place)
    elements, bounds = [], [place]
    for _ in range(count):
        if any(kind != _KINDS.get(number, kind) for number, kind in field_kinds(blob, place).items()):
            raise Damaged("a field of its schema is of another type")
        element, place = read_struct(blob, place)
        elements.append(element)
        bounds.append(place)
    return elements, bounds


def _tree(elements: Sequence[Struct], blob: bytes, bounds: Sequence[int]) -> tuple[list[Top], list[Leaf]]:
    leaves: list[Leaf] = []

    def below(number: int, path: tuple[bytes, ...], definition: int, repetition: int) -> int:
        """Collects the leaves at and below this element; the number of the element after them."""
        element = elements[number]
        path = (*path, element[4])
        kind = element.get(3, 0)
        if kind not in (0, 1, _REPEATED) or (1 in element) == bool(element.get(5, 0)):
            raise Damaged("an element of its schema is neither a column nor a group")
        definition += kind != 0
        repetition += kind == _REPEATED
        number += 1
        if 1 in element:
            width = element.get(2, 0) if element[1] == FIXED else _WIDTHS[element[1]]
            leaves.append(Leaf(path, element[1], width, definition, repetition))
        for _ in range(element.get(5, 0)):
            number = below(number, path, definition, repetition)
        return number

    tops: list[Top] = []
    number = 1
    for _ in range(elements[0].get(5, 0)):
        start, first = number, len(leaves)
        number = below(start, (), 0, 0)
        name = elements[start][4].decode()
        elements_of = blob[bounds[start] : bounds[number]]
        tops.append(Top(name, elements_of, number - start, range(first, len(leaves)), elements[start].get(9)))
    if number != len(elements):
        raise Damaged(f"its schema has {len(elements)} elements and uses {number}")
    return tops, leaves
