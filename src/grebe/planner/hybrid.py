"""What of a scan is read from a copy, what directly, and what is left out: the one rule of Grebe, applied to sets of files."""

from dataclasses import dataclass
from functools import lru_cache

from grebe.files import FileIds
from grebe.indexes.kind import Copy
from grebe.planner.query import Relation
from grebe.planner.tables import KnownTable

_NONE = FileIds.of([])
_KEPT = 64


@dataclass(frozen=True, slots=True)
class Coverage:
    served: FileIds
    """Files that the query reads and the copy covers: from the copy."""
    drop: FileIds
    """Files whose rows lie in the copy but are none of the query's: to be told apart by lineage."""
    direct_files: int
    """Files that the query reads and the copy does not cover: directly."""
    direct_bytes: int
    source_bytes: int
    """Of all files whose rows lie in the copy."""
    appended: float
    """The share of the query's bytes that is read directly."""
    deleted: float
    """The share of the copy's source bytes that belongs to files which are gone from the table."""

    @property
    def exact(self) -> bool:
        """The copy holds the rows of the query's files and no others."""
        return not self.drop and self.direct_files == 0


def coverage(relation: Relation, table: KnownTable, copy: Copy) -> Coverage:
    # What rows of a file were deleted since only the format's own reader knows.
    usable = relation.listed - relation.deleted if relation.deleted else relation.listed
    served, drop = (usable, _NONE) if usable == copy.covered else _split(usable, copy.covered)
    direct_files = len(relation.listed) - len(served) + relation.unregistered_files
    served_bytes = table.bytes_of(served) if direct_files else relation.bytes
    direct_bytes = relation.bytes - served_bytes
    dropped_bytes = table.bytes_of(drop) if drop else 0
    source_bytes = served_bytes + dropped_bytes
    return Coverage(
        served=served,
        drop=drop,
        direct_files=direct_files,
        direct_bytes=direct_bytes,
        source_bytes=source_bytes,
        appended=_share(direct_bytes, relation.bytes, direct_files),
        deleted=_share(dropped_bytes, source_bytes, len(drop)) if drop and relation.whole else 0.0,
    )


@lru_cache(maxsize=_KEPT)
def _split(listed: FileIds, covered: FileIds) -> tuple[FileIds, FileIds]:
    """What is served, and what is dropped."""
    served = listed & covered
    return served, covered - served


def _share(part: int, whole: int, files: int) -> float:
    """Files without bytes (empty ones) are no share, but if all are such then the files themselves decide."""
    return part / whole if whole else float(files > 0)
