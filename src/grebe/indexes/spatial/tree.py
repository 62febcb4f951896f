"""The tree over the entries of one run, and its bytes: `tree.gix`.

The entries lie in chunks, the row groups of the content files. Of each chunk the tree knows what its corners lie between, and where
its bytes are; the chunks of a content file make a *branch*, and of each branch the *root* knows as much as the branch of a chunk.

    tree.gix   the branches, one after the other, then the root: sealed, as long as the log says (`ContentFile.footer`)
    branch     zstd: length of the page map (4 bytes, little-endian), the page map of the content file, an Arrow stream of its units
    root       an Arrow stream: of each content file its name and size, its branch's place, length and digest, and its unit

A small tree is read whole, in one request; of a large one the root, and then the branches that are needed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from grebe.errors import CorruptIndex
from grebe.files.arrow_stream import read_stream
from grebe.files.untrusted import decoding, unzstd
from grebe.formats import DataFile
from grebe.formats.parquet_pages import Footer, PageMap
from grebe.formats.spark_types import arrow_type, type_json
from grebe.indexes.content.bounds import column_of
from grebe.indexes.content.sealed import digest, require, sealed, unsealed
from grebe.indexes.content.statistics import bounds_of_groups, rows_of_groups
from grebe.indexes.spatial.shape import Corner
from grebe.predicate.arrow_types import from_arrow, to_physical
from grebe.predicate.bounds import Bounds, Flags, Numbers, by_bounds
from grebe.predicate.tree import Predicate
from grebe.predicate.verdicts import Verdicts

NAME = "tree.gix"
_COUNT = 4
_UNKNOWN = -1
_AT_LEAST, _MOST_TIMES = 16 * 1024 * 1024, 256
"""A branch may unpack to so many bytes, or so many times its own."""


@dataclass(frozen=True, eq=False)
class Units:
    """Chunks, or content files: what is known of the entries of each."""

    table: pa.Table
    """`rows`; `finite`: whether each entry has a finite box; and for the corners 0, 1, … `low`, `high` (null: unknown) and `nulls`
    (-1: unknown)."""
    corners: tuple[Corner, ...]

    @classmethod
    def checked(cls, table: pa.Table, corners: tuple[Corner, ...]) -> "Units":
        """Raises what `untrusted.decoding` turns into an error of ours where a column is not as it was written."""
        names = ["rows", *(f"nulls{number}" for number in range(len(corners)))]
        if any(not pa.types.is_int64(table[name].type) or table[name].null_count for name in names):
            raise ValueError("numbers of rows that are none")
        if not pa.types.is_boolean(table["finite"].type) or table["finite"].null_count:
            raise ValueError("flags that are none")
        made = cls(table, corners)
        if made.rows.min(initial=0) < 0 or made.boxes.shape != (len(table), 4):
            raise ValueError("bounds that are none")
        return made

    @property
    def rows(self) -> Numbers:
        return np.asarray(self.table["rows"].to_numpy(), np.int64)

    @property
    def finite(self) -> Flags:
        return np.asarray(self.table["finite"].to_numpy(zero_copy_only=False), np.bool_)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def bounds(self) -> list[Bounds]:
        """Of each corner, in its type's physical form."""
        known = self.__dict__.get("_bounds")
        if known is None:
            known = self.__dict__["_bounds"] = [self._bounds_of(*one) for one in enumerate(self.corners)]
        made: list[Bounds] = known
        return made

    def _bounds_of(self, number: int, corner: Corner) -> Bounds:
        low, high = (self.table[f"{end}{number}"].combine_chunks() for end in ("low", "high"))
        nulls = self.table[f"nulls{number}"].to_numpy()
        kind = from_arrow(low.type)
        return Bounds(
            corner.path, kind, to_physical(low, kind), to_physical(high, kind), nulls == 0, nulls == self.rows
        )

    @property
    def boxes(self) -> npt.NDArray[np.float64]:
        """xmin, ymin, xmax, ymax of each unit, as numbers that lie no further in; infinite where unknown."""
        known = self.__dict__.get("_boxes")
        if known is None:
            low = [_numbers(one.low, -np.inf) for one in self.bounds[:2]]
            high = [_numbers(one.high, np.inf) for one in self.bounds[-2:]]
            known = self.__dict__["_boxes"] = np.stack([*low, *high], axis=1)
        made: npt.NDArray[np.float64] = known
        return made

    def verdicts(self, predicate: Predicate) -> Verdicts | None:
        """What is known of a simple predicate; None if nothing is."""
        for bounds in self.bounds:
            found = by_bounds(bounds, predicate)
            if found is not None:
                return found
        return None


