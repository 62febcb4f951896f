"""A table with versions, each a list of files in one folder: as a lake format has them, but without one."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from grebe.files import FileList, canonical_uri
from grebe.indexes.kind import Kind
from grebe.log.commit import Log
from grebe.log.entry import Keep
from grebe.log.registration import Registry
from grebe.lookup.finding import NOWHERE
from grebe.lookup.indexes import Listed
from grebe.maintenance.create import create
from grebe.maintenance.logs import Place
from grebe.maintenance.optimize import optimize
from grebe.maintenance.refresh import refresh
from grebe.maintenance.steps import KEEP
from grebe.spark.opening import spark_source
from grebe.spark.source import SparkSource
from grebe.spark.stores import store_for

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = 200


@dataclass
class VersionedLake:
    """`versions`: names of files. A file holds the keys from its number times `ROWS` on."""

    spark: "SparkSession"
    folder: Path
    kind: str = "versioned"
    versions: list[list[int]] = field(default_factory=list)

    def write(self, *files: int) -> None:
        """The next version: of just these files."""
        self.folder.mkdir(exist_ok=True)
        for number in files:
            path = self.path(number)
            if not path.exists():
                keys = list(range(number * ROWS, (number + 1) * ROWS))
                table = pa.table({"k": pa.array(keys, pa.int64()), "v": [f"v{k % 17}" for k in keys], "n": keys})
                pq.write_table(table, path)
        self.versions.append(list(files))

    def path(self, number: int) -> Path:
        return self.folder / f"{number}.parquet"

    def frame(self, version: int = -1) -> "DataFrame":
        return self.spark.read.parquet(*(str(self.path(number)) for number in self.versions[version]))

    def source(self, version: int = -1) -> SparkSource:
        return replace(spark_source(self.spark, self.frame(version)), kind=self.kind)

    @property
    def place(self) -> Place:
        return Place(canonical_uri(str(self.folder)), None, None, lambda uri: store_for(self.spark, uri))

    @property
    def log(self) -> Log:
        return self.place.existing()

    def create(self, *kinds: Kind) -> None:
        create(self.source(), self.place, kinds)

    def refresh(self, mode: str = "full", keep: Keep = KEEP) -> None:
        refresh(self.source(), self.log, mode=mode, keep=keep)

    def optimize(self, keep: Keep) -> None:
        optimize(self.source(), self.log, mode="full", keep=keep)

    def listed(self, version: int) -> Listed:
        """As whoever opens the table at that version finds its files."""
        source, log = self.source(version), self.log
        files: FileList = source.files()
        ids: Any = Registry(log).files(log.state).ids_of(files).cast(pa.int64()).fill_null(NOWHERE).to_numpy()
        return Listed(ids, files.table["size"].to_numpy(), source.reading)

    def keys(self, version: int) -> Sequence[int]:
        return [key for number in self.versions[version] for key in range(number * ROWS, (number + 1) * ROWS)]
