"""What is written to the log: an entry is a number, the id of its transaction, and the changes it makes, in order."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from grebe.files import FileIds
from grebe.formats.recorded import properties_without_secrets, without_secrets

FORMAT = 1
"""Version of everything under a table's `_grebe` folder. A reader that meets a higher one uses no index."""


NO_FILES = FileIds.of_ranges(())


class Verb(StrEnum):
    CREATE = "create"
    DELETE = "delete"
    OPTIMIZE = "optimize"
    REFRESH = "refresh"
    REPAIR = "repair"
    RESTORE = "restore"
    VACUUM = "vacuum"


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes. `host` tells process tables apart, not only machines: two containers of one host differ."""

    host: str
    pid: int
    process_start: str
    name: str
    """For people: user and host name."""


@dataclass(frozen=True, slots=True)
class TableInfo:
    """The table that the log belongs to, and how it is read (`reading`: the plain data of `formats.Reading`)."""

    uri: str
    source: str
    reading: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Whoever wrote the log: what it says of options is neither shown nor written again unless it belongs there.
        object.__setattr__(self, "reading", without_secrets(self.reading))


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """What was asked for: the kind, its columns, and whatever else the kind wants to remember, as plain data."""

    kind: str
    columns: tuple[str, ...]
    properties: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "properties", properties_without_secrets(self.properties))


@dataclass(frozen=True, slots=True)
class ContentFile:
    """One object of an index. Size and footer length are kept so that no reader needs a HEAD, or a guess at the footer."""

    path: str
    size: int
    rows: int = 0
    footer: int = 0


@dataclass(frozen=True, slots=True)
class Segment:
    """An object under `files/` that holds the identities of the files `first_id` … `first_id + count - 1`."""

    path: str
    first_id: int
    count: int
    size: int


class Change:
    """Base of all changes; `states` says what each does, and when it is impossible."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class TableCreated(Change):
    table: TableInfo


@dataclass(frozen=True, slots=True)
class FilesRegistered(Change):
    segment: Segment


@dataclass(frozen=True, slots=True)
class SegmentsMerged(Change):
    """The same files in fewer objects: `segment` replaces those at `replaced`."""

    replaced: tuple[str, ...]
    segment: Segment


@dataclass(frozen=True, slots=True)
class Prediction:
    """What an index would take, as it was told before it was built; `scale_*` is what measured builds had taught by then."""

    bytes: int
    seconds: float
    scale_bytes: float = 1.0
    scale_seconds: float = 1.0


@dataclass(frozen=True, slots=True)
class Measured:
    """What building an index took in the end, beside what was predicted."""

    predicted: Prediction
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Purpose:
    """Of an operation that somebody wants for a reason."""

    why: str = ""
    predicted: Mapping[str, Prediction] = field(default_factory=dict)
    """Of indexes that it makes."""
    most_bytes: int | None = None
    """What indexes of the table may take together."""
    budgeted: tuple[str, ...] = ()
    """Those that this is for; none: all."""


NO_PURPOSE = Purpose()


@dataclass(frozen=True, slots=True)
class OperationBegun(Change):
    id: str
    verb: Verb
    indexes: tuple[str, ...]
    writer: Writer
    heartbeat_seconds: float
    specs: Mapping[str, IndexSpec] = field(default_factory=dict)
    """Of a create: what it will make, so that others can be told."""
    purpose: Purpose = NO_PURPOSE


@dataclass(frozen=True, slots=True)
class OperationEnded(Change):
    id: str
    committed: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class IndexCreated(Change):
    name: str
    spec: IndexSpec
    version: int
    """The number of the begin entry of the operation that made it."""
    content: tuple[ContentFile, ...]
    covered: FileIds
    table_version: str = ""
    measured: Measured | None = None
    """Where somebody had predicted what it would take."""


@dataclass(frozen=True, slots=True)
class Keep:
    """How much of what was replaced stays, for queries of older versions of the table: so many versions of an index, the newest
    first, as long as they are no more than so many bytes together."""

    versions: int
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class IndexChanged(Change):
    """A refresh or an optimize as a difference, so that two which touch different parts commute.

    Rows of a file that is no longer covered stay in the content that holds them until it is rewritten: the file is *dormant*. So it
    cannot be covered anew, or its rows would be there twice; if the very same file comes back it is revived. Whoever writes content
    anew may leave rows of dormant files out, and says so in `purge`.
    """

    name: str
    version: int
    add: tuple[ContentFile, ...] = ()
    remove: tuple[str, ...] = ()
    cover: FileIds = NO_FILES
    """Files whose rows are in `add`."""
    uncover: FileIds = NO_FILES
    """Covered files that become dormant."""
    revive: FileIds = NO_FILES
    """Dormant files that are covered again."""
    purge: FileIds | None = None
    """Dormant files, or some of `uncover`, whose rows are in no content any more. None: all of them if all content is replaced, or
    else none."""
    table_version: str | None = None
    properties: Mapping[str, Any] | None = None
    keep: Keep | None = None
    """What of replaced content stays. None: what stays already, and no more."""
    seconds: float = 0.0
    """What it took to write."""
    columns: tuple[str, ...] | None = None
    """Of the spec, where they are spelled otherwise from now on."""
    problem: str | None = None
    """Why the index cannot be refreshed any more; empty: it can again. None: as before."""

    def __post_init__(self) -> None:
        if self.properties is not None:
            object.__setattr__(self, "properties", properties_without_secrets(self.properties))


@dataclass(frozen=True, slots=True)
class IndexDeleted(Change):
    """Out of use at once; its bytes stay, so that it can be restored."""

    name: str


@dataclass(frozen=True, slots=True)
class IndexRestored(Change):
    name: str


@dataclass(frozen=True, slots=True)
class IndexDropped(Change):
    """Gone for good: its content is retired."""

    name: str


@dataclass(frozen=True, slots=True)
class TableSeen(Change):
    """The table as a refresh of all its indexes found it: what readers with `consistency="snapshot"` see from then on."""

    files: FileIds
    version: str = ""
    """Of the table, where it has versions."""


@dataclass(frozen=True, slots=True)
class ContentForgotten(Change):
    """The bytes of these retired objects have been removed."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """`previous` is the digest of the entry before it, so that a lost or exchanged entry is noticed by whoever reads on."""

    number: int
    id: str
    previous: str
    action: str
    """For people: "refresh begin", "register", …"""
    at_ms: int
    """The writer's clock, for people. Order is by number only."""
    writer: Writer
    changes: tuple[Change, ...]
