"""Every field of everything that the log of a real table holds, replaced by hostile values and sealed anew: at the public edge only
errors of ours, and no place but the table and its log is touched."""

import contextlib
import gzip
import json
import random
import tarfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import grebe
from grebe.errors import GrebeError
from grebe.files import FileList, RegisteredFiles, decode, encode
from grebe.log import codec, names
from grebe.log.commit import Log
from grebe.maintenance.vacuum import vacuum
from grebe.store.local import LocalStore
from testbed.released import archives

TEXTS = [
    "../../../hr",
    "/etc/passwd",
    "file:///etc/passwd",
    "http://127.0.0.1:9/x",
    "%2e%2e/x",
    "a\\..\\b",
    "",
    "\0",
    "x" * 20_000,
]
HOSTILE: dict[type, list[Any]] = {
    str: [*TEXTS, 5, None, [], {}],
    int: [-1, 2**31, 2**63, 10**40, 1.5, True, "1", None, []],
    float: [-1.0, 1e308, "1", None, []],
    bool: [1, "true", None],
    list: [None, {}, "text", [None], [[]], [["x", "y"]], [{}]],
    dict: [None, [], "text", 7, {"../../x": 1}, {"a": {}}],
    type(None): ["text", 7, [], {}],
}
TOUCHING = ("get", "get_range", "get_ranges", "put", "put_if_absent", "delete", "stat", "list")


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    yield path, value
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in parts:
        yield from _places(inner, (*path, key))


def _replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _replaced(value[path[0]], path[1:], new)
    return copy


class _Forger:
    """The log of a table in its folder, forged one field at a time and put back."""

    def __init__(self, table: Path) -> None:
        self.table = table
        self.log = table.parent / "_grebe" / table.name / "log"
        self._whole = {place: place.read_bytes() for place in self.log.iterdir() if place.is_file()}
        entries = sorted(place for place in self._whole if place.suffix == ".json")
        self._bodies = [json.loads(self._whole[place].partition(b"\n")[0]) for place in entries]
        self._state = json.loads(gzip.decompress(self._whole[self.log / "latest.json.gz"]).partition(b"\n")[0])

    def move(self, uris: dict[str, str], sizes: dict[str, int]) -> None:
        """Write the log for a table at another place, with lists of files of other sizes."""

        def moved(value: Any) -> Any:
            if isinstance(value, dict):
                own = {key: moved(inner) for key, inner in value.items()}
                return {**own, "size": sizes[own["path"]]} if own.get("path") in sizes else own
            if isinstance(value, list):
                return [moved(inner) for inner in value]
            return uris.get(value, value) if isinstance(value, str) else value

        self._bodies, self._state = moved(self._bodies), moved(self._state)
        digest = ""
        for number, body in enumerate(self._bodies):
            body["previous"] = digest
            data, digest = codec._seal(body)
            self._whole[self.log / Path(names.entry_path(number)).name] = data
        self._state["digest"] = digest
        self._whole[self.log / "latest.json.gz"] = gzip.compress(codec._seal(self._state)[0])
        self.restore()

    def cases(self) -> list[tuple[int | None, tuple[Any, ...], Any]]:
        """The number of an entry, or None for the hint; the field; and what it becomes."""
        found: list[tuple[int | None, tuple[Any, ...], Any]] = []
        bodies: list[tuple[int | None, Any]] = [*enumerate(self._bodies), (None, self._state["state"])]
        for number, body in bodies:
            for path, value in _places(body):
                found += [(number, path, new) for new in HOSTILE[type(value)] if path and path != ("grebe",)]
        return found

    def forge(self, number: int | None, path: tuple[Any, ...], new: Any) -> None:
        self.restore()
        hint = self.log / "latest.json.gz"
        if number is None:
            forged = {**self._state, "state": _replaced(self._state["state"], path, new)}
            hint.write_bytes(gzip.compress(codec._seal(forged)[0]))
            return
        hint.unlink()
        digest = self._bodies[number]["previous"]
        for at, body in enumerate(self._bodies[number:], number):
            changed = _replaced(body, path, new) if at == number else body
            keep = at == number and path[0] == "previous"
            data, digest = codec._seal(changed if keep else {**changed, "previous": digest})
            (self.log / Path(names.entry_path(at)).name).write_bytes(data)

    def restore(self) -> None:
        for place in self.log.iterdir():
            if place not in self._whole:
                place.unlink()
        for place, data in self._whole.items():
            place.write_bytes(data)


