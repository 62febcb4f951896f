"""Tables with covering indexes, and what lies in them: shared by the tests of the kind."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from grebe.files import canonical_uri
from grebe.indexes.covering.spec import Covering
from grebe.indexes.kind import FILE_COLUMN, Copy
from grebe.log.commit import Log
from grebe.log.location import beside
from grebe.session.lake_table import LakeTable
from grebe.store.opening import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = tuple[str, ...]


@dataclass(frozen=True)
class Index:
    """An index as it lies in the store, looked at without Spark."""

    copy: Copy
    root: Path

    @property
    def files(self) -> list[Path]:
        return [self.root / path for path in self.copy.content["path"].to_pylist()]

    def schema(self, columns: int) -> pa.Schema:
        """Of the first columns, as they are stored."""
        return pa.schema(list(pq.read_schema(self.files[0]))[:columns])

    def rows(self, *columns: str) -> "Counter[Row]":
        """The rows of all files, with how often each is there."""
        return counted(pq.read_table(file, columns=list(columns)) for file in self.files)


def counted(tables: Iterable[pa.Table]) -> "Counter[Row]":
    """As text, in which NaN is one value and -0.0 is not 0.0."""
    rows: Counter[Row] = Counter()
    for table in tables:
        columns = [[repr(value) for value in column.to_pylist()] for column in table.columns]
        rows.update(zip(*columns, strict=True))
    return rows


def log_of(table: str) -> Log:
    """The log beside a table."""
    return Log(open_store(beside(canonical_uri(table)))).open()


def index_of(table: str, name: str) -> Index:
    """The newest version of an index beside its table."""
    log = log_of(table)
    return Index(Covering.copy_of(log.state.indexes[name], log.store), Path(log.store.uri.removeprefix("file://")))


def write(folder: Path, parts: Iterable[pa.Table]) -> str:
    """One Parquet file for each part."""
    for number, part in enumerate(parts):
        place = folder / f"part-{number}.parquet"
        place.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(part, place)
    return str(folder)


def created(spark: "SparkSession", source: Any, *kinds: Covering, **settings: Any) -> dict[str, Index]:
    """The indexes, by name, of a table that has just got them."""
    table = LakeTable(spark, source, **settings)
    made = table.create(*kinds)
    assert [info.name for info in made] == [kind.name for kind in kinds]
    return {kind.name: index_of(table.uri, kind.name) for kind in kinds}


def file_ids(index: Index) -> set[int]:
    return {value for file in index.files for value in pq.read_table(file, columns=[FILE_COLUMN])[0].to_pylist()}
