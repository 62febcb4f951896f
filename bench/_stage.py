"""What the parts of the benchmark share: the scale, the report, and a session that starts when a part first wants it."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import grebe
from bench._session import bench_session
from bench.harness import Contestant, Report, Scale, timed
from grebe.clock import SYSTEM

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from grebe.indexes.kind import Kind


@dataclass(frozen=True)
class Stage:
    scale: Scale
    report: Report
    held: contextlib.ExitStack = field(repr=False)

    @cached_property
    def _started(self) -> "tuple[SparkSession, Path]":
        return self.held.enter_context(bench_session())

    @property
    def spark(self) -> "SparkSession":
        return self._started[0]

    @property
    def folder(self) -> Path:
        return self._started[1]

    @cached_property
    def lake(self) -> "grebe.Lake":
        return grebe.attach(self.spark)

    def indexed(self, table: Path, name: str, *kinds: "Kind") -> str:
        """The location of indexes made by one call; each name is a place of its own, so that only these are asked."""
        location = str(self.folder / "indexes" / name)
        self.lake.table(str(table), location=location).create(*kinds)
        return location

    def creation(self, table: Path, *kinds: "Kind") -> Contestant:
        """The seconds of making them; every round at another place."""
        return timed(lambda: self.indexed(table, SYSTEM.new_id(), *kinds))


@contextlib.contextmanager
def stage(scale: Scale, report: Report) -> Iterator[Stage]:
    with contextlib.ExitStack() as held:
        yield Stage(scale, report, held)
