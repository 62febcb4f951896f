"""The dictionary of a column chunk, decoded: worth keeping, since most lookups in a chunk need it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from grebe.formats.parquet_pages.compression import inflate
from grebe.formats.parquet_pages.failures import Damaged
from grebe.formats.parquet_pages.headers import DICTIONARY, PLAIN, PLAIN_DICTIONARY, read_header
from grebe.formats.parquet_pages.schema import Leaf
from grebe.formats.parquet_pages.texts import text_places

_OVERHEAD = 200


@dataclass(frozen=True, slots=True, eq=False)
class Dictionary:
    data: memoryview
    width: int
    count: int
    places: npt.NDArray[np.int32] | None
    """Of texts, where each starts behind its length, and the end; None for values of one width."""

    @property
    def nbytes(self) -> int:
        return len(self.data) + (self.places.nbytes if self.places is not None else 0) + _OVERHEAD

    def values(self, numbers: Sequence[int]) -> bytes | list[bytes]:
        """Values of one width one after the other, texts apart."""
        if max(numbers) >= self.count:
            raise Damaged("a value is not in the dictionary")
        if self.places is not None:
            places = self.places
            return [bytes(self.data[places[number] : places[number + 1] - 4]) for number in numbers]
        width = self.width
        if len(numbers) == 1:
            return bytes(self.data[numbers[0] * width : (numbers[0] + 1) * width])
        return np.frombuffer(self.data, np.uint8).reshape(-1, width)[numbers].tobytes()


class Dictionaries(Protocol):
    """Those of one file that are kept, by where their pages start. Whoever keeps them bounds them by their `nbytes`; both
    methods are called from many threads, and what was put may be gone at any time."""

    def get(self, start: int) -> Dictionary | None: ...

    def put(self, start: int, dictionary: Dictionary) -> None: ...


def read_dictionary(leaf: Leaf, codec: int, part: memoryview) -> Dictionary:
    """From the bytes of its page."""
    header = read_header(part)
    if header.kind != DICTIONARY or header.encoding not in (PLAIN, PLAIN_DICTIONARY):
        raise Damaged("a dictionary page is none")
    if header.length + header.stored > len(part):
        raise Damaged("a dictionary page is cut short")
    data = inflate(codec, part[header.length : header.length + header.stored], header.size)
    if codec == 0:
        # A view of what the caller read would keep all of that alive.
        data = memoryview(bytes(data))
    if leaf.width:
        if len(data) != header.entries * leaf.width:
            raise Damaged("a dictionary page has another length than its values")
        return Dictionary(data, leaf.width, header.entries, None)
    return Dictionary(data, 0, header.entries, text_places(leaf, header.entries, data))
