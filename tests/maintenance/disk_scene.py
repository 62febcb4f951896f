"""A table with indexes on disk, and the verbs on them, for tests in which the disk under the indexes fails."""

import random
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import grebe
from grebe.errors import GrebeError, IndexExists, StoreRefused, WrongState
from grebe.indexes.kind import Kind
from grebe.log import names
from grebe.log.commit import Log
from grebe.session.lake_table import LakeTable
from grebe.store.local import LocalStore
from testbed.spark import forget_tables
from tests.spark.served import Served

CONFIG = grebe.Config(hybrid_max_appended=1.0, hybrid_max_deleted=1.0, vacuum_retention_seconds=0)
"""However stale an index is, it serves; what is out of use may go at once."""
PRIVATE = "private-"
"""Every text of the table begins with it."""
_FILES = {"a": range(2_000), "b": range(2_000, 2_200), "c": range(2_200, 2_220), "d": range(3_000, 3_100)}
_PROBED = (3, 2_100, 2_219, 3_050, 9_999)
_QUERIES = ("SELECT text FROM stored WHERE key IN (3, 2100, 2219, 3050, 9999)", "SELECT count(*) FROM stored")


def covering(name: str) -> Kind:
    return grebe.Covering(name, on="key", include=["text"], buckets=1)


@dataclass(frozen=True)
class DiskVerb:
    """A verb as somebody calls it, and what has to be there before."""

    run: Callable[[LakeTable], object]
    before: Callable[["Stored"], None] = lambda stored: None
    done: type[GrebeError] | None = None
    """What it raises if it was done already."""
    loses: bool = False
    """Whether content is missing until it is carried out."""
    used: str | None = "i"
    """The index that queries use afterwards."""


@dataclass(frozen=True)
class DiskScene:
    """`i` has three runs and is stale, `gone` is deleted."""

    served: Served
    table: Path
    log: Path
    """As it should be; to be copied for every failure."""
    rows: Mapping[int, str] = field(repr=False)

    def stored(self, location: Path) -> "Stored":
        shutil.copytree(self.log, location)
        forget_tables()
        return Stored(self, location, self.served.lake.table(str(self.table), location=str(location)))


@dataclass(frozen=True)
class Stored:
    """The indexes of the scene's table at a place where they may be damaged."""

    scene: DiskScene
    location: Path
    table: LakeTable

    def open(self) -> Log:
        return Log(LocalStore(self.location)).open()

    def require_answers(self, *, in_spark: bool = True, used: str | None = None) -> None:
        """With whatever index there is: of all rows, and of some keys."""
        rows = self.scene.rows
        opened = grebe.open(str(self.scene.table), location=str(self.location))
        found = opened.get_many("key", list(_PROBED)).select(["key", "text"]).to_pylist()
        assert {one["key"]: one["text"] for one in found} == {key: rows[key] for key in _PROBED if key in rows}
        assert len(found) == len(set(_PROBED) & set(rows))
        assert opened.count() == len(rows)
        if in_spark:
            self.scene.served.view("stored", self.scene.table)
            for query in _QUERIES:
                seen = self.scene.served.same_rows(query)
                assert used is None or seen.used in ([used], []), seen.used
            assert used is None or self.scene.served.same_rows(_QUERIES[0]).used == [used]

    def require_clean(self) -> None:
        """Nothing is there but what is in use."""
        state = self.open().state
        assert not state.operations
        used = state.content_paths | {segment.path for segment in state.segments} | {names.MARKER}
        there = {str(path.relative_to(self.location)) for path in self.location.rglob("*") if path.is_file()}
        assert {path for path in there if not path.startswith("log/")} == used
        assert {path for path in there if path.startswith("log/") and not names.is_ours(path)} == set()
        report = self.table.verify()
        assert report.ok
        assert report.leftovers == ()


def require_well_told(raised: GrebeError) -> None:
    """The error says what to do, and nothing about the rows."""
    assert raised.code in ("STORE_REFUSED_NO_ROOM", "STORE_UNREACHABLE"), raised
    assert re.search("try again|trying again", str(raised)), raised
    assert PRIVATE not in str(raised)


def run_again(verb: DiskVerb, stored: Stored, raised: GrebeError | None) -> None:
    """Carry the verb out at once, in this process. It may have been done unless it was refused."""
    try:
        verb.run(stored.table)
    except GrebeError as done:
        if verb.done is None or type(done) is not verb.done or type(raised) is StoreRefused:
            raise
    stored.require_answers(used=verb.used)
    stored.table.vacuum()
    stored.require_clean()
    stored.require_answers(used=verb.used)


def _lose_content(stored: Stored) -> None:
    (stored.location / next(one.path for one in stored.open().state.indexes["i"].content if one.rows)).unlink()


VERBS: dict[str, DiskVerb] = {
    "create": DiskVerb(lambda table: table.create(covering("new")), done=IndexExists, used=None),
    "create of all kinds": DiskVerb(
        lambda table: table.create(
            covering("new"),
            grebe.Lookup("look", on="key"),
            grebe.Skipping("skip", grebe.MinMax("key")),
            grebe.Sieve("sift", on="text", budget=0.5),
        ),
        done=IndexExists,
        used=None,
    ),
    "refresh incremental": DiskVerb(lambda table: table.refresh()),
    "refresh full": DiskVerb(lambda table: table.refresh(mode="full")),
    "optimize quick": DiskVerb(lambda table: table.optimize("i")),
    "optimize full": DiskVerb(lambda table: table.optimize("i", mode="full")),
    "repair": DiskVerb(lambda table: table.repair(deep=False), _lose_content, loses=True),
    "delete": DiskVerb(lambda table: table.delete("i"), done=WrongState, used=None),
    "restore": DiskVerb(lambda table: table.restore("gone"), done=WrongState, used=None),
    "vacuum": DiskVerb(lambda table: table.vacuum()),
}
SPARK_VERBS = ("create", "refresh incremental", "refresh full", "optimize quick", "optimize full", "repair")
"""Those that write content, of one index."""


def made(served: Served, folder: Path) -> DiskScene:
    table, log = folder / "t", folder / "log"
    table.mkdir()
    texts = _write(table, "a")
    indexed = served.lake.table(str(table), location=str(log))
    indexed.create(covering("i"), covering("gone"))
    for name in ("b", "c"):
        texts.update(_write(table, name))
        indexed.refresh("i")
    indexed.delete("gone")
    (table / "b.parquet").unlink()
    texts.update(_write(table, "d"))
    rows = {key: text for key, text in texts.items() if key not in _FILES["b"]}
    return DiskScene(served, table, log, rows)


def _write(table: Path, name: str) -> dict[int, str]:
    drawn = random.Random(name)
    rows = {key: f"{PRIVATE}{drawn.getrandbits(128):032x}" for key in _FILES[name]}
    pq.write_table(
        pa.table({"key": pa.array(rows, pa.int64()), "text": list(rows.values())}), table / f"{name}.parquet"
    )
    return rows
