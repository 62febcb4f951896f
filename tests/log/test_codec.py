"""Entries and states as bytes: what is written can be read, and nothing else can."""

import gzip
import hashlib
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grebe.errors import CorruptLog, InvalidIndex, Unsupported
from grebe.files import FileIds
from grebe.log import codec
from grebe.log.entry import (
    Change,
    ContentFile,
    ContentForgotten,
    Entry,
    FilesRegistered,
    IndexChanged,
    IndexCreated,
    IndexDeleted,
    IndexDropped,
    IndexRestored,
    IndexSpec,
    OperationBegun,
    OperationEnded,
    Segment,
    SegmentsMerged,
    TableCreated,
    TableInfo,
    TableSeen,
    Verb,
    Writer,
)
from grebe.log.names import segment_path
from grebe.log.states import TableState
from tests.log.worlds import create, new_log, register

text = st.text(max_size=12)
number = st.integers(0, 2**53)
ids = st.lists(st.integers(0, 1000), max_size=8).map(FileIds.of)
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
properties = st.dictionaries(text, plain, max_size=3)
writers = st.builds(Writer, text, number, text, text)
specs = st.builds(IndexSpec, text, st.lists(text, max_size=3).map(tuple), properties)
index_names = st.from_regex(r"\w[\w.-]{0,20}", fullmatch=True)
operation_ids = st.from_regex(r"[0-9a-f]{32}", fullmatch=True)
objects = st.builds(
    lambda name, part: f"data/{name}/3-x/{part}", index_names, st.from_regex(r"\w[\w.-]*", fullmatch=True)
)
moment = st.integers(0, 2**47)
contents = st.builds(lambda path, size, rows: ContentFile(path, size, rows, size // 2), objects, number, number)
content = st.lists(contents, max_size=3).map(tuple)
segments = st.builds(
    lambda first, count, unique, size: Segment(segment_path(first, count, unique), first, count, size),
    st.integers(0, 2**31),
    st.integers(0, 2**31),
    operation_ids,
    number,
)
paths = st.lists(objects, max_size=3).map(tuple)
segment_paths = st.lists(segments, max_size=3).map(lambda some: tuple(one.path for one in some))
tables = st.builds(lambda name: f"s3://lake/{name}", st.from_regex(r"\w+", fullmatch=True))
changes: st.SearchStrategy[Change] = st.one_of(
    st.builds(TableCreated, st.builds(TableInfo, tables, text, properties)),
    st.builds(FilesRegistered, segments),
    st.builds(SegmentsMerged, segment_paths, segments),
    st.builds(
        OperationBegun,
        operation_ids,
        st.sampled_from(Verb),
        st.lists(index_names, max_size=3).map(tuple),
        writers,
        st.floats(0.001, 86_400),
        st.dictionaries(index_names, specs, max_size=2),
    ),
    st.builds(OperationEnded, operation_ids, st.booleans(), text),
    st.builds(IndexCreated, index_names, specs, number, content, ids, text),
    st.builds(
        IndexChanged, index_names, number, content, paths, ids, ids, ids, ids, st.none() | text, st.none() | properties
    ),
    st.builds(IndexDeleted, index_names),
    st.builds(IndexRestored, index_names),
    st.builds(IndexDropped, index_names),
    st.builds(TableSeen, ids, text),
    st.builds(ContentForgotten, paths),
)
entries = st.builds(Entry, number, text, text, text, moment, writers, st.lists(changes, max_size=4).map(tuple))


def _entry() -> Entry:
    return Entry(3, "id", "before", "refresh begin", 5, Writer("h", 1, "2", "ann"), (IndexDeleted("ü.-_"),))


def test_every_kind_of_change_is_generated_here() -> None:
    generated = {
        "TableCreated",
        "FilesRegistered",
        "SegmentsMerged",
        "OperationBegun",
        "OperationEnded",
        "IndexCreated",
    }
    generated |= {"IndexChanged", "IndexDeleted", "IndexRestored", "IndexDropped", "ContentForgotten", "TableSeen"}
    assert {c.__name__ for c in Change.__subclasses__()} == generated


@given(entries)
def test_an_entry_reads_back_as_it_was_written(entry: Entry) -> None:
    data, digest = codec.encode_entry(entry)
    assert codec.decode_entry(data, "here") == (entry, digest)
    assert data.count(b"\n") == 2


def test_a_state_reads_back_as_it_was_written() -> None:
    log = new_log()
    register(log, "a", "b", "c")
    create(log, "i")
    log.commit("delete", lambda state: [IndexDeleted("i")])
    create(log, "j")
    log.commit("drop", lambda state: [IndexDropped("i")])
    state = log.state
    assert state.retired
    assert codec.decode_state(codec.encode_state(7, "digest", state), "here") == (7, "digest", state)


@given(st.data())
def test_a_flipped_bit_anywhere_is_noticed(data: st.DataObject) -> None:
    good = codec.encode_entry(_entry())[0]
    place = data.draw(st.integers(0, len(good) * 8 - 1))
    bad = bytearray(good)
    bad[place // 8] ^= 1 << place % 8
    with pytest.raises(CorruptLog):
        codec.decode_entry(bytes(bad), "here")


def test_a_cut_anywhere_is_noticed() -> None:
    good = codec.encode_entry(_entry())[0]
    for length in range(len(good)):
        with pytest.raises(CorruptLog, match="cut short or damaged"):
            codec.decode_entry(good[:length], "here")


def test_a_cut_or_flipped_checkpoint_is_noticed() -> None:
    good = codec.encode_state(1, "d", TableState())
    for length in range(len(good)):
        with pytest.raises(CorruptLog, match="here") as damaged:
            codec.decode_state(good[:length], "here")
        assert damaged.value.code == ("CORRUPT_LOG_CHECKPOINT" if length else "CORRUPT_LOG_CHECKSUM")
    for place in range(10, len(good)):
        bad = bytearray(good)
        bad[place] ^= 4
        try:
            assert codec.decode_state(bytes(bad), "here") == (1, "d", TableState())
        except CorruptLog:
            continue


def _resealed(body: dict[str, object]) -> bytes:
    return codec._seal(body)[0]


def _sealed(line: bytes) -> bytes:
    """A line that no encoder of ours makes, sealed as a real one."""
    return b'%b\n{"sha256":"%b"}\n' % (line, hashlib.sha256(line).hexdigest().encode())


def test_a_newer_format_is_told_from_damage() -> None:
    body = json.loads(codec.encode_entry(_entry())[0].split(b"\n")[0])
    with pytest.raises(Unsupported, match="format 2") as error:
        codec.decode_entry(_resealed({**body, "grebe": 2}), "here")
    assert error.value.code == "UNSUPPORTED_LOG_FORMAT"
    with pytest.raises(Unsupported, match="does not know") as error:
        codec.decode_entry(_resealed({**body, "changes": [{"change": "Teleported"}]}), "here")
    assert error.value.code == "UNSUPPORTED_LOG_CHANGE"
    with pytest.raises(Unsupported):
        codec.decode_state(gzip.compress(_resealed({"grebe": 9, "number": 1, "digest": "", "state": {}})), "here")


def test_fields_of_later_versions_are_ignored() -> None:
    body = json.loads(codec.encode_entry(_entry())[0].split(b"\n")[0])
    assert codec.decode_entry(_resealed({**body, "later": 1}), "here")[0] == _entry()


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"grebe": 1}, "CORRUPT_LOG_SHAPE"),
        ({"grebe": 1, "number": "three"}, "CORRUPT_LOG_SHAPE"),
        (
            {"grebe": 1, **dict.fromkeys(("number", "id", "previous", "action", "at_ms", "writer", "changes"), 0)},
            "CORRUPT_LOG_SHAPE",
        ),
        ({"no": "grebe"}, "CORRUPT_LOG_FOREIGN"),
        ([], "CORRUPT_LOG_FOREIGN"),
    ],
)
def test_json_of_another_shape_is_a_damaged_log(body: dict[str, object], code: str) -> None:
    with pytest.raises(CorruptLog, match="here") as damaged:
        codec.decode_entry(_resealed(body), "here")
    assert damaged.value.code == code


