"""Registered files: an id belongs to one identity for ever, and the bytes of a list are the list or an error."""

import hashlib
import struct

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grebe.errors import CorruptLog, Unsupported
from grebe.files import FileIds, FileList, RegisteredFiles, decode, encode
from grebe.files.listing import SCHEMA

ROOT = "s3://bucket/t"


def listing(**modified_ms: int) -> FileList:
    return FileList.build(ROOT, list(modified_ms), [1] * len(modified_ms), list(modified_ms.values()))


def as_rows(registered: RegisteredFiles) -> list[dict[str, object]]:
    table = registered.files.table.append_column("id", registered.ids).append_column("uri", registered.files.uris())
    rows: list[dict[str, object]] = table.to_pylist()
    return rows


def test_new_files_get_consecutive_ids_in_order_of_their_paths() -> None:
    base = RegisteredFiles.empty(ROOT)
    assert base.next_id == 0
    first = base.register(listing(b=1, a=1), base.next_id)
    assert dict(zip(first.files.paths().to_pylist(), first.ids.to_pylist(), strict=True)) == {"a": 0, "b": 1}
    assert first.next_id == 2
    assert first.file_ids == FileIds.of([0, 1])


def test_only_what_is_missing_is_registered_and_ids_stay() -> None:
    base = RegisteredFiles.register(listing(a=1, b=1), 0)
    now = listing(a=1, b=2, c=1)
    missing = base.missing(now)
    assert missing.paths().to_pylist() == ["b", "c"]
    grown = RegisteredFiles.concat(base, RegisteredFiles.register(missing, base.next_id))
    assert grown.ids_of(now).to_pylist() == [0, 2, 3]
    assert grown.ids_of(listing(a=1, b=1, d=1)).to_pylist() == [0, 1, None]
    assert not len(grown.missing(now))


