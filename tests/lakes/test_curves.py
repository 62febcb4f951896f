"""Copies along a curve or a tree over lake tables: appended files, deleted rows and older versions, as with every other index."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import grebe
from grebe.indexes.kind import Kind
from tests.lakes.formats import COLUMNS, FORMATS, NAMES
from tests.spark.data import rows
from tests.spark.served import Seen, Served

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("lakes queries")]

BOXES = ["SELECT v, s FROM {0} WHERE k BETWEEN 10 AND 90 AND w > 3", "SELECT k, w, v FROM {0} WHERE w = 2 OR k IS NULL"]


KINDS: dict[str, Kind] = {
    "curve": grebe.ZOrder("box", on=["k", "w"], include=["v", "s"]),
    "tree": grebe.Layout("box", queries="k BETWEEN 5 AND 50 AND w > 2; w = 1; k IS NULL", include=["v", "s"]),
}


@pytest.mark.parametrize("kind", ["curve", pytest.param("tree", marks=pytest.mark.soak)])
@pytest.mark.parametrize("name", [*NAMES[:1], *(pytest.param(name, marks=pytest.mark.soak) for name in NAMES[1:])])
def test_boxes_over_tables_that_change(served: Served, folder: Path, name: str, kind: str) -> None:
    made = FORMATS[name](served.spark, folder / kind)

    def some(count: int, seed: int) -> "DataFrame":
        return served.spark.createDataFrame([tuple(row.values()) for row in rows(count, seed).to_pylist()], COLUMNS)

    def same() -> list[Seen]:
        return [served.same_rows(query.format(made.sql)) for query in BOXES]

    made.create(some(300, 1))
    made.append(some(300, 2))
    table = served.lake.table(made.given, format=name.split()[0] if made.given == made.path else None)
    table.create(KINDS[kind])
    first, before = same(), made.version()
    assert [seen.used for seen in first] == [["box"], ["box"]]
    made.append(some(100, 3))
    assert [seen.used for seen in same()] == [["box"], ["box"]], "beside the new files"
    made.delete("v = 20007 OR k = 17")
    last = same()
    table.refresh()
    for at, expected in ((made.sql, last), (made.as_of(before), first)):
        for query, seen in zip(BOXES, expected, strict=True):
            assert served.run(query.format(at)).rows == seen.rows
    assert table.verify(deep=True).ok
