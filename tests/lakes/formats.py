"""The same verbs on tables of each lake format that this Spark has, done by the format itself."""

import json
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from grebe.clock import SYSTEM
from testbed import maven

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = "k BIGINT, w INT, v BIGINT, s STRING"
HERE = {"4.1": ("delta", "iceberg"), "3.5": ("hudi",)}.get(maven.spark_version(), ())
"""Formats that have a runtime for this Spark."""


class LakeFormat(ABC):
    """One table: a key `k` with equal values, `w` of few values, `v` a number of its own, text."""

    def __init__(self, spark: "SparkSession", folder: Path) -> None:
        self.spark = spark
        self.path = str(folder / f"t{SYSTEM.new_id()[:8]}")

    readable_without_spark = True
    """Always, whatever was done to it."""

    @property
    @abstractmethod
    def sql(self) -> str:
        """The table's name in a query."""

    @property
    def given(self) -> str:
        """What `lake.table` is given."""
        return self.path

    @abstractmethod
    def create(self, rows: "DataFrame") -> None: ...

    @abstractmethod
    def append(self, rows: "DataFrame") -> None: ...

    @abstractmethod
    def overwrite(self, rows: "DataFrame") -> None: ...

    @abstractmethod
    def delete(self, condition: str) -> None: ...

    @abstractmethod
    def compact(self) -> None: ...

    @abstractmethod
    def version(self) -> Any: ...

    @abstractmethod
    def as_of(self, version: Any) -> str:
        """The table at a version, in a query."""


class RollsBack(LakeFormat):
    """Hudi needs savepoints for it, made before."""

    @abstractmethod
    def roll_back(self, version: Any) -> None: ...


class Delta(RollsBack):
    @property
    def sql(self) -> str:
        return f"delta.`{self.path}`"

    def create(self, rows: "DataFrame") -> None:
        rows.write.format("delta").option("delta.enableDeletionVectors", "true").save(self.path)

    def append(self, rows: "DataFrame") -> None:
        rows.write.format("delta").mode("append").save(self.path)

    def overwrite(self, rows: "DataFrame") -> None:
        rows.write.format("delta").mode("overwrite").save(self.path)

    def delete(self, condition: str) -> None:
        self.spark.sql(f"DELETE FROM {self.sql} WHERE {condition}")

    def compact(self) -> None:
        self.spark.sql(f"OPTIMIZE {self.sql}")

    def roll_back(self, version: Any) -> None:
        self.spark.sql(f"RESTORE {self.sql} TO VERSION AS OF {version}")

    def version(self) -> int:
        from deltalake import DeltaTable

        return DeltaTable(self.path).version()

    def as_of(self, version: Any) -> str:
        return f"{self.sql} VERSION AS OF {version}"


class Iceberg(RollsBack):
    format_version = 2

    def __init__(self, spark: "SparkSession", folder: Path) -> None:
        super().__init__(spark, folder)
        self._name = f"db.{self.path.rpartition('/')[2]}"
        warehouse = str(spark.conf.get("spark.sql.catalog.ice.warehouse"))
        self.path = f"{warehouse}/{self._name.replace('.', '/')}"

    @property
    def sql(self) -> str:
        return f"ice.{self._name}"

    @property
    def given(self) -> str:
        return self.sql

    def create(self, rows: "DataFrame") -> None:
        self.spark.sql(
            f"CREATE TABLE {self.sql} ({COLUMNS}) USING iceberg TBLPROPERTIES ("
            f"'format-version' = '{self.format_version}', 'write.delete.mode' = 'merge-on-read')"
        )
        self.append(rows)

    def append(self, rows: "DataFrame") -> None:
        rows.writeTo(self.sql).append()

    def overwrite(self, rows: "DataFrame") -> None:
        rows.createOrReplaceTempView("rows_to_write")
        self.spark.sql(f"INSERT OVERWRITE {self.sql} SELECT * FROM rows_to_write")

    def delete(self, condition: str) -> None:
        self.spark.sql(f"DELETE FROM {self.sql} WHERE {condition}")

    def compact(self) -> None:
        options = "map('rewrite-all', 'true')"
        self.spark.sql(f"CALL ice.system.rewrite_data_files(table => '{self._name}', options => {options})")

    def roll_back(self, version: Any) -> None:
        self.spark.sql(f"CALL ice.system.set_current_snapshot('{self._name}', {version})")

    def version(self) -> int:
        metadata = Path(self.path) / "metadata"
        newest = metadata / f"v{(metadata / 'version-hint.text').read_text()}.metadata.json"
        return int(json.loads(newest.read_bytes())["current-snapshot-id"])

    def as_of(self, version: Any) -> str:
        return f"{self.sql} VERSION AS OF {version}"


