"""What a statement says. Each is one verb of `LakeTable` or `Lake`."""

from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from grebe.indexes.kind import Kind

INDEXES = (
    "name STRING, kind STRING, columns ARRAY<STRING>, state STRING, files_covered BIGINT, files_stale BIGINT, "
    "rows BIGINT, bytes BIGINT, created_at TIMESTAMP, refreshed_at TIMESTAMP, operations ARRAY<STRING>, table STRING"
)
"""The columns of statements whose result is indexes: fields of `IndexInfo`, and the table."""


@dataclass(frozen=True, slots=True)
class TableName:
    """A name of the catalog, or a format and a path: parquet.`/data/orders`."""

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CreateIndex:
    columns: ClassVar[str] = INDEXES
    table: TableName
    index: Kind
    replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class ShowIndexes:
    columns: ClassVar[str] = INDEXES
    table: TableName | None
    """None: of all tables that the session has met."""


@dataclass(frozen=True, slots=True)
class DescribeIndex:
    columns: ClassVar[str] = "fact STRING, value STRING"
    table: TableName
    name: str


@dataclass(frozen=True, slots=True)
class ShowHistory:
    columns: ClassVar[str] = "number BIGINT, at TIMESTAMP, action STRING, writer STRING, changes ARRAY<STRING>"
    table: TableName


@dataclass(frozen=True, slots=True)
class RefreshIndexes:
    columns: ClassVar[str] = INDEXES
    table: TableName
    names: tuple[str, ...] = ()
    mode: str = "incremental"


@dataclass(frozen=True, slots=True)
class OptimizeIndexes:
    columns: ClassVar[str] = INDEXES
    table: TableName
    names: tuple[str, ...] = ()
    mode: str = "quick"


@dataclass(frozen=True, slots=True)
class DropIndex:
    """As `delete`: `RESTORE INDEX` brings it back until it is vacuumed."""

    columns: ClassVar[str] = INDEXES
    table: TableName
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RestoreIndex:
    columns: ClassVar[str] = INDEXES
    table: TableName
    name: str


@dataclass(frozen=True, slots=True)
class VacuumIndexes:
    columns: ClassVar[str] = (
        "indexes ARRAY<STRING>, objects BIGINT, bytes BIGINT, waiting BIGINT, dry_run BOOLEAN, paths ARRAY<STRING>"
    )
    table: TableName
    name: str | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class CancelIndex:
    columns: ClassVar[str] = "cancelled STRING"
    table: TableName
    name: str


@dataclass(frozen=True, slots=True)
class VerifyIndexes:
    columns: ClassVar[str] = "index STRING, path STRING, code STRING, sentence STRING"
    table: TableName
    deep: bool = False


@dataclass(frozen=True, slots=True)
class RepairIndexes:
    columns: ClassVar[str] = INDEXES
    table: TableName


@dataclass(frozen=True, slots=True)
class ExplainIndexes:
    columns: ClassVar[str] = "plan STRING"
    query: str
    verbose: bool = False
    table: None = field(default=None, init=False)


Statement: TypeAlias = (
    CreateIndex
    | ShowIndexes
    | DescribeIndex
    | ShowHistory
    | RefreshIndexes
    | OptimizeIndexes
    | DropIndex
    | RestoreIndex
    | VacuumIndexes
    | CancelIndex
    | VerifyIndexes
    | RepairIndexes
    | ExplainIndexes
)
