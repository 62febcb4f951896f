"""One query that was observed, as it is stored: a row with a list of what it read.

What a query does with other tables is stored with them and not here, but for the columns that join: whoever may read about one
table is told no value of another.
"""

from dataclasses import asdict, dataclass, fields
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True, slots=True)
class Joined:
    """Two columns that a query compares for equality."""

    column: str
    table: str
    other: str
    """The column of that table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """What a query does with one table. Columns are as SQL writes them: `a`, `a.b`."""

    table: str
    columns: tuple[str, ...]
    predicate: str
    """As SQL, for people."""
    tree: str | None
    """The predicate as `predicate.codec` writes it; None where it cannot be told."""
    joins: tuple[Joined, ...] = ()
    groups: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()
    orders: tuple[str, ...] = ()
    files: int | None = None
    files_of: int | None = None
    bytes: int | None = None
    bytes_of: int | None = None
    rows_read: int | None = None
    rows: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    query: str
    """Never given twice: what is met again is the same query, stored with another table, or in two blocks."""
    at_ms: int
    client: str
    origin: str
    """`spark` or `lookup`."""
    call: str
    """`query`, or which of the calls without Spark."""
    shape: str
    """The query without its values."""
    digest: str
    """Of the shape, with whole names of tables."""
    tables: tuple[str, ...]
    """All that the query reads."""
    indexes: tuple[str, ...]
    milliseconds: float
    limit: int | None
    hashed: bool
    """Values of the data stand here only as digests."""
    scans: tuple[Scan, ...]
    expected_without: float | None = None
    """Milliseconds that the planner reckoned with, had there been no index; None where none was used, or nobody reckoned."""
    expected: float | None = None
    """With those that were."""


_TEXTS = pa.list_(pa.string())
_JOINED = pa.struct([("column", pa.string()), ("table", pa.string()), ("other", pa.string())])
_SCAN = pa.struct(
    [
        ("table", pa.string()),
        ("columns", _TEXTS),
        ("predicate", pa.string()),
        ("tree", pa.string()),
        ("joins", pa.list_(_JOINED)),
        ("groups", _TEXTS),
        ("aggregates", _TEXTS),
        ("orders", _TEXTS),
        ("files", pa.int64()),
        ("files_of", pa.int64()),
        ("bytes", pa.int64()),
        ("bytes_of", pa.int64()),
        ("rows_read", pa.int64()),
        ("rows", pa.int64()),
    ]
)
SCHEMA = pa.schema(
    [
        ("query", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("client", pa.string()),
        ("origin", pa.string()),
        ("call", pa.string()),
        ("shape", pa.string()),
        ("digest", pa.string()),
        ("tables", _TEXTS),
        ("indexes", _TEXTS),
        ("milliseconds", pa.float64()),
        ("limit", pa.int64()),
        ("hashed", pa.bool_()),
        ("scans", pa.list_(_SCAN)),
        ("expected_without", pa.float64()),
        ("expected", pa.float64()),
    ]
)


_MAY_LACK = {"limit", "expected_without", "expected"}
_MAY_LACK_OF_SCANS = {"tree", "files", "files_of", "bytes", "bytes_of", "rows_read", "rows"}


def require_whole(table: pa.Table) -> None:
    """Raise `ValueError` where a value lacks that every query has. The table has the columns of `SCHEMA`."""
    lacking = [name for name in SCHEMA.names if name not in _MAY_LACK and table[name].null_count]
    scans = pc.list_flatten(table["scans"].combine_chunks())
    asked = [field.name for field in _SCAN if field.name not in _MAY_LACK_OF_SCANS]
    lacking += [f"scans.{name}" for name in asked if pc.struct_field(scans, name).null_count]
    joins = pc.list_flatten(pc.struct_field(scans, "joins"))
    lacking += [f"joins.{field.name}" for field in _JOINED if pc.struct_field(joins, field.name).null_count]
    if lacking:
        raise ValueError(f"it lacks {', '.join(lacking)}")


def to_table(observed: list[Observed]) -> pa.Table:
    return pa.Table.from_pylist([_row(one) for one in observed], schema=SCHEMA)


def _row(one: Observed) -> dict[str, Any]:
    row = asdict(one)
    row["at"] = row.pop("at_ms") * 1000
    return row


def from_table(table: pa.Table) -> list[Observed]:
    """As they were stored; columns that a later version added are left out."""
    at = table["at"].cast(pa.int64()).to_pylist()
    rows = table.select([name for name in SCHEMA.names if name != "at"]).to_pylist()
    return [
        Observed(
            **{
                **row,
                "tables": tuple(row["tables"]),
                "indexes": tuple(row["indexes"]),
                "scans": tuple(map(_scan, row["scans"])),
            },
            at_ms=moment // 1000,
        )
        for row, moment in zip(rows, at, strict=True)
    ]


def _scan(row: dict[str, Any]) -> Scan:
    known = {one.name: row[one.name] for one in fields(Scan)}
    texts = {name: tuple(known[name]) for name in ("columns", "groups", "aggregates", "orders")}
    return Scan(**{**known, **texts, "joins": tuple(Joined(**join) for join in known["joins"])})
