"""What the parts of the benchmark share: the session, the tables with their indexes, and one of them on S3, far away."""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import grebe
from bench._session import bench_session
from bench.harness import Report, Scale
from bench.needle import data
from grebe.store.opening import open_store
from testbed.cached import working_copy
from testbed.proxy import FaultProxy, fault_proxy
from testbed.s3 import s3_server
from testbed.spark import use_s3

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LATENCY = 0.03
INDEXES = {key: f"by_{key}" for key in data.KEYS}
Started = TypeVar("Started")


@dataclass(frozen=True)
class Remote:
    """A table on S3, reached through a proxy; a process of its own can be given it."""

    uri: str
    storage_options: dict[str, str]
    proxy: FaultProxy

    def open(self) -> "grebe.Table":
        return grebe.open(self.uri, storage_options=self.storage_options)


@dataclass(frozen=True)
class Stage:
    scale: Scale
    report: Report
    spark: "SparkSession"
    folder: Path
    held: contextlib.ExitStack = field(repr=False)
    rivals: contextlib.ExitStack = field(repr=False)
    """Ended after each part, so that none takes memory from the next."""

    @property
    def files(self) -> int:
        return self.scale.pick(8, 64)

    @property
    def rows(self) -> int:
        return self.files * data.ROWS_OF_A_FILE

    @cached_property
    def lake(self) -> "grebe.Lake":
        return grebe.attach(self.spark)

    @cached_property
    def table(self) -> Path:
        """As Spark writes by default, which is pages of 20,000 rows; a lookup index for each key."""
        return self.indexed(data.wide(self.spark, self.rows, self.files), "table")

    @cached_property
    def table_of_small_pages(self) -> Path:
        return self.indexed(data.wide(self.spark, self.rows, self.files, 5_000), "small pages")

    @cached_property
    def remote(self) -> Remote:
        server = self.held.enter_context(s3_server())
        proxy = self.held.enter_context(fault_proxy(server.endpoint))
        uri = server.uri("needle")
        store = open_store(uri, server.storage_options)

        def upload(file: Path) -> None:
            store.put(file.name, file.read_bytes())

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(upload, self.table.glob("*.parquet")))
        use_s3(self.spark, server)
        self.lake.table(uri.replace("s3://", "s3a://")).create(grebe.Lookup(INDEXES["id"], on="id"))
        return Remote(uri, {**server.storage_options, "endpoint": proxy.endpoint}, proxy)

    def indexed(self, source: Path, name: str, *keys: str) -> Path:
        """A working copy of the table, with an index for each of the keys (all, if none is named)."""
        target = working_copy(source, self.folder / name)
        kinds = [grebe.Lookup(INDEXES[key], on=key) for key in keys or data.KEYS]
        self.lake.table(str(target)).create(*kinds)
        return target

    def dropped(self, table: Path) -> None:
        """Makes room on the disk."""
        shutil.rmtree(table)

    def started(self, name: str, server: "contextlib.AbstractContextManager[Started]") -> Started | None:
        """None, and a word about it, where a rival cannot be had on this machine."""
        try:
            return self.rivals.enter_context(server)
        except (subprocess.CalledProcessError, OSError, RuntimeError) as lacking:
            print(f"not measured: {name}, which cannot be had here ({lacking})", flush=True)
            return None


@contextlib.contextmanager
def stage(scale: Scale, report: Report) -> Iterator[Stage]:
    with bench_session() as (spark, folder), contextlib.ExitStack() as held, contextlib.ExitStack() as rivals:
        yield Stage(scale, report, spark, folder, held, rivals)
