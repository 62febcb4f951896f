"""Bad input on a real disk: what a log says of damage, odd places, stores that may only be read, and clocks that disagree.

Each is a clear error of the right class, and nothing is lost: all bytes are the same before and after.
"""

import multiprocessing
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from grebe.clock import SimulatedClock
from grebe.errors import CorruptLog, GrebeError, SourceChanged, StoreRefused, TableNotFound, WrongState
from grebe.files import FileIds, FileList, canonical_uri
from grebe.log import snapshot
from grebe.log.commit import Log
from grebe.log.describe import describe_history
from grebe.log.entry import TableInfo, Verb
from grebe.log.location import beside, places
from grebe.log.names import HINT, entry_path, heartbeat_path
from grebe.log.operation import begin, roll_back
from grebe.log.registration import Registry
from grebe.log.snapshot import Snapshot
from grebe.store.local import LocalStore
from grebe.store.opening import open_store
from tests.log.second_reader import read_table
from tests.log.worlds import SPEC, TABLE, VanishingStore, create, files, new_log, register, writer

NOBODY = 65534


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def opened(folder: Path) -> Log:
    return Log(LocalStore(folder), SimulatedClock(3), writer("bob@host"), patience=1.0).open()


@pytest.fixture(autouse=True)
def _no_flushing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody pulls the plug here; on a busy disk a flush takes longer than the rest of a test."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With a log of eight entries, the last of which registers a file."""
    place = tmp_path / "_grebe" / "orders"
    log = new_log(LocalStore(place))
    register(log, "a", "b")
    create(log, "i")
    register(log, "c")
    roll_back(log, begin(log, Verb.REFRESH, ["i"]).id, "no longer wanted")
    shutil.rmtree(place / "alive")
    register(log, "d")
    return place


def _last(folder: Path) -> Path:
    return sorted((folder / "log").glob("0*.json"))[-1]