DEEP = "[" * 450 + "]" * 450


@pytest.mark.parametrize(
    "carried",
    [
        "NaN",
        "-Infinity",
        "[1, 1e999]",
        '"\\ud83d"',
        '"\\uDC00\\ud83d"',
        DEEP,
        DEEP.replace("[", '{"a":').replace("]", "}"),
    ],
    ids=["NaN", "infinity", "overflow", "half a character", "swapped halves", "arrays", "objects"],
)
def test_what_could_never_be_written_again_is_refused_when_it_is_read(carried: str) -> None:
    """Once it was in the state, no hint and no checkpoint could be written any more."""
    carried = carried.replace('{"a":}', "{}")
    for changed in (
        replace(_entry(), changes=(IndexCreated("i", IndexSpec("x", (), {"a": "here"}), 1, (), FileIds.of([])),)),
        replace(_entry(), changes=(TableCreated(TableInfo("s3://b/t", "plain", {"a": [{"b": "here"}]})),)),
    ):
        line = codec.encode_entry(changed)[0].partition(b"\n")[0].replace(b'"here"', carried.encode())
        sealed = _sealed(line)
        with pytest.raises(CorruptLog, match="an entry"):
            codec.decode_entry(sealed, "an entry")


def test_text_that_is_no_utf8_is_refused() -> None:
    line = codec.encode_entry(replace(_entry(), action="here"))[0].partition(b"\n")[0]
    for text in (b"\xed\xa0\x80", b"\xff"):
        forged = line.replace(b"here", text)
        sealed = _sealed(forged)
        with pytest.raises(CorruptLog) as refused:
            codec.decode_entry(sealed, "an entry")
        assert refused.value.code == "CORRUPT_LOG_FOREIGN"


