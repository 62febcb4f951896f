"""Fuzzed logs of lake formats: tables of Delta Lake and Iceberg whose metadata somebody else has written, opened as users do it."""

import random
import shutil
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

import grebe
from testbed.fuzz.mutators import BINARY, DOCUMENT, Mutator, mutate
from testbed.fuzz.seeds import Seeds
from testbed.fuzz.target import Target

_ROWS = pa.table({"id": pa.array(range(20), pa.int64()), "part": [f"p {one % 2}" for one in range(20)]})


class LakeFormat(Target):
    """A small table; one object of its metadata is mutated and put back afterwards."""

    name: ClassVar[str]

    def __init__(self, seeds: Seeds) -> None:
        self.table = seeds.root / f"fuzzed_{self.name}"
        shutil.rmtree(self.table, ignore_errors=True)
        self.make()
        self._paths: list[Path] = sorted(self.metadata())
        super().__init__(seeds)

    def make(self) -> None:
        raise NotImplementedError

    def metadata(self) -> list[Path]:
        raise NotImplementedError

    def inputs(self) -> list[bytes]:
        return [path.read_bytes() for path in self._paths]

    def case(self, number: int) -> bytes:
        chance = random.Random(f"{self.name} {number}")
        place = chance.randrange(len(self._paths))
        sound = self.sound[place]
        if self._paths[place].suffix != ".json":
            return place.to_bytes(4, "little") + mutate(chance, sound, self.sound, BINARY)
        lines = sound.splitlines() if self.name == "delta" else [sound]
        line = chance.randrange(len(lines))
        mutators: tuple[Mutator, ...] = DOCUMENT
        lines[line] = mutate(chance, lines[line], lines, mutators)
        return place.to_bytes(4, "little") + b"\n".join(lines)

    def warm(self) -> None:
        assert self.ask() == 20

    def consume(self, data: bytes) -> str | None:
        place, changed = int.from_bytes(data[:4], "little"), data[4:]
        path = self._paths[place]
        path.write_bytes(changed)
        try:
            self.ask()
        finally:
            path.write_bytes(self.sound[place])
        return None

    def ask(self) -> int:
        table = grebe.open(str(self.table), config=grebe.Config(cache_bytes=0))
        table.get("id", 7)
        return table.count()


class DeltaLog(LakeFormat):
    name = "delta"

    def make(self) -> None:
        from deltalake import DeltaTable, write_deltalake

        for start in (0, 5, 10, 15):
            write_deltalake(str(self.table), _ROWS.slice(start, 5), mode="append", partition_by=["part"])
        DeltaTable(str(self.table)).create_checkpoint()

    def metadata(self) -> list[Path]:
        return [path for path in (self.table / "_delta_log").iterdir() if path.is_file()]

    def ask(self) -> int:
        for moment in ("2001-01-01", "2099-01-01"):
            try:
                grebe.open(str(self.table), timestamp=moment)
            except grebe.GrebeError:
                continue
        return super().ask()


class IcebergMetadata(LakeFormat):
    """The metadata file, the list of manifests and the manifests."""

    name = "iceberg"

    def make(self) -> None:
        from pyiceberg.catalog.noop import NoopCatalog
        from pyiceberg.io import load_file_io
        from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
        from pyiceberg.schema import Schema
        from pyiceberg.serializers import ToOutputFile
        from pyiceberg.table import CommitTableResponse, Table
        from pyiceberg.table.metadata import new_table_metadata
        from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
        from pyiceberg.table.update import update_table_metadata
        from pyiceberg.types import LongType, NestedField, StringType

        io, root = load_file_io(), self.table

        class Files(NoopCatalog):
            """A catalog that is a folder: each commit writes the next metadata file."""

            def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
                made = update_table_metadata(table.metadata, updates)
                return CommitTableResponse.model_validate({"metadata": made, "metadata-location": write(made)})

        written: list[str] = []

        def write(made: Any) -> str:
            place = f"{root}/metadata/v{len(written) + 1}.metadata.json"
            ToOutputFile.table_metadata(made, io.new_output(place), overwrite=True)
            written.append(place)
            return place

        (root / "metadata").mkdir(parents=True)
        schema = Schema(NestedField(1, "id", LongType(), False), NestedField(2, "part", StringType(), False))
        first = new_table_metadata(schema, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, str(root))
        table = Table(("db", "t"), first, write(first), io, Files("files"))
        for start in (0, 10):
            table.append(_ROWS.slice(start, 10))
        for old in written[:-1]:
            Path(old).unlink()

    def metadata(self) -> list[Path]:
        return [path for path in (self.table / "metadata").iterdir() if path.is_file()]
