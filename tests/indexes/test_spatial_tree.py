"""The tree of a spatial index: what it says of its chunks, and that nothing else is taken for one."""

import math
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grebe.errors import CorruptIndex, Unsupported
from grebe.formats import DataFile
from grebe.formats.parquet_pages import PageMap, read_footer
from grebe.indexes.content.sealed import sealed
from grebe.indexes.spatial import checks
from grebe.indexes.spatial.distance import far_from, near_to
from grebe.indexes.spatial.shape import Corner
from grebe.indexes.spatial.tree import Branch, Root, read_root, tree_bytes, units_of
from grebe.log.entry import ContentFile
from grebe.predicate import geometry
from grebe.store.local import LocalStore

CORNERS = (Corner(("lon",), "lon", "double"), Corner(("lat",), "lat", "double"))


@pytest.fixture
def root(tmp_path: Path) -> Root:
    """Of two content files, the second one of odd places."""
    store = LocalStore(tmp_path)
    random = np.random.default_rng(1)
    branches = []
    for number in range(2):
        columns = {"lon": random.uniform(0, 9, 100) + 10 * number, "lat": random.uniform(0, 9, 100)}
        pq.write_table(pa.table(columns), tmp_path / f"{number}.gix", row_group_size=25, write_page_index=True)
        file = DataFile(store, f"{number}.gix", (tmp_path / f"{number}.gix").stat().st_size)
        footer = read_footer(file)
        units = units_of(footer, CORNERS, finite=number == 0)
        branches.append(Branch(file, PageMap.from_footer(file, footer), units, 0))
    data, length = tree_bytes(branches, CORNERS)
    store.put("tree.gix", data)
    return read_root(DataFile(store, "tree.gix", len(data)), length, data, CORNERS)


def test_the_root_knows_the_bounds_of_files_and_branches_those_of_chunks(root: Root) -> None:
    assert root.inside is not None
    assert root.units.rows.tolist() == [100, 100]
    assert root.units.finite.tolist() == [True, False]
    branch, odd = (root.inside[one.start : one.start + one.length] for one in root.twigs)
    units = root.twigs[0].branch(branch, CORNERS).units
    lon = pq.read_table(root.tree.store.uri.removeprefix("file://") + "/0.gix")["lon"].to_numpy().reshape(4, 25)
    np.testing.assert_array_equal(units.boxes[:, 0], lon.min(axis=1))
    np.testing.assert_array_equal(units.boxes[:, 2], lon.max(axis=1))
    assert root.units.boxes[0, 0] == lon.min()
    assert root.twigs[1].branch(odd, CORNERS).units.boxes[0].tolist() == [-math.inf, -math.inf, math.inf, math.inf]


def test_what_is_sealed_and_no_tree_is_refused(root: Root) -> None:
    other = sealed(b"something else")
    with pytest.raises(CorruptIndex) as refused:
        read_root(root.tree, len(other), other, CORNERS)
    assert refused.value.code == "CORRUPT_INDEX_TREE"


def test_a_tree_of_other_files_is_found(root: Root) -> None:
    run = [ContentFile("0.gix", 1, 100)]
    tree = ContentFile(
        "tree.gix", root.tree.size, 0, len(root.inside or b"") - root.twigs[-1].start - root.twigs[-1].length
    )
    with pytest.raises(CorruptIndex, match="does not list"):
        checks.check_tree(tree, run, root.tree.store, CORNERS)


def test_distances_to_boxes() -> None:
    boxes = np.array([[0.0, 0.0, 2.0, 2.0], [5.0, 1.0, 5.0, 1.0]])
    assert near_to(boxes, 1, 1).tolist() == [0.0, 4.0]
    assert near_to(boxes, 5, 5).tolist() == [math.hypot(3, 3), 4.0]
    assert far_from(boxes, 0, 0).tolist() == [math.hypot(2, 2), math.hypot(5, 1)]


def test_without_shapely_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "shapely", None)
    with pytest.raises(Unsupported, match=r"grebe\[spatial\]") as refused:
        geometry.shapely()
    assert refused.value.code == "UNSUPPORTED_NO_SHAPELY"
