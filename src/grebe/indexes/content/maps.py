"""Where the records of the covered files lie, kept beside an index, so that a lookup opens no data file to find a record in it.

`pages.gix`, sealed: how many files there are (4 bytes, little-endian), their ids (4 bytes each), and what the format packs.
"""

from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from grebe.errors import CorruptIndex
from grebe.files.untrusted import decoding
from grebe.formats import DataFile, KeepsMaps, Reading, format_named
from grebe.indexes.content.sealed import sealed, unsealed
from grebe.indexes.reading import Reader
from grebe.log.states import IndexState
from grebe.store.protocol import Store

NAME = "pages.gix"
_COUNT = 4
_AT_ONCE = 16 * 1024 * 1024
"""Larger maps are not worth their reading: the footers of the few files that are needed are less."""


def packed(format: KeepsMaps, ids: npt.NDArray[np.uint32], maps: Sequence[Any]) -> bytes:
    order = np.argsort(ids)
    head = len(ids).to_bytes(_COUNT, "little") + ids[order].astype("<u4").tobytes()
    return sealed(head + format.pack_maps([maps[place] for place in order.tolist()]))


@dataclass(frozen=True, eq=False)
class Maps(Mapping[int, Any]):
    """By file id; unpacked when asked for. Of some files nothing may be known."""

    ids: npt.NDArray[np.uint32]
    _maps: Sequence[Any] = field(repr=False)
    nbytes: int = 0

    @classmethod
    def of(cls, format: KeepsMaps, data: bytes, uri: str) -> "Maps":
        content = unsealed(data, uri)
        with decoding(lambda why: _refused(uri, why)):
            count = int.from_bytes(content[:_COUNT], "little")
            ids = np.frombuffer(content, "<u4", count, _COUNT)
            maps = format.unpack_maps(content[_COUNT + ids.nbytes :])
            if len(maps) != count or (ids[1:] <= ids[:-1]).any():
                raise ValueError(f"{len(maps)} maps of {count} files")
        return cls(ids, maps, len(data))

    def __getitem__(self, file: int) -> Any:
        place = int(np.searchsorted(self.ids, file))
        if place == len(self.ids) or self.ids[place] != file:
            raise KeyError(file)
        return self._maps[place]

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[int]:
        return iter(self.ids.tolist())


def _refused(uri: str, why: str) -> CorruptIndex:
    return CorruptIndex(f"{uri} cannot be read ({why}); refresh the index with mode='full'", detail="PAGE_MAP")


def joined(maps: Sequence[Maps]) -> Mapping[int, Any]:
    """Of several runs, which know different files."""
    return maps[0] if len(maps) == 1 else ChainMap(*cast("Sequence[dict[int, Any]]", maps))  # nothing is written to it


def read_maps(index: IndexState, reading: Reading, store: Store, reader: Reader) -> Mapping[int, Any]:
    """Those of an index that can be read in one go."""
    format = format_named(reading.format)
    if not isinstance(format, KeepsMaps):
        return {}
    files = [file for file in index.content if file.path.endswith(f"/{NAME}") and file.size <= _AT_ONCE]
    wanted = [(DataFile(store, file.path, file.size), 0, file.size) for file in files]
    read = reader.parsed(
        "maps", wanted, lambda at, data: Maps.of(format, data, wanted[at][0].uri), lambda made: made.nbytes
    )
    return joined(read)