class IcebergV3(Iceberg):
    """Deletes are vectors there."""

    format_version = 3


class Hudi(LakeFormat):
    table_type = "COPY_ON_WRITE"

    @property
    def sql(self) -> str:
        self.spark.read.format("hudi").load(self.path).createOrReplaceTempView(self._view)
        return self._view

    @property
    def _view(self) -> str:
        return f"v{self.path.rpartition('/')[2]}"

    def _write(self, rows: "DataFrame", operation: str, mode: str = "append") -> None:
        rows.write.format("hudi").options(
            **{
                "hoodie.table.name": "t",
                "hoodie.datasource.write.table.type": self.table_type,
                "hoodie.datasource.write.recordkey.field": "v",
                "hoodie.datasource.write.precombine.field": "v",
                "hoodie.datasource.write.operation": operation,
                "hoodie.metadata.enable": "false",
                "hoodie.embed.timeline.server": "false",
                "hoodie.bulkinsert.shuffle.parallelism": "2",
                "hoodie.parquet.small.file.limit": "0",
                "hoodie.upsert.shuffle.parallelism": "2",
                "hoodie.insert.shuffle.parallelism": "2",
                "hoodie.delete.shuffle.parallelism": "2",
            }
        ).mode(mode).save(self.path)

    def create(self, rows: "DataFrame") -> None:
        self._write(rows, "bulk_insert", "overwrite")

    def append(self, rows: "DataFrame") -> None:
        self._write(rows, "bulk_insert")

    def overwrite(self, rows: "DataFrame") -> None:
        self._write(rows, "insert_overwrite_table")

    def delete(self, condition: str) -> None:
        self._write(
            self.spark.read.format("hudi").load(self.path).where(condition).select("k", "w", "v", "s"), "delete"
        )

    def compact(self) -> None:
        """A file group is rewritten by what touches it: the same rows again."""
        some = self.spark.read.format("hudi").load(self.path).select("k", "w", "v", "s").where("w = 1")
        self._write(some, "upsert")

    def version(self) -> str:
        from grebe.sources import open_source

        return str(open_source(self.path, format="hudi").version())

    def as_of(self, version: Any) -> str:
        frame = self.spark.read.format("hudi").option("as.of.instant", version).load(self.path)
        frame.createOrReplaceTempView(f"{self._view}_{version}")
        return f"{self._view}_{version}"


class HudiMergeOnRead(Hudi):
    table_type = "MERGE_ON_READ"
    readable_without_spark = False


FORMATS: dict[str, type[LakeFormat]] = {
    "delta": Delta,
    "iceberg": Iceberg,
    "iceberg 3": IcebergV3,
    "hudi": Hudi,
    "hudi mor": HudiMergeOnRead,
}
NAMES = [name for name in FORMATS if name.split()[0] in HERE]
"""Those that can be tested here."""
IN_SHORT = [name for name in NAMES if name != "iceberg"]
"""Of Iceberg's two ways to keep deletes in place only the one; what tests both asks for all."""
SHORT_FIRST = [name if name in IN_SHORT else pytest.param(name, marks=pytest.mark.soak) for name in NAMES]
"""The others in the long form."""
