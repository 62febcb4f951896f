"""docs/internals/log.md is enough: a reader written from it alone arrives at the same states, and its example is real."""

import ast
import dataclasses
import json
import os
import re
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grebe.clock import SimulatedClock
from grebe.errors import CorruptLog, GrebeError, Unsupported
from grebe.files import FileIds, FileList
from grebe.log import codec, snapshot
from grebe.log.commit import Log
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
    Keep,
    OperationBegun,
    OperationEnded,
    Segment,
    TableInfo,
    TableSeen,
    Verb,
    Writer,
)
from grebe.log.names import HINT, checkpoint_path, entry_path, heartbeat_path
from grebe.log.operation import begin
from grebe.log.registration import Registry
from grebe.log.snapshot import Snapshot
from grebe.log.states import Impossible, TableState, apply, may_run_together
from grebe.store.local import LocalStore
from grebe.store.memory import MemoryStore
from tests.log import second_reader
from tests.log.changes import CHANGES
from tests.log.second_reader import Damaged, Newer, NoTable, read_table
from tests.log.worlds import ROOT, SPEC, create, files, new_log, writer
from tests.project.tree import ROOT as CHECKOUT

PAGE = (CHECKOUT / "docs" / "internals" / "log.md").read_text(encoding="utf-8")


def plain(value: Any) -> Any:
    """As the second reader shows it, but by way of the dataclasses, not of the codec."""
    if isinstance(value, FileIds):
        return [list(pair) for pair in value.ranges]
    if dataclasses.is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value.value if isinstance(value, Verb) else value


def of_snapshot(found: Snapshot) -> dict[str, Any]:
    return {"number": found.number, "digest": found.digest, **plain(found.state)}


def of_log(folder: Path) -> dict[str, Any]:
    """What Grebe reads there."""
    log = Log(LocalStore(folder), SimulatedClock(), writer()).open()
    registered = Registry(log).files(log.state)
    rows = zip(registered.ids.to_pylist(), registered.files.uris().to_pylist(), strict=True)
    facts = registered.files.table.to_pylist()
    listed = {number: {**facts[row], "id": number, "uri": uri} for row, (number, uri) in enumerate(rows)}
    return {**of_snapshot(log.newest), "files": listed}


def _changed(log: Log, verb: Verb, name: str, **change: Any) -> None:
    with begin(log, verb, [name]) as operation:
        operation.commit(lambda state: [IndexChanged(name, operation.version, **change)])


def _just(change: Change, state: TableState) -> list[Change]:
    return [change]


def _content(name: str, part: str) -> ContentFile:
    return ContentFile(f"data/{name}/by hand/{part}.gix", 7, rows=3)


def _odd_files() -> FileList:
    paths = ["year=2024/day=1/ä ö#%.parquet", "top.parquet", "s3://elsewhere/t/a=b/x.parquet", "日本/x"]
    tags: list[str | None] = ["20240101", None, None, "t"]
    etags: list[str | None] = [None, "abc", "def", None]
    return FileList.build(ROOT, paths, [2**40, 0, 1, 2], [1, 2, 3, 4], etags=etags, tags=tags, rows=[None, 5, None, 6])


def _history(log: Log, folder: Path) -> None:
    """Every change there is, operations left running, and more than 64 entries."""
    registry = Registry(log)
    registry.register(_odd_files())
    registry.register(files("a", "b", "c"))
    for name in ("lookup", "Überblick", "gone", "empty"):
        create(log, name, FileIds.of([0, 1, 2, 5, 6]) if name != "empty" else FileIds.of([]))
    content = log.state.indexes["lookup"].content[0].path
    _changed(log, Verb.REFRESH, "lookup", add=(_content("lookup", "1"),), cover=FileIds.of([3]), table_version="v2")
    _changed(log, Verb.OPTIMIZE, "lookup", add=(_content("lookup", "2"),), remove=(content,))
    _changed(log, Verb.REFRESH, "lookup", uncover=FileIds.of([0, 1, 2]), cover=FileIds.of([4]), properties={"p": [1.5]})
    _changed(log, Verb.REFRESH, "lookup", revive=FileIds.of([2]), purge=FileIds.of([0]))
    for part, keep in (("3", Keep(2)), ("4", Keep(2, 1000)), ("5", Keep(1)), ("6", None)):
        before = log.state.indexes["lookup"]
        lost = FileIds.of([max(before.covered)])
        replaced = tuple(file.path for file in before.content)
        new = (_content("lookup", part),)
        _changed(log, Verb.REFRESH, "lookup", add=new, remove=replaced, uncover=lost, purge=lost, keep=keep)
    assert [version.held for version in log.state.indexes["lookup"].kept] == [FileIds.of([1, 2, 3, 4])]
    for verb, name, change in (
        (Verb.DELETE, "Überblick", IndexDeleted("Überblick")),
        (Verb.RESTORE, "Überblick", IndexRestored("Überblick")),
        (Verb.DELETE, "gone", IndexDeleted("gone")),
        (Verb.VACUUM, "gone", IndexDropped("gone")),
        (Verb.DELETE, "empty", IndexDeleted("empty")),
    ):
        with begin(log, verb, [name]) as operation:
            operation.commit(partial(_just, change))
    log.commit("vacuum", lambda state: [ContentForgotten((content, "data/never/there"))])
    log.commit("refresh", lambda state: [TableSeen(FileIds.of([0, 1, 4]), "v7")])
    for number in range(40):
        registry.register(files(f"part-{number}", modified_ms=1000 + number))
    registry.register(files("a", "b", modified_ms=2000))
    dead = begin(log, Verb.CREATE, ["dies"], {"dies": SPEC})
    os.utime(folder / heartbeat_path(dead.id), (0, 0))
    begin(log, Verb.CREATE, ["coming", "dies"], {"coming": SPEC, "dies": IndexSpec("lookup", ("a", "b.c"))})
    assert dead.id not in log.state.operations
    begin(log, Verb.REFRESH, ["lookup", "Überblick"], heartbeat_seconds=0.5)
    begin(log, Verb.OPTIMIZE, ["lookup"])


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lake") / "_grebe" / "orders"
    clock = SimulatedClock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)  # nobody pulls the plug here
        log = new_log(LocalStore(folder), clock)
        _history(log, folder)
    assert log.newest.number > 70
    changes = [change for entry in snapshot.history(log.store, log.newest.number) for change in entry.changes]
    assert {type(change).__name__ for change in changes} == set(second_reader.CHANGES)
    return folder


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    """A copy to do with as one likes."""
    return Path(shutil.copytree(written, tmp_path / "copy"))


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 16
    path.write_bytes(bytes(data))


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def _lag(by: int, folder: Path) -> None:
    store = LocalStore(folder)
    early = Snapshot()
    for number in range(len(list((folder / "log").glob("0*.json"))) - by):
        early = early.after(*(snapshot.read_entry(store, number) or pytest.fail("gap")), where="here")
    snapshot.write_hint(store, early)


