"""Lists of files and the differences between two of them, against plain dictionaries."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grebe.errors import Unsupported
from grebe.files import FileList, diff

ROOT = "s3://bucket/t"


@dataclass(frozen=True)
class Facts:
    size: int
    modified_ms: int
    tag: str | None
    etag: str | None

    def same(self, other: "Facts") -> bool:
        etags = {self.etag, other.etag} - {None}
        return (self.size, self.modified_ms, self.tag) == (other.size, other.modified_ms, other.tag) and len(etags) < 2


FACTS = st.builds(
    Facts, st.integers(0, 2), st.integers(0, 2), st.sampled_from([None, "c1"]), st.sampled_from([None, "e1", "e2"])
)
PATHS = st.sampled_from(["a", "b", "x/a", "x/y/a", "x=1/ü", "x%20/#", "s3://bucket/t/z", "s3://other/a", "file:///a"])
FILES = st.dictionaries(PATHS, FACTS)


def listed(files: dict[str, Facts], root: str = ROOT) -> FileList:
    facts = list(files.values())
    return FileList.build(
        root,
        list(files),
        [f.size for f in facts],
        [f.modified_ms for f in facts],
        etags=[f.etag for f in facts],
        tags=[f.tag for f in facts],
    )


def absolute(path: str) -> str:
    return path if "://" in path else f"{ROOT}/{path}"


@given(FILES, FILES, st.sampled_from([ROOT, "s3://bucket", "s3://bucket/t/x", "file:///elsewhere"]))
@settings(deadline=None)
def test_a_difference_compares_identities_whatever_the_root(
    before: dict[str, Facts], after: dict[str, Facts], root: str
) -> None:
    known, now = listed(before), listed({absolute(path): facts for path, facts in after.items()}, root)
    old = {absolute(path): facts for path, facts in before.items()}
    new = {absolute(path): facts for path, facts in after.items()}
    stayed = {path for path in old.keys() & new.keys() if old[path].same(new[path])}
    found = diff(known, now)
    assert set(found.unchanged.uris().to_pylist()) == stayed
    assert set(found.added.uris().to_pylist()) == new.keys() - stayed
    assert set(found.removed.uris().to_pylist()) == old.keys() - stayed
    assert len(found.added) + len(found.unchanged) == len(now)
    assert len(found.removed) + len(found.unchanged) == len(known)


@given(FILES)
@settings(deadline=None)
def test_a_list_is_in_order_of_paths_and_keeps_every_fact(files: dict[str, Facts]) -> None:
    made = listed(files)
    inside = {path.removeprefix(f"{ROOT}/"): facts for path, facts in files.items()}
    ordered = sorted(inside, key=str.encode)
    assert made.paths().to_pylist() == ordered
    assert made.uris().to_pylist() == [absolute(path) for path in ordered]
    table = made.table.to_pydict()
    assert table["size"] == [inside[path].size for path in ordered]
    assert table["etag"] == [inside[path].etag for path in ordered]
    assert made.total_bytes == sum(facts.size for facts in inside.values())
    assert made.rebased("s3://bucket").uris().to_pylist() == made.uris().to_pylist()


def test_row_counts_are_facts_and_no_part_of_identity() -> None:
    counted = FileList.build(ROOT, ["a"], [1], [1], rows=[10])
    found = diff(counted, FileList.build(ROOT, ["a"], [1], [1]))
    assert found.unchanged.table["rows"].to_pylist() == [10]
    assert not len(found.added)
    assert not len(found.removed)


def test_selecting_few_files_drops_the_folders_of_the_rest() -> None:
    many = FileList.build(ROOT, [f"day={i}/f" for i in range(1000)], [1] * 1000, [1] * 1000)
    few = many.filter(np.arange(1000) < 2)
    assert few.paths().to_pylist() == ["day=0/f", "day=1/f"]
    assert len(few.table.column("directory").chunk(0).dictionary) == 2


def test_a_path_given_twice_is_refused() -> None:
    with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_FILE_TWICE\] x/a .* name each file by one path"):
        FileList.build(ROOT, ["x/a", "b", f"{ROOT}/x/a"], [1, 1, 1], [1, 1, 1])


def test_which_files_are_older_than_a_moment_of_their_store() -> None:
    files = FileList.build(ROOT, ["a", "b", "c"], [1, 1, 1], [99, 100, 101])
    assert files.older_than(100).tolist() == [True, False, False]
