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
from tests.log.worlds import SPEC, writer

NAMES = st.sampled_from(["i", "j"])
IDS = st.sets(st.integers(0, 5)).map(FileIds.of)
PATHS = st.lists(st.sampled_from(["p", "q", "r", "s"]), max_size=3).map(tuple)
CONTENT = st.lists(st.builds(ContentFile, st.sampled_from(["p", "q", "r", "s"]), st.just(1)), max_size=2).map(tuple)
SEGMENTS = st.builds(Segment, st.sampled_from(["f", "g", "h"]), st.integers(0, 3), st.integers(0, 3), st.just(1))
PREDICTED = Prediction(7, 1.5, scale_bytes=2.0)
CHANGES: st.SearchStrategy[Change] = st.one_of(
    st.builds(TableCreated, st.just(TableInfo("s3://lake/t", "plain"))),
    st.builds(FilesRegistered, SEGMENTS),
    st.builds(SegmentsMerged, st.lists(st.sampled_from(["f", "g", "h"]), max_size=2).map(tuple), SEGMENTS),
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
    st.builds(
        IndexCreated,
        NAMES,
        st.just(SPEC),
        st.integers(0, 9),
        CONTENT,
        IDS,
        measured=st.none() | st.just(Measured(PREDICTED, 8, 2.0)),
    ),
    st.builds(
        IndexChanged,
        NAMES,
        st.integers(0, 9),
        add=CONTENT,
        remove=PATHS,
        cover=IDS,
        uncover=IDS,
        revive=IDS,
        purge=st.none() | IDS,
        table_version=st.none() | st.just("v2"),
        properties=st.none() | st.just({"buckets": 9}),
        keep=st.none() | st.builds(Keep, st.integers(0, 2), st.none() | st.integers(0, 3)),
        seconds=st.sampled_from([0.0, 1.5]),
    ),
    st.builds(IndexDeleted, NAMES),
    st.builds(IndexRestored, NAMES),
    st.builds(IndexDropped, NAMES),
    st.builds(TableSeen, IDS, st.just("v3")),
    st.builds(ContentForgotten, PATHS),
)