@pytest.fixture(scope="module")
def forger(tmp_path_factory: pytest.TempPathFactory) -> _Forger:
    """Of a table that the first release wrote, at another place: whatever names the old one names this."""
    folder = tmp_path_factory.mktemp("released")
    with tarfile.open(archives()[0]) as archive:
        archive.extractall(folder, filter="data")
    table, ours = folder / "t", folder / "_grebe" / "t"
    (segment,) = (ours / "files").iterdir()
    told = decode(segment.read_bytes())
    stats = {name: (table / name).stat() for name in told.files.paths().to_pylist()}
    files = FileList.build(
        table.as_uri(),
        list(stats),
        [one.st_size for one in stats.values()],
        [one.st_mtime_ns // 1_000_000 for one in stats.values()],
    )
    data = encode(RegisteredFiles(files, told.ids))
    segment.write_bytes(data)
    forger = _Forger(table)
    forger.move({told.files.root: table.as_uri()}, {f"files/{segment.name}": len(data)})
    return forger


@pytest.fixture
def touched(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Where stores of the local disk were asked for anything."""
    found: set[str] = set()
    for name in TOUCHING:
        own = getattr(LocalStore, name)

        def noting(store: LocalStore, path: str = "", *more: Any, _own: Any = own, **named: Any) -> Any:
            found.add(f"{store.uri}/{path}")
            return _own(store, path, *more, **named)

        monkeypatch.setattr(LocalStore, name, noting)
    return found


def _use(table: Path) -> None:
    """What people do at the public edge, each by itself."""
    try:
        opened = grebe.open(str(table))
    except GrebeError:
        return
    log = LocalStore(table.parent / "_grebe" / table.name)
    for call in (
        opened.indexes,
        opened.history,
        opened.verify,
        partial(opened.files, "name = 'name 123'"),
        lambda: vacuum(Log(log).open(), dry_run=True),
    ):
        with contextlib.suppress(GrebeError):
            call()
    with contextlib.suppress(GrebeError):
        assert opened.get("name", "name 123").to_pylist() == [{"id": 123, "name": "name 123", "price": 15.375}]
    with contextlib.suppress(GrebeError):
        assert opened.scan("id = 7").num_rows == 1


def _is_harmless(forger: _Forger, touched: set[str]) -> bool:
    allowed = (f"file://{forger.table}", f"file://{forger.table.parent}/_grebe/{forger.table.name}")
    looked_for = f"file://{forger.table.parent}/_grebe/"
    return all(
        ".." not in one and (one.startswith(allowed) or one.startswith(looked_for) or "/_grebe/" in one)
        for one in touched
    )


def _try_all(forger: _Forger, touched: set[str], cases: list[tuple[int | None, tuple[Any, ...], Any]]) -> None:
    for number, path, new in cases:
        forger.forge(number, path, new)
        touched.clear()
        try:
            _use(forger.table)
        except Exception as problem:
            raise AssertionError(f"entry {number}, field {path}: {str(new)[:60]!r}") from problem
        assert _is_harmless(forger, touched), (number, path, str(new)[:60], touched)


def test_the_table_that_is_forged_is_whole_and_its_indexes_serve(forger: _Forger, touched: set[str]) -> None:
    forger.restore()
    opened = grebe.open(str(forger.table))
    assert {info.files_stale for info in opened.indexes()} == {0}
    assert opened.files("name = 'name 123'").index == "lookup"
    assert opened.verify().ok
    assert _is_harmless(forger, touched)


def test_a_forged_field_leads_to_an_error_of_ours_or_to_the_right_answer(forger: _Forger, touched: set[str]) -> None:
    _try_all(forger, touched, random.Random(19).sample(forger.cases(), 150))


@pytest.mark.soak
def test_every_forged_field_leads_to_an_error_of_ours_or_to_the_right_answer(
    forger: _Forger, touched: set[str]
) -> None:
    _try_all(forger, touched, forger.cases())
