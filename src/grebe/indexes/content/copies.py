"""The rows of an index as the planner sees them: one small read for each version folder, and no Spark."""

import hashlib
import json

import pyarrow as pa

from grebe.errors import CorruptIndex, GrebeError
from grebe.formats.spark_types import arrow_type, type_json
from grebe.indexes import where
from grebe.indexes.columns import spark_schema
from grebe.indexes.content.directory import NAME, read_directory
from grebe.indexes.content.shape import Shape, shape_of
from grebe.indexes.kind import ROW_COLUMN, Copy, Run, bound_names
from grebe.log.entry import ContentFile
from grebe.log.states import IndexState
from grebe.predicate.tree import Predicate
from grebe.store.protocol import Store


def copy_of(index: IndexState, store: Store) -> Copy:
    """Raises `CorruptIndex` where a directory is missing, damaged, or does not list what the log says."""
    shape = shape_of(index.name, index.spec)
    if shape.layout is None:
        raise CorruptIndex(f"index {index.name} does not say how its rows lie; create it anew", detail="SPEC")
    folders = by_folder(index.content).items()
    nothing = _nothing(shape)
    tables = [
        _widened(listed(read_directory(store, folder), store.uri, folder, files), nothing) for folder, files in folders
    ]
    runs, start = [], 0
    for table in tables:
        runs.append(Run(tuple(range(start, start + len(table)))))
        start += len(table)
    return Copy(
        name=index.name,
        reading=shape.reading,
        columns={column.path: column.content for column in shape.columns},
        schema=json.dumps(spark_schema(shape.fields), ensure_ascii=False),
        layout=shape.layout,
        where=_condition(shape, index.name),
        lineage=shape.lineage,
        rows_numbered=ROW_COLUMN in shape.locators,
        covered=index.held,
        content=pa.concat_tables(tables) if tables else nothing,
        runs=tuple(run for run in runs if run.files),
        key=_key(index, store),
        bounded=tuple(column.content for column in shape.on),
    )


def by_folder(content: tuple[ContentFile, ...]) -> dict[str, list[ContentFile]]:
    """The files of each run."""
    folders: dict[str, list[ContentFile]] = {}
    for file in content:
        folders.setdefault(file.path.rpartition("/")[0], []).append(file)
    return folders


def listed(table: pa.Table, uri: str, folder: str, files: list[ContentFile]) -> pa.Table:
    """The rows of the directory of that folder for just these files: some may have been replaced since it was written."""
    wanted = {file.path.rpartition("/")[2]: file.size for file in files if file.rows}
    sizes = dict(zip(table["path"].to_pylist(), table["size"].to_pylist(), strict=True))
    if any(sizes.get(name) != size for name, size in wanted.items()):
        raise CorruptIndex(
            f"{uri}/{folder}/{NAME} does not list the files that the log names; refresh the index with mode='full'",
            detail="DIRECTORY",
        )
    table = table.filter(pa.array([name in wanted for name in sizes], pa.bool_()))
    paths = pa.array([f"{folder}/{name}" for name in table["path"].to_pylist()], pa.string())
    return table.set_column(0, "path", paths).drop_columns(["footer"])


def _nothing(shape: Shape) -> pa.Table:
    """No file, but all columns."""
    fields = [("path", pa.string()), ("size", pa.int64()), ("rows", pa.int64()), ("tail", pa.int64())]
    fields += [("tail_digest", pa.binary()), ("bucket", pa.int32())]
    for place, column in enumerate(shape.on):
        least, greatest, nulls = bound_names(place)
        bound = arrow_type(type_json(column.type))
        fields += [(least, bound), (greatest, bound), (nulls, pa.int64())]
    return pa.schema(fields).empty_table()


def _widened(table: pa.Table, whole: pa.Table) -> pa.Table:
    """A directory of an older release tells less."""
    for field in whole.schema:
        if field.name not in table.column_names:
            table = table.append_column(field, pa.nulls(len(table), field.type))
    return table


def _condition(shape: Shape, index: str) -> Predicate | None:
    if shape.where is None:
        return None
    try:
        return where.recalled(shape.where, shape.reading)
    except GrebeError as problem:
        raise CorruptIndex(f"the condition of index {index} cannot be read; create it anew", detail="SPEC") from problem


def _key(index: IndexState, store: Store) -> str:
    """Equal only for the same files: indexes of several places may have files of the same names."""
    paths = "\n".join((store.uri, *(file.path for file in index.content)))
    return f"{index.name}@{index.version}-{hashlib.blake2b(paths.encode(), digest_size=8).hexdigest()}"