def test_whole_characters_in_the_escapes_of_json_are_read() -> None:
    line = (
        codec.encode_entry(replace(_entry(), action="here"))[0].partition(b"\n")[0].replace(b"here", rb"\ud83d\ude00")
    )
    sealed = _sealed(line)
    assert codec.decode_entry(sealed, "an entry")[0].action == "\U0001f600"


def test_what_lies_too_deep_to_be_read_is_not_written() -> None:
    deep: list[object] = []
    for _ in range(600):
        deep = [deep]
    spec = IndexSpec("x", (), {"a": deep})
    with pytest.raises(InvalidIndex) as refused:
        codec.encode_entry(replace(_entry(), changes=(IndexCreated("i", spec, 1, (), FileIds.of([])),)))
    assert refused.value.code == "INVALID_INDEX_PROPERTIES"
    with pytest.raises(InvalidIndex):
        new_log().commit("create", lambda state: [IndexCreated("i", spec, 1, (), FileIds.of([]))])


def test_seconds_that_add_up_to_no_number_are_refused() -> None:
    changed = replace(_entry(), changes=(IndexChanged("i", 1, seconds=4711.5),))
    line = codec.encode_entry(changed)[0].partition(b"\n")[0].replace(b"4711.5", b"1e308")
    sealed = _sealed(line)
    with pytest.raises(CorruptLog) as refused:
        codec.decode_entry(sealed, "an entry")
    assert refused.value.code == "CORRUPT_LOG_VALUE"


def test_equal_entries_have_equal_bytes_and_others_have_not() -> None:
    assert codec.encode_entry(_entry()) == codec.encode_entry(_entry())
    assert codec.encode_entry(_entry())[1] != codec.encode_entry(replace(_entry(), number=4))[1]