def _numbers(values: pa.Array, unknown: float) -> npt.NDArray[np.float64]:
    numbers = pc.fill_null(values.cast(pa.float64(), safe=False), unknown).to_numpy(zero_copy_only=False)
    if pa.types.is_floating(values.type):
        return np.asarray(numbers, np.float64)
    return np.asarray(np.nextafter(numbers, unknown))  # casting may have rounded


def joined(units: Sequence[Units]) -> Units:
    """All of several, one after the other; at least one."""
    if len(units) == 1:
        return units[0]
    return Units(pa.concat_tables([one.table for one in units]).combine_chunks(), units[0].corners)


def units_of(footer: Footer, corners: Sequence[Corner], finite: bool) -> Units:
    """The row groups of a content file. `finite`: it was written as a file of finite boxes, so that no NaN hides in it."""
    leaves = {leaf.path: number for number, leaf in enumerate(footer.schema.leaves)}
    rows = rows_of_groups(footer)
    columns: dict[str, Any] = {"rows": pa.array(rows), "finite": pa.array(np.full(len(rows), finite))}
    for number, corner in enumerate(corners):
        known = bounds_of_groups(footer, leaves[(corner.content.encode(),)], corner.type)
        unknown = [None] * len(rows)
        columns[f"low{number}"] = column_of(known.low if finite else unknown, corner.type)
        columns[f"high{number}"] = column_of(known.high if finite else unknown, corner.type)
        columns[f"nulls{number}"] = pa.array(known.nulls)
    return Units(pa.table(columns), tuple(corners))


def _summed(units: Units) -> dict[str, Any]:
    """All of them as one unit."""
    table = units.table
    row: dict[str, Any] = {"rows": int(units.rows.sum()), "finite": bool(units.finite.all())}
    for number in range(len(units.corners)):
        nulls = table[f"nulls{number}"].to_numpy()
        row[f"low{number}"] = _end(pc.min, table[f"low{number}"])
        row[f"high{number}"] = _end(pc.max, table[f"high{number}"])
        row[f"nulls{number}"] = int(nulls.sum()) if (nulls != _UNKNOWN).all() else _UNKNOWN
    return row


def _end(kernel: Any, values: pa.ChunkedArray) -> Any:
    return None if values.null_count or not len(values) else kernel(values).as_py()


@dataclass(frozen=True, eq=False)
class Branch:
    """The chunks of one content file."""

    file: DataFile
    pages: PageMap = field(repr=False)
    units: Units = field(repr=False)
    nbytes: int

    def packed(self) -> bytes:
        pages = self.pages.to_bytes()
        return len(pages).to_bytes(_COUNT, "little") + pages + _stream(self.units.table)


