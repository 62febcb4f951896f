"""What a lake format itself tells of the values in each of its files: what its own skipping goes by."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from grebe.errors import Unsupported
from grebe.formats import Column
from grebe.sources.delta import DeltaSource
from grebe.sources.iceberg import IcebergSource
from grebe.sources.lake import LakeVersion, Numbers, uri_of

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile as IcebergFile


@dataclass(frozen=True, eq=False, slots=True)
class FileBounds:
    """Of all files of a version, in the order of its list. A bound that is not told is NULL."""

    rows: Numbers
    group: Numbers
    """Equal for files of one partition of the table."""
    low: pa.Table
    high: pa.Table
    nulls: pa.Table
    """How many of each column."""

    def tells(self, name: str) -> bool:
        """Anything of this column."""
        return bool(self.low.column(name).null_count < len(self.rows))


def bounds_of(lake: LakeVersion, columns: Sequence[Column]) -> FileBounds:
    """Of these whole columns."""
    match lake:
        case DeltaSource():
            return _of_delta(lake, columns)
        case IcebergSource():
            return _of_iceberg(lake, columns)
    raise Unsupported(f"{lake.uri}: bounds of its files are told by Delta Lake and Iceberg only", detail="FORMAT")


def _of_delta(lake: DeltaSource, columns: Sequence[Column]) -> FileBounds:
    actions = pa.table(lake.table.get_add_actions(flatten=True))
    places = [lake.listed.by_uri[uri_of(lake.uri, unquote(path))] for path in actions.column("path").to_pylist()]
    order = pa.array(np.argsort(places))
    told = actions.take(order)
    partitions = lake.listed.partitions
    rows = _numbers(told, "num_records")

    def of(what: str, column: Column) -> pa.Array:
        if column.partition:
            return partitions.column(column.name).combine_chunks()
        return _cast(told, f"{what}.{column.stored or column.name}", column.arrow.type)

    def nulls(column: Column) -> pa.Array:
        if column.partition:
            missing = partitions.column(column.name).is_null().to_numpy(zero_copy_only=False)
            return pa.array(np.where(missing, rows, 0), pa.int64())
        return _cast(told, f"null_count.{column.stored or column.name}", pa.int64())

    groups = [tuple(row.values()) for row in partitions.to_pylist()] if partitions.num_columns else [()] * len(rows)
    return FileBounds(
        rows,
        _numbered(groups),
        pa.table({one.name: of("min", one) for one in columns}),
        pa.table({one.name: of("max", one) for one in columns}),
        pa.table({one.name: nulls(one) for one in columns}),
    )


def _cast(told: pa.Table, name: str, kind: pa.DataType) -> pa.Array:
    """As NULLs where the format says nothing, or nothing that is of the column's type any more."""
    if name in told.column_names:
        try:
            return told.column(name).combine_chunks().cast(kind, safe=False)
        except pa.ArrowException:
            pass
    return pa.nulls(told.num_rows, kind)


def _numbers(told: pa.Table, name: str) -> Numbers:
    if name not in told.column_names:
        return np.ones(told.num_rows, np.int64)
    return np.asarray(told.column(name).combine_chunks().fill_null(1).to_numpy(zero_copy_only=False), np.int64)


def _numbered(groups: Sequence[object]) -> Numbers:
    known: dict[object, int] = {}
    return np.array([known.setdefault(one, len(known)) for one in groups], np.int64)


def _of_iceberg(lake: IcebergSource, columns: Sequence[Column]) -> FileBounds:
    entries = lake.entries()
    schema = lake.metadata.schema()
    ids = {column.name: schema.find_field(column.name, case_sensitive=True).field_id for column in columns}
    types = {column.name: schema.find_type(ids[column.name]) for column in columns}

    def bounds(kept: "Sequence[Mapping[int, bytes] | None]", column: Column) -> pa.Array:
        own = [None if one is None else one.get(ids[column.name]) for one in kept]
        return _decoded(own, types[column.name], column.arrow.type)

    def nulls(one: "IcebergFile", column: Column) -> int | None:
        return None if one.null_value_counts is None else one.null_value_counts.get(ids[column.name])

    lows, highs = [one.lower_bounds for one in entries], [one.upper_bounds for one in entries]
    return FileBounds(
        np.array([one.record_count for one in entries], np.int64),
        _numbered([(one.spec_id, str(one.partition)) for one in entries]),
        pa.table({one.name: bounds(lows, one) for one in columns}),
        pa.table({one.name: bounds(highs, one) for one in columns}),
        pa.table({one.name: pa.array([nulls(entry, one) for entry in entries], pa.int64()) for one in columns}),
    )


def _decoded(values: Sequence[bytes | None], own: Any, kind: pa.DataType) -> pa.Array:
    from pyiceberg.conversions import from_bytes

    try:
        physical = [None if one is None else from_bytes(own, one) for one in values]
        if pa.types.is_temporal(kind):
            wide = pa.int32() if pa.types.is_date32(kind) else pa.int64()
            return pa.array(physical, wide).cast(kind)
        return pa.array(physical, kind)
    except (
        pa.ArrowException,
        ValueError,
        TypeError,
        NotImplementedError,
    ):  # of another type than the column has by now
        return pa.nulls(len(values), kind)
