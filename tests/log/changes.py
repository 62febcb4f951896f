"""Changes of every sort, possible and impossible, for tests that make up logs."""

from hypothesis import strategies as st

from grebe.files import FileIds
from grebe.log.entry import (
    Change,
    ContentFile,
    ContentForgotten,
    FilesRegistered,
    IndexChanged,
    IndexCreated,
    IndexDeleted,
    IndexDropped,
    IndexRestored,
    Keep,
    Measured,
    OperationBegun,
    OperationEnded,
    Prediction,
    Purpose,
    Segment,
    SegmentsMerged,
    TableCreated,
    TableInfo,
    TableSeen,
    Verb,
)
from grebe.log.names import segment_path
from tests.log.worlds import SPEC, writer

NAMES = st.sampled_from(["i", "j"])
IDS = st.sets(st.integers(0, 5)).map(FileIds.of)

UNIQUE = st.sampled_from([32 * digit for digit in "abc"])
SEGMENT_PATHS = st.builds(segment_path, st.integers(0, 3), st.integers(0, 3), UNIQUE)


def _segment(first_id: int, count: int, unique: str) -> Segment:
    return Segment(segment_path(first_id, count, unique), first_id, count, 1)


def _objects(index: str) -> st.SearchStrategy[str]:
    """Each index has a folder of its own: no reader looks for one object in two of them."""
    return st.sampled_from([f"data/{index}/{name}" for name in "pqrs"])


def _paths(objects: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(objects, max_size=3).map(tuple)


def _content(index: str) -> st.SearchStrategy[tuple[ContentFile, ...]]:
    return st.lists(st.builds(ContentFile, _objects(index), st.just(1)), max_size=2).map(tuple)


def _created(index: str) -> st.SearchStrategy[IndexCreated]:
    return st.builds(
        IndexCreated,
        st.just(index),
        st.just(SPEC),
        st.integers(0, 9),
        _content(index),
        IDS,
        measured=st.none() | st.just(Measured(PREDICTED, 8, 2.0)),
    )


def _changed(index: str) -> st.SearchStrategy[IndexChanged]:
    return st.builds(
        IndexChanged,
        st.just(index),
        st.integers(0, 9),
        add=_content(index),
        remove=_paths(_objects(index)),
        cover=IDS,
        uncover=IDS,
        revive=IDS,
        purge=st.none() | IDS,
        table_version=st.none() | st.just("v2"),
        properties=st.none() | st.just({"buckets": 9}),
        keep=st.none() | st.builds(Keep, st.integers(0, 2), st.none() | st.integers(0, 3)),
        seconds=st.sampled_from([0.0, 1.5]),
        columns=st.none() | st.just(("A",)),
        problem=st.sampled_from([None, "", "column b is not there"]),
    )


SEGMENTS = st.builds(_segment, st.integers(0, 3), st.integers(0, 3), UNIQUE)
PREDICTED = Prediction(7, 1.5, scale_bytes=2.0)
CHANGES: st.SearchStrategy[Change] = st.one_of(
    st.builds(TableCreated, st.just(TableInfo("s3://lake/t", "plain"))),
    st.builds(FilesRegistered, SEGMENTS),
    st.builds(SegmentsMerged, st.lists(SEGMENT_PATHS, max_size=2).map(tuple), SEGMENTS),
    st.builds(
        OperationBegun,
        st.sampled_from(["1", "2", "3"]),
        st.sampled_from(Verb),
        st.lists(NAMES, max_size=2).map(tuple),
        st.just(writer()),
        st.just(60.0),
        purpose=st.builds(Purpose, st.sampled_from(["", "it pays"]), st.just({"a": PREDICTED}), st.none() | st.just(9)),
    ),
    st.builds(OperationEnded, st.sampled_from(["1", "2", "3"]), st.booleans()),
    NAMES.flatmap(_created),
    NAMES.flatmap(_changed),
    st.builds(IndexDeleted, NAMES),
    st.builds(IndexRestored, NAMES),
    st.builds(IndexDropped, NAMES),
    st.builds(TableSeen, IDS, st.just("v3")),
    st.builds(ContentForgotten, _paths(NAMES.flatmap(_objects))),
)