@dataclass(frozen=True, slots=True)
class Twig:
    """Where a branch lies in the tree's bytes."""

    file: DataFile
    """The content file that it is about."""
    start: int
    length: int
    whole: int
    """Its length before it was compressed."""
    digest: bytes = field(repr=False)

    def branch(self, data: bytes, corners: tuple[Corner, ...]) -> Branch:
        require(data, self.digest, self.file.uri)
        with decoding(lambda why: _refused(self.file.uri, why)):
            content = unzstd(data, self.whole, max(_AT_LEAST, _MOST_TIMES * len(data)))
            stop = _COUNT + int.from_bytes(content[:_COUNT], "little")
            pages = PageMap.from_bytes(content[_COUNT:stop])
            units = Units.checked(read_stream(content[stop:]), corners)
            if len(units) != len(pages.counts):
                raise ValueError("other chunks than the file has row groups")
        return Branch(self.file, pages, units, pages.nbytes + units.table.nbytes)


@dataclass(frozen=True, eq=False)
class Root:
    tree: DataFile
    twigs: tuple[Twig, ...]
    units: Units = field(repr=False)
    inside: bytes | None = field(repr=False)
    """All bytes of the tree, where it was read whole."""

    @property
    def nbytes(self) -> int:
        return int(self.units.table.nbytes) + len(self.inside or b"")


def tree_bytes(branches: Sequence[Branch], corners: Sequence[Corner]) -> tuple[bytes, int]:
    """Of at least one branch; and how long the root at their end is."""
    blocks: list[bytes] = []
    rows: list[dict[str, Any]] = []
    start = 0
    for branch in branches:
        whole = branch.packed()
        block = pa.compress(whole, codec="zstd", asbytes=True)
        name = branch.file.path.rpartition("/")[2]
        place = {"start": start, "length": len(block), "whole": len(whole), "digest": digest(block)}
        rows.append({"name": name, "size": branch.file.size, **place, **_summed(branch.units)})
        blocks.append(block)
        start += len(block)
    ends = {f"{end}{at}": arrow_type(type_json(one.type)) for at, one in enumerate(corners) for end in ("low", "high")}
    schema = pa.schema(
        [
            ("name", pa.string()),
            *((one, pa.int64()) for one in ("size", "start", "length", "whole", "rows")),
            ("digest", pa.binary()),
            ("finite", pa.bool_()),
            *ends.items(),
            *((f"nulls{number}", pa.int64()) for number in range(len(corners))),
        ]
    )
    root = sealed(_stream(pa.Table.from_pylist(rows, schema)))
    return b"".join(blocks) + root, len(root)


def read_root(tree: DataFile, length: int, data: bytes, corners: tuple[Corner, ...]) -> Root:
    """`data` is the end of the tree, with all of its root, or all of it."""
    with decoding(lambda why: _refused(tree.uri, why)):
        table = read_stream(unsealed(data[len(data) - length :], tree.uri))
        folder = tree.path.rpartition("/")[0]
        numbers = [_numbers_of(table, name) for name in ("size", "start", "length", "whole")]
        twigs = [
            Twig(DataFile(tree.store, f"{folder}/{_name(name)}", size), start, long, whole, bytes(digest))
            for name, size, start, long, whole, digest in zip(
                table["name"].to_pylist(), *numbers, table["digest"].to_pylist(), strict=True
            )
        ]
        if any(twig.start + twig.length > tree.size for twig in twigs):
            raise ValueError("a branch lies outside the tree")
        return Root(tree, tuple(twigs), Units.checked(table, corners), data if len(data) == tree.size else None)


def _numbers_of(table: pa.Table, name: str) -> list[int]:
    """A column of numbers, none of them NULL or negative."""
    column = table[name]
    if not pa.types.is_int64(column.type) or column.null_count or pc.any(pc.less(column, 0)).as_py():
        raise ValueError(f"{name} is not what it was written as")
    return list(column.to_pylist())


def _name(name: object) -> str:
    if not isinstance(name, str) or not name or "/" in name:
        raise ValueError("a file of another folder")
    return name


def _refused(uri: str, why: str) -> CorruptIndex:
    return CorruptIndex(f"{uri} is no tree of an index ({why}); refresh the index with mode='full'", detail="TREE")


def _stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue().to_pybytes())