def _foreign_hint(folder: Path) -> None:
    other = new_log(LocalStore(folder.with_name("another")), SimulatedClock(9))
    (folder / HINT).write_bytes(other.store.get(HINT))


def _no_traces(folder: Path) -> None:
    for path in (folder / "log").glob("*.gz"):
        path.unlink()


def _no_hint_and_a_flipped_checkpoint(folder: Path) -> None:
    (folder / HINT).unlink()
    _flip(folder / checkpoint_path(63))


def _foreign_files(folder: Path) -> None:
    _no_traces(folder)
    for name in (".DS_Store", "00000000000000000003.json.bak", "7.json", "checkpoint-1.json.gz", "zzz"):
        (folder / "log" / name).write_bytes(b"rubbish")


ACCIDENTS: dict[str, Callable[[Path], object]] = {
    "none": lambda folder: None,
    "hint lost": lambda folder: (folder / HINT).unlink(),
    "hint flipped": lambda folder: _flip(folder / HINT),
    "hint cut": lambda folder: _cut(folder / HINT),
    "hint empty": lambda folder: (folder / HINT).write_bytes(b""),
    "hint lags": partial(_lag, 5),
    "hint lags behind the checkpoint": partial(_lag, 40),
    "hint of another log": _foreign_hint,
    "hint and checkpoints lost": _no_traces,
    "hint lost, checkpoint flipped": _no_hint_and_a_flipped_checkpoint,
    "foreign files in the folder": _foreign_files,
}


@pytest.mark.parametrize("accident", ACCIDENTS.values(), ids=ACCIDENTS)
def test_both_readers_arrive_at_the_same_state(folder: Path, accident: Callable[[Path], object]) -> None:
    before = of_log(folder)
    accident(folder)
    assert read_table(folder) == of_log(folder) == before


def test_both_readers_agree_on_every_earlier_state(folder: Path) -> None:
    _no_traces(folder)
    store = LocalStore(folder)
    for number in range(Log(store).open().newest.number, -1, -1):
        found = read_table(folder)
        assert {key: value for key, value in found.items() if key != "files"} == of_snapshot(snapshot.newest(store))
        assert found["number"] == number
        (folder / entry_path(number)).unlink()
    with pytest.raises(NoTable):
        read_table(folder)


def _exchange(path: Path) -> None:
    """Whole, with the right number, and not the entry that was there."""
    body, _ = second_reader.unseal(path.read_bytes())
    path.write_bytes(codec._seal({**body, "id": "0" * 32})[0])


def _rewrite(change: Mapping[str, object], path: Path) -> None:
    body, _ = second_reader.unseal(path.read_bytes())
    path.write_bytes(codec._seal({**body, **change})[0])