def test_of_several_identities_of_a_path_the_equal_one_is_found() -> None:
    parts = [RegisteredFiles.register(listing(a=version, b=version // 2), 2 * version) for version in range(50)]
    every = RegisteredFiles.concat(*parts)
    assert every.ids_of(listing(a=7, b=7)).to_pylist() == [
        14,
        31,
    ]  # b had that identity in versions 14 and 15: the newest
    assert every.ids_of(listing(a=50, b=3)).to_pylist() == [None, 15]


def test_files_are_found_from_another_root() -> None:
    base = RegisteredFiles.register(FileList.build(ROOT, ["day=1/x", "day=2/x"], [1, 1], [1, 1]), 5)
    part = FileList.build(f"{ROOT}/day=2", ["x", "y"], [1, 1], [1, 1])
    assert base.ids_of(part).to_pylist() == [6, None]
    above = FileList.build("s3://bucket", ["t/day=1/x", "other/x"], [1, 1], [1, 1])
    assert base.ids_of(above).to_pylist() == [None, 5]


def test_a_selection_holds_just_those_ids() -> None:
    base = RegisteredFiles.register(listing(a=1, b=1, c=1), 10)
    assert base.select(FileIds.of([10, 12, 99])).files.paths().to_pylist() == ["a", "c"]


def test_deltas_are_put_together_in_any_order_and_an_id_given_twice_is_found_out() -> None:
    one, two = RegisteredFiles.register(listing(a=1), 0), RegisteredFiles.register(listing(b=1), 1)
    assert as_rows(RegisteredFiles.concat(two, one)) == as_rows(RegisteredFiles.concat(one, two))
    with pytest.raises(CorruptLog, match=r"\[CORRUPT_LOG_ID_TWICE\].*file id 1"):
        RegisteredFiles.concat(one, two, two)


def test_ids_end_at_four_bytes() -> None:
    assert RegisteredFiles.register(listing(a=1), 2**32 - 1).next_id == 2**32
    with pytest.raises(Unsupported, match=r"\[UNSUPPORTED_FILE_ID\].*file ids"):
        RegisteredFiles.register(listing(a=1, b=1), 2**32 - 1)


TEXT = st.text("ab%# =.ü漢🐟'\\", min_size=1)
NUMBERS = st.integers(-(2**63), 2**63 - 1)


@given(
    st.dictionaries(
        st.lists(TEXT.filter(lambda part: part not in (".", "..")), min_size=1, max_size=3).map("/".join),
        st.tuples(NUMBERS, NUMBERS, st.none() | TEXT, st.none() | TEXT, st.none() | NUMBERS),
    ),
    st.integers(0, 2**31),
)
@settings(max_examples=50, deadline=None)
def test_a_list_comes_back_from_its_bytes(
    files: dict[str, tuple[int, int, str | None, str | None, int | None]], first_id: int
) -> None:
    sizes, modified, etags, tags, rows = zip(*files.values(), strict=True) if files else ((), (), (), (), ())
    built = FileList.build(ROOT, list(files), sizes, modified, etags, tags, rows)
    registered = RegisteredFiles.register(built, first_id)
    again = decode(encode(registered))
    assert as_rows(again) == as_rows(registered)
    assert again.files.root == ROOT
    assert again.files.table.schema.equals(built.table.schema)
    assert encode(again) == encode(registered)


SOME = encode(RegisteredFiles.register(FileList.build(ROOT, [f"x/{i}" for i in range(20)], range(20), range(20)), 3))


@pytest.mark.parametrize("bit", range(8))
def test_any_flipped_bit_is_found_out(bit: int) -> None:
    for place in range(len(SOME)):
        damaged = bytearray(SOME)
        damaged[place] ^= 1 << bit
        with pytest.raises(CorruptLog):
            decode(bytes(damaged))


def test_any_cut_and_any_addition_is_found_out() -> None:
    for length in range(len(SOME)):
        with pytest.raises(CorruptLog):
            decode(SOME[:length])
    with pytest.raises(CorruptLog):
        decode(SOME + b"\0")


@pytest.mark.parametrize("table", [None, pa.table({"x": [1]})])
def test_a_whole_frame_around_something_else_is_found_out(table: pa.Table | None) -> None:
    sink = pa.BufferOutputStream()
    if table is not None:
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    payload = sink.getvalue().to_pybytes()
    head = struct.pack("<4sB3xQ", b"GRBF", 1, len(payload))
    digest = hashlib.blake2b(head + payload, digest_size=16).digest()
    with pytest.raises(CorruptLog, match="lacks"):
        decode(head + digest + payload)


def test_a_newer_format_is_told_from_a_damaged_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grebe.files.registered._VERSION", 2)
    newer = encode(RegisteredFiles.register(listing(a=1), 0))
    monkeypatch.undo()
    with pytest.raises(Unsupported, match="update Grebe") as raised:
        decode(newer)
    assert raised.value.code == "UNSUPPORTED_NEWER_FORMAT"


def test_a_list_of_several_batches_is_one_list() -> None:
    parts = [RegisteredFiles.register(listing(**{f"f{i}": i}), i) for i in range(30)]
    whole = decode(encode(RegisteredFiles.concat(*parts)))
    assert whole.ids.to_pylist() == list(range(30))
    assert isinstance(whole.ids, pa.UInt32Array)


LISTINGS = st.lists(st.dictionaries(st.sampled_from(["a", "b", "x/a", "x/b", "y/a"]), st.integers(0, 3)), max_size=8)


@given(LISTINGS)
@settings(deadline=None)
def test_whatever_comes_and_goes_every_identity_keeps_its_id(listings: list[dict[str, int]]) -> None:
    base = RegisteredFiles.empty(ROOT)
    model: dict[tuple[str, int], int] = {}
    for files in listings:
        listed = FileList.build(ROOT, list(files), [1] * len(files), list(files.values()))
        base = RegisteredFiles.concat(base, base.register(base.missing(listed), base.next_id))
        for identity in sorted(files.items()):
            model.setdefault(identity, len(model))
    for files in listings:
        listed = FileList.build(ROOT, list(files), [1] * len(files), list(files.values()))
        assert base.ids_of(listed).to_pylist() == [model[path, files[path]] for path in listed.paths().to_pylist()]
    assert base.next_id == len(base) == len(model)


def _forged(directory: str, name: str, root: str = ROOT, ids: tuple[int, ...] = (0,)) -> bytes:
    """Sealed as a real list is."""
    rows = len(ids)
    folders = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([directory]))
    names, ones, none = pa.array([name] * rows), pa.array([1] * rows, pa.int64()), pa.nulls(rows, pa.string())
    columns = [folders, names, ones, ones, none, none, pa.nulls(rows, pa.int64()), none]
    return encode(
        RegisteredFiles(FileList(root, pa.Table.from_arrays(columns, schema=SCHEMA)), pa.array(ids, pa.uint32()))
    )


@pytest.mark.parametrize(
    "forged",
    [
        _forged("../hr", "x"),
        _forged("a/./b", "x"),
        _forged("/etc", "passwd"),
        _forged("a//b", "x"),
        _forged("s3://lake/a/../hr", "x"),
        _forged("a", ".."),
        _forged("a", ""),
        _forged("a", "../x"),
        _forged("a", "x", root="orders"),
        _forged("a", "x", root=f"{ROOT}/../hr"),
        _forged("a", "x", ids=(5, 7)),
        _forged("a", "x", ids=(2, 1)),
    ],
    ids=repr,
)
def test_a_list_whose_files_lie_nowhere_is_damaged(forged: bytes) -> None:
    with pytest.raises(CorruptLog):
        decode(forged)