def _flip(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut short": lambda data: data[: len(data) // 2],
    "without its last byte": lambda data: data[:-1],
    "one bit flipped": _flip,
    "empty": lambda data: b"",
    "zeros, as after a power cut": lambda data: bytes(len(data)),
    "a byte more": lambda data: data + b"\n",
    "twice": lambda data: data + data,
    "line ends of another system": lambda data: data.replace(b"\n", b"\r\n"),
    "another's JSON": lambda data: b'{"commitInfo":{"operation":"WRITE"}}\n',
}
VERBS: dict[str, Callable[[Log], object]] = {
    "register": lambda log: register(log, "e"),
    "begin": lambda log: begin(log, Verb.REFRESH, ["i"]),
    "create table": lambda log: log.create(TABLE),
    "roll back": lambda log: roll_back(log, "x" * 32, "no longer wanted"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_entry_is_named_by_readers_and_writers_and_nothing_is_written(
    folder: Path, damage: Callable[[bytes], bytes]
) -> None:
    last = _last(folder)
    whole = last.read_bytes()
    last.unlink()
    behind = opened(folder)
    expected = opened(folder).newest
    last.write_bytes(damage(whole))
    before = everything(folder)
    attempts: list[Callable[[], object]] = [partial(opened, folder), behind.reload]
    attempts += [partial(verb, behind) for verb in VERBS.values()]
    for attempt in attempts:
        with pytest.raises(CorruptLog, match=last.name) as error:
            attempt()
        assert error.value.code == "CORRUPT_LOG_CHECKSUM"
        assert "backup" in str(error.value)
    assert everything(folder) == before
    assert behind.newest == expected, "what was read before stays as it was"
    last.write_bytes(whole)
    assert behind.reload() == opened(folder).newest
    assert list(register(behind, "e")) == [4]


def test_damage_further_back_stops_only_those_who_read_it(folder: Path) -> None:
    old = folder / entry_path(2)
    whole = old.read_bytes()
    old.write_bytes(_flip(whole))
    log = opened(folder)
    register(log, "e")
    hint = (folder / HINT).read_bytes()
    for damage in (lambda: old.write_bytes(_flip(whole)), old.unlink):
        damage()
        assert opened(folder).newest == log.newest
        with pytest.raises(CorruptLog, match=old.name):
            list(snapshot.history(log.store, log.newest.number))
        (folder / HINT).unlink()
        before = everything(folder)
        with pytest.raises(CorruptLog, match=old.name):
            opened(folder)
        assert everything(folder) == before
        (folder / HINT).write_bytes(hint)
        old.write_bytes(whole)
        assert len(list(snapshot.history(log.store, log.newest.number))) == log.newest.number + 1


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_nobody_writes_into_a_gap(folder: Path, verb: Callable[[Log], object]) -> None:
    last = _last(folder)
    lost = last.with_name(f"{int(last.stem) - 1:020d}.json")
    whole, newest, hint = lost.read_bytes(), opened(folder).newest, (folder / HINT).read_bytes()
    lost.unlink()
    last.rename(folder / "aside")
    (folder / HINT).unlink()
    early = opened(folder)  # its state is that before the gap
    (folder / "aside").rename(last)
    before = everything(folder)
    for log in (early, Log(LocalStore(folder), SimulatedClock(), writer())):
        with pytest.raises(CorruptLog, match=lost.name) as error:
            verb(log)
        assert error.value.code == "CORRUPT_LOG_GAP"
        assert everything(folder) == before
    lost.write_bytes(whole)
    (folder / HINT).write_bytes(hint)
    assert opened(folder).newest == newest


def _other_things(place: Path) -> None:
    (place / "log").mkdir(parents=True)
    for name in ("part-0.parquet", "log/README", "log/1.json", "log/.00000000000000000000.json.crc", "_SUCCESS"):
        (place / name).write_bytes(b"PAR1")


NO_TABLES: dict[str, Callable[[Path], object]] = {
    "nothing": lambda place: None,
    "an empty folder": Path.mkdir,
    "a file": lambda place: place.write_text("no folder"),
    "other things": _other_things,
}


@pytest.mark.parametrize("make", NO_TABLES.values(), ids=NO_TABLES)
def test_a_place_without_a_log_is_no_table_and_stays_as_it_was(tmp_path: Path, make: Callable[[Path], object]) -> None:
    place = tmp_path / "place"
    make(place)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(TableNotFound, match=f"file://{place}"):
        Log(LocalStore(place)).open()
    assert sorted(tmp_path.rglob("*")) == before


def test_where_a_file_stands_in_the_way_of_the_folder_the_store_says_so(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "log").write_text("mine too")
    before = everything(tmp_path)
    for name in ("taken", "half"):
        with pytest.raises(StoreRefused, match=name):
            new_log(LocalStore(tmp_path / name))
    assert everything(tmp_path) == before


ODD_NAMES = [
    "two  blanks ",
    "100%",
    "a%20b%2Fc",
    "#1?x=1&y=+",
    "Größe 数据 🐦",
    "e\u0301 is not \u00e9",
    "day=2024-01-01",
]
ODD_NAMES += ["'quoted' \"twice\" `thrice`", "back\\slash", "new\nline", ".hidden..", "*?[ab]", "_grebe", "x" * 255]


@pytest.mark.parametrize("name", ODD_NAMES, ids=ascii)
def test_a_table_may_have_any_name_that_a_folder_can_have(tmp_path: Path, name: str) -> None:
    table = canonical_uri(str(tmp_path / name))
    assert table == f"file://{tmp_path}/{name}"
    log = Log(open_store(beside(table)), SimulatedClock(), writer()).create(TableInfo(table, "plain"))
    listing = FileList.build(table, [f"day=1/{name[:200]}.csv", name], [1, 2], [3, 4])
    ids = FileIds.of(Registry(log).register(listing).to_numpy())
    create(log, "i", ids)
    place = tmp_path / "_grebe" / name
    assert (place / entry_path(0)).exists()
    found = [p for p in places(f"{table}/day=1") if Path(p.removeprefix("file://"), entry_path(0)).exists()]
    assert found == [beside(table)]
    again = Log(open_store(found[0]), SimulatedClock(), writer()).open()
    assert again.newest == log.newest
    assert Registry(again).files(again.state).ids_of(listing).to_pylist() == sorted(ids)
    assert [file["uri"] for file in read_table(place)["files"].values()] == listing.uris().to_pylist()


class ReadOnlyStore(LocalStore):
    """Refuses what changes anything, as credentials that may only read do."""

    def put(self, path: str, data: bytes) -> None:
        raise StoreRefused(f"no permission for {self.uri}/{path}", detail="NO_PERMISSION")

    put_if_absent = put

    def delete(self, path: str) -> None:
        raise StoreRefused(f"no permission for {self.uri}/{path}", detail="NO_PERMISSION")


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_a_store_that_may_only_be_read_can_be_read_and_refuses_the_rest(
    folder: Path, verb: Callable[[Log], object]
) -> None:
    folder = folder.rename(folder.with_name("never written to by this process"))
    before = everything(folder)
    log = Log(ReadOnlyStore(folder), SimulatedClock(), writer()).open()
    assert log.newest == opened(folder).newest
    assert len(Registry(log).files(log.state)) == 4
    with pytest.raises(StoreRefused):
        verb(log)
    assert log.reload() == opened(folder).newest
    assert everything(folder) == before


@pytest.fixture
def protected(folder: Path) -> Iterator[Path]:
    """The log in folders and files that nobody may write, and that everybody can reach."""
    with tempfile.TemporaryDirectory() as reachable:
        place = Path(shutil.copytree(folder, Path(reachable) / "orders"))
        Path(reachable).chmod(0o755)
        for path in (place, *place.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        yield place
        for path in (place, *place.rglob("*")):
            path.chmod(0o755)


def _drop_privileges() -> None:
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def _try_all(place: Path) -> list[tuple[int, str]]:
    """What opening and then each verb gives to whoever may not write there."""
    outcomes = []
    for verb in VERBS.values():
        log = opened(place)
        try:
            verb(log)
        except GrebeError as error:
            outcomes.append((log.newest.number, error.code))
    return outcomes


def test_a_folder_without_the_right_to_write_can_be_read_and_refuses_the_rest(protected: Path) -> None:
    before = everything(protected)
    newest = opened(protected).newest.number
    # In a process of its own, for the administrator may write anywhere.
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork"), _drop_privileges) as other:
        outcomes = other.submit(_try_all, protected).result()
    assert outcomes == [(newest, "STORE_REFUSED_NO_PERMISSION")] * len(VERBS)
    assert everything(protected) == before


@pytest.mark.parametrize("call", [f"get {HINT}", "list log"])
def test_a_log_that_vanishes_while_it_is_opened_is_no_table(folder: Path, call: str) -> None:
    if call == "list log":
        (folder / HINT).unlink()
    with pytest.raises(TableNotFound):
        Log(VanishingStore(folder, call)).open()
    assert not folder.exists()


def test_a_log_that_vanishes_after_it_was_opened_is_no_log_after_a_reload(folder: Path) -> None:
    newest = opened(folder).newest
    log = Log(VanishingStore(folder, f"get {entry_path(newest.number)}")).open()
    assert not folder.exists()
    assert log.newest == newest
    with pytest.raises(SourceChanged, match="Reload"):
        Registry(log).files(log.state)
    assert log.reload() == Snapshot()
    with pytest.raises(TableNotFound, match=r"\[TABLE_NOT_FOUND_LOG_REMOVED\].*has been removed"):
        begin(log, Verb.CREATE, ["anew"], {"anew": SPEC})
    assert not folder.exists() or not list(folder.glob("log/*.json"))


@pytest.mark.parametrize("backwards", [False, True])
def test_while_a_folder_is_being_removed_a_reader_sees_an_earlier_state_or_says_so(
    folder: Path, backwards: bool
) -> None:
    full = [Snapshot()]
    for number in range(8):
        found = snapshot.read_entry(LocalStore(folder), number) or pytest.fail("gap")
        full.append(full[-1].after(*found, where="here"))
    states = [opened(folder).newest]
    for path in sorted(p for p in folder.rglob("*") if p.is_file())[:: -1 if backwards else 1]:
        path.unlink()
        try:
            states.append(opened(folder).newest)
        except (TableNotFound, CorruptLog):
            continue
    numbers = [state.number for state in states]
    assert numbers == sorted(numbers, reverse=True)
    assert set(numbers) == (set(range(8)) if backwards else {7})
    assert all(state == full[state.number + 1] for state in states)


HOUR = 3_600_000


@pytest.mark.parametrize("ahead", [HOUR, -HOUR, 40 * 365 * 24 * HOUR])
def test_writers_whose_clocks_are_an_hour_apart_do_not_take_each_other_for_dead(folder: Path, ahead: int) -> None:
    store = LocalStore(folder)
    one = Log(store, SimulatedClock(1), writer("ann@one")).open()
    two = Log(store, SimulatedClock(2, SimulatedClock().now_ms() + ahead), writer("bob@two")).open()
    mine = begin(one, Verb.REFRESH, ["i"])
    for log, verb in ((two, Verb.VACUUM), (two, Verb.CREATE)):
        with pytest.raises(WrongState, match=r"refresh of i is under way, begun by ann@one"):
            begin(log, verb, ["i"], {"i": SPEC} if verb is Verb.CREATE else None, replace=True)
    theirs = begin(two, Verb.OPTIMIZE, ["i"])
    with pytest.raises(WrongState, match=r"begun by (bob@two|ann@one)"):
        begin(one, Verb.VACUUM, ["i"])
    register(two, "from two")
    register(one, "from one")
    theirs.commit(lambda state: [])
    mine.commit(lambda state: [])
    entries = list(snapshot.history(store, one.newest.number))
    assert [entry.number for entry in entries] == list(range(len(entries)))
    assert [e.at_ms for e in entries] != sorted(e.at_ms for e in entries), "the clocks told another order"
    told = [entry.action for entry in describe_history(entries)][-6:]
    assert told[:2] == ["refresh begin", "optimize begin"]
    assert told[-2:] == ["optimize commit", "refresh commit"]
    assert list(Registry(one).register(files("from two", "from one")).to_pylist()) == [5, 4]


@pytest.mark.parametrize("ahead", [HOUR, -HOUR])
def test_only_the_stores_clock_says_that_a_heartbeat_has_lapsed(folder: Path, ahead: int) -> None:
    store = LocalStore(folder)
    lost = begin(Log(store, SimulatedClock(1), writer("ann@one")).open(), Verb.REFRESH, ["i"])
    other = Log(store, SimulatedClock(2, SimulatedClock().now_ms() + ahead), writer("bob@two")).open()
    beat = folder / heartbeat_path(lost.id)
    begun = beat.stat().st_mtime
    os.utime(beat, (begun - 30, begun - 30))
    with pytest.raises(WrongState):
        begin(other, Verb.VACUUM, ["i"])
    os.utime(beat, (begun - 90, begun - 90))
    begin(other, Verb.VACUUM, ["i"])
    with pytest.raises(WrongState) as ended:
        lost.commit(lambda state: [])
    assert ended.value.code == "WRONG_STATE_OPERATION_ENDED"