DAMAGES: dict[str, tuple[int, Callable[[Path], object], type[GrebeError], type[Exception]]] = {
    "flipped": (50, _flip, CorruptLog, Damaged),
    "cut": (-1, _cut, CorruptLog, Damaged),
    "empty": (-1, lambda path: path.write_bytes(b""), CorruptLog, Damaged),
    "lost": (50, Path.unlink, CorruptLog, Damaged),
    "exchanged": (30, _exchange, CorruptLog, Damaged),
    "put in another's place": (30, lambda p: shutil.copy(p.with_name(f"{31:020d}.json"), p), CorruptLog, Damaged),
    "newer": (-1, partial(_rewrite, {"grebe": 2}), Unsupported, Newer),
    "unknown change": (-1, partial(_rewrite, {"changes": [{"change": "Teleported"}]}), Unsupported, Newer),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_both_readers_refuse_the_same_logs(folder: Path, damage: str) -> None:
    number, do, ours, theirs = DAMAGES[damage]
    _no_traces(folder)
    last = len(list((folder / "log").iterdir())) - 1
    do(folder / entry_path(last if number < 0 else number))
    with pytest.raises(theirs):
        read_table(folder)
    with pytest.raises(ours):
        of_log(folder)


KINDS = {change.__name__: change for change in Change.__subclasses__()}


@settings(max_examples=400, deadline=None)
@given(changes=st.lists(CHANGES, min_size=1, max_size=25))
def test_both_readers_agree_on_what_each_change_does_and_when_it_is_impossible(
    changes: list[Change],
) -> None:
    state, theirs = TableState(), second_reader.empty_state()
    for number, change in enumerate(changes):
        entry = Entry(number, "id", "", "any", 1000 + number, writer(), (change,))
        body, _ = second_reader.unseal(codec.encode_entry(entry)[0])
        (change_body,) = body["changes"]
        how = second_reader.CHANGES[change_body["change"]]
        try:
            state = apply(state, entry)
        except Impossible:
            with pytest.raises(Damaged):
                how(theirs, change_body, body)
        else:
            theirs = how(theirs, change_body, body)
        assert {key: value for key, value in theirs.items() if key not in ("number", "digest")} == plain(state)


def test_a_damaged_or_newer_file_list_is_told_apart_by_both(folder: Path) -> None:
    segment = folder / of_log(folder)["segments"][0]["path"]
    whole = segment.read_bytes()
    for damaged in (whole[:20], whole[:-1], whole + b"x", b"GRBX" + whole[4:], whole[:40] + b"\1" + whole[41:]):
        segment.write_bytes(damaged)
        for read, refusal in ((of_log, CorruptLog), (read_table, Damaged)):
            with pytest.raises(refusal):
                read(folder)


def test_the_second_reader_shares_no_code_with_grebe() -> None:
    tree = ast.parse(Path(second_reader.__file__).read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert "pyarrow" in imported
    assert [name for name in imported if name.split(".")[0] in ("grebe", "tests", "")] == []


def example() -> bytes:
    """The entry that the page shows: the end of a refresh."""
    clock = SimulatedClock(seed=1, start_ms=1_735_689_600_000)
    log = Log(MemoryStore("example", clock), clock, Writer("5d41402abc4b2a76", 4711, "884213", "ann@worker-3"))
    log.create(TableInfo("s3://lake/orders", "plain", {"format": "parquet"}))
    refresh = clock.new_id()
    segment = Segment(f"files/0000000000-4-{clock.new_id()}.files", 0, 4, 1834)
    made = IndexCreated("by_customer", SPEC, 2, (), FileIds.of([0, 1, 2]))
    begun = OperationBegun(refresh, Verb.REFRESH, ("by_customer",), log.writer, 60.0)
    for action, change in (("register files", FilesRegistered(segment)), ("create commit", made), ("begin", begun)):
        log.commit(action, partial(_just, change))
    clock.advance(12.5)
    version = log.state.operations[refresh].number
    content = ContentFile(f"data/by_customer/{version}-{refresh}/part-0.gix", 48_213, rows=90_000, footer=1_204)
    changed = IndexChanged("by_customer", version, add=(content,), cover=FileIds.of([3]), table_version="v2")
    ended = OperationEnded(refresh, committed=True)
    return log.store.get(entry_path(log.commit("refresh commit", lambda state: [changed, ended]).number))


def test_the_example_on_the_page_is_what_the_code_writes() -> None:
    body, seal = re.findall(r"^```json\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    line = json.dumps(json.loads(body), ensure_ascii=False, separators=(",", ":"))
    assert line + "\n" + seal == example().decode()


@pytest.mark.parametrize("change", KINDS.values(), ids=KINDS)
def test_the_page_names_every_field_of_every_change(change: type[Change]) -> None:
    assert dataclasses.is_dataclass(change)
    (row,) = re.findall(rf"^\| `{change.__name__}` \| (.*?) \|", PAGE, re.MULTILINE)
    named = {name for part in row.split("; ") for name in re.findall(r"`([a-z_]+)`", part)}
    assert {field.name for field in dataclasses.fields(change)} <= named


def test_the_matrix_on_the_page_is_that_of_the_code() -> None:
    page = (CHECKOUT / "docs" / "internals" / "commit.md").read_text(encoding="utf-8")
    rows = [line.strip("|").split("|") for line in page.splitlines() if re.match(r"\| \w+ \|( [YN] \|){6}", line)]
    assert {Verb(row[0].strip()): [cell.strip() == "Y" for cell in row[1:]] for row in rows} == {
        one: [may_run_together(one, other) for other in Verb] for one in Verb
    }
