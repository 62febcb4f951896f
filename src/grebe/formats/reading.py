"""A reading: how bytes become values. The same file read in another way is, for an index, another file."""

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pyarrow as pa

from grebe.errors import CorruptLog, Unsupported
from grebe.formats.options import NO_OPTIONS_OF_A_READING
from grebe.formats.spark_types import TypeJson, arrow_type, type_json, type_text

_COLLATIONS = "__COLLATIONS"
_EXISTENCE_DEFAULT = "EXISTS_DEFAULT"
_FORMAT = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,60}", re.ASCII)
"""Never the name of a class: that has dots."""


@dataclass(frozen=True, slots=True)
class Column:
    """`type` is Spark's, as text (see `spark_types`). `ids` are what tells a column from a later one of the same name, where the
    table's format has that: its own, and then those of all that is nested in it. A partition column takes its value from the path,
    or from the table's log, not from the file. `stored` is its name in the files, where that is another one; a column with ids
    and without such a name is found by its id, whatever the file calls it."""

    name: str
    type: str
    ids: tuple[int, ...] = ()
    partition: bool = False
    stored: str | None = None
    foreign: str | None = field(default=None, compare=False)
    """Why only the table's own reader in Spark reads it right; None: everybody does."""
    elsewhere: str | None = field(default=None, compare=False)
    """Why its files may lack values that the table has, so that whoever reads just the files, in Spark too, reads it wrong."""
    default: str | None = None
    """The existence default: the SQL literal that Spark reads in records of files without this column; None: it reads NULL."""

    @property
    def arrow(self) -> pa.Field:
        return _field(self.name, self.type)


@lru_cache(maxsize=4096)
def _field(name: str, kind: str) -> pa.Field:
    return pa.field(name, arrow_type(type_json(kind)))


@dataclass(frozen=True, slots=True)
class Reading:
    """Make one with `of`. Two readings of a table agree on a column if it has the same type, id and origin, and the
    files are decoded in the same way; where columns are told apart by their position (CSV) all columns must agree."""

    format: str
    options: tuple[tuple[str, str], ...]
    columns: tuple[Column, ...]
    time_zone: str | None = None
    by_position: bool = False

    @classmethod
    def of(
        cls,
        format_name: str,
        options: Mapping[str, str],
        columns: Collection[Column],
        time_zone: str,
        *,
        local_times: bool,
        by_position: bool = False,
    ) -> "Reading":
        """The time zone counts where a timestamp is written without one: in the path of a partition, and in the file
        if the format has `local_times`."""
        zoned = any(
            "timestamp" in column.type.replace("timestamp_ntz", "")
            for column in columns
            if local_times or column.partition
        )
        return cls(
            format_name, tuple(sorted(options.items())), tuple(columns), time_zone if zoned else None, by_position
        )

    @property
    def schema(self) -> pa.Schema:
        """All columns, those of the partitions included."""
        return pa.schema([column.arrow for column in self.columns])

    @property
    def file_columns(self) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if not column.partition)

    @property
    def partition_columns(self) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if column.partition)

    def option(self, name: str) -> str:
        return dict(self.options)[name]

    def agrees_on(self, other: "Reading", names: Collection[str]) -> bool:
        """Whether what is known about these columns under one reading holds under the other."""
        if (self.format, self.options, self.time_zone) != (other.format, other.options, other.time_zone):
            return False
        if self.by_position and self.file_columns != other.file_columns:
            return False
        mine, theirs = ({column.name: column for column in one.columns} for one in (self, other))
        return all(name in mine and mine[name] == theirs.get(name) for name in names)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data; what `from_dict` takes."""
        columns: list[dict[str, Any]] = []
        for column in self.columns:
            entry: dict[str, Any] = {"name": column.name, "type": type_json(column.type)}
            if column.ids:
                entry["ids"] = list(column.ids)
            if column.partition:
                entry["partition"] = True
            if column.stored is not None:
                entry["stored"] = column.stored
            if column.default is not None:
                entry["default"] = column.default
            columns.append(entry)
        return {
            "format": self.format,
            "options": dict(self.options),
            "columns": columns,
            "time_zone": self.time_zone,
            "by_position": self.by_position,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Reading":
        try:
            columns = tuple(
                Column(
                    entry["name"],
                    type_text(entry["type"]),
                    tuple(entry.get("ids", ())),
                    entry.get("partition", False),
                    entry.get("stored"),
                    default=entry.get("default"),
                )
                for entry in data["columns"]
            )
            options = tuple(sorted(data["options"].items()))
            made = cls(data["format"], options, columns, data["time_zone"], data["by_position"])
            made._check()
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError, Unsupported) as error:
            raise CorruptLog(
                f"a reading in the log lacks or garbles {error}; create the indexes anew",
                detail="READING",
            ) from error
        return made

    def _check(self) -> None:
        """Raise `TypeError` or `ValueError` for what was never a reading: it is given to Spark as it stands."""
        texts = (self.format, *(text for pair in self.options for text in pair), *(one.name for one in self.columns))
        if not all(isinstance(text, str) for text in texts) or not isinstance(self.by_position, bool):
            raise TypeError("a format, an option, or the name of a column that is no text")
        for text in (self.time_zone, *(text for one in self.columns for text in (one.stored, one.default))):
            if text is not None and not isinstance(text, str):
                raise TypeError("a time zone, a name or a default that is no text")
        if not _FORMAT.fullmatch(self.format):
            raise ValueError(f"{self.format[:100]!r}, which is no name of a format")
        for name, _ in self.options:
            if name.lower() in NO_OPTIONS_OF_A_READING:
                raise ValueError(f"the option {name}, which chooses what is read and not how")
        for one in self.columns:
            if not isinstance(one.partition, bool) or not all(type(number) is int for number in one.ids):
                raise TypeError(f"column {one.name[:100]}")

    def digest(self) -> str:
        """Equal for equal readings, different for different ones; 32 hex digits."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def columns_of(struct: TypeJson) -> tuple[Column, ...]:
    """The columns of a schema in Spark's JSON (`df.schema.jsonValue()`)."""
    if not isinstance(struct, dict) or struct.get("type") != "struct":
        raise CorruptLog("a schema in Spark's JSON is an object of type struct", detail="READING")
    return tuple(
        Column(
            one["name"],
            type_text(_collated_field(one)["type"]),
            default=one.get("metadata", {}).get(_EXISTENCE_DEFAULT),
        )
        for one in struct["fields"]
    )


def _collated(kind: TypeJson, path: str, collations: Mapping[str, str]) -> TypeJson:
    """Spark writes the collation of a text not into its type but beside it."""
    if isinstance(kind, str):
        return f"{kind} collate {collations[path]}" if path in collations else kind
    if kind["type"] == "struct":
        return {**kind, "fields": [_collated_field(one) for one in kind["fields"]]}
    inner = {"elementType": "element", "keyType": "key", "valueType": "value"}
    changed = {at: _collated(kind[at], f"{path}.{step}", collations) for at, step in inner.items() if at in kind}
    return {**kind, **changed}


def _collated_field(one: Mapping[str, Any]) -> dict[str, Any]:
    collations = one.get("metadata", {}).get(_COLLATIONS, {})
    return {**one, "type": _collated(one["type"], one["name"], collations)}
