"""Renames classes, functions, members and parameters as the maps say, in all files at once."""

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from tools.rename.definitions import FOLDERS, ROOT, file_of, find, maps, members
from tools.rename.language_server import LanguageServer

Edits = dict[tuple[int, int, int], str]
"""Line, first and last column (of UTF-16): the new text."""


@dataclass(frozen=True)
class Symbol:
    file: Path
    name: str
    to: str


@dataclass(frozen=True)
class Class:
    file: Path
    name: str
    bases: frozenset[str]
    members: frozenset[str]

    @property
    def is_protocol(self) -> bool:
        return "Protocol" in self.bases


def main(paths: list[str]) -> int:
    given = [
        Symbol(file, one["name"], one["to"])
        for found in maps(paths).values()
        for one in found["symbols"]
        if (file := file_of(one["module"])) is not None
    ]
    symbols = list(dict.fromkeys((*given, *_overrides(given))))
    print(f"{len(given)} symbols, {len(symbols) - len(given)} overrides")
    server = LanguageServer(ROOT, FOLDERS)
    edits: dict[Path, Edits] = {}
    faults = 0
    for number, symbol in enumerate(symbols):
        try:
            _add(edits, symbol, server.rename(symbol.file, *_position(symbol), symbol.to))
        except (RuntimeError, ValueError) as problem:
            print(f"{symbol.file.relative_to(ROOT)} {symbol.name} -> {symbol.to}: {problem}")
            faults += 1
        if number % 100 == 0:
            print(f"{number} of {len(symbols)}", flush=True)
    server.close()
    for file, own in edits.items():
        _apply(file, own)
    print(f"{len(edits)} files, {faults} faults")
    return min(faults, 1)


def _position(symbol: Symbol) -> tuple[int, int]:
    """Return where the name stands in its definition."""
    text = symbol.file.read_text()
    node = find(ast.parse(text), symbol.name)
    if node is None:
        raise ValueError("no such definition")
    base = symbol.name.rpartition(":")[2].rpartition(".")[2]
    lines = text.split("\n")
    is_at_end = isinstance(node, ast.Attribute | ast.MatchAs | ast.MatchStar)
    number = int((node.end_lineno or node.lineno) if is_at_end else node.lineno) - 1
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        places = [one.start(1) for one in re.finditer(rf"(?:def|class)\s+({re.escape(base)})\b", lines[number])]
    else:
        first = len(lines[number].encode()[: node.col_offset].decode()) if node.lineno - 1 == number else 0
        places = [one.start() for one in re.finditer(rf"\b{re.escape(base)}\b", lines[number]) if one.start() >= first]
    if not places:
        raise ValueError("its name is not where it is defined")
    return number, len(lines[number][: places[0]].encode("utf-16-le")) // 2


def _add(edits: dict[Path, Edits], symbol: Symbol, changes: dict[str, list[dict[str, Any]]]) -> None:
    found = 0
    for uri, own in changes.items():
        file = Path(unquote(urlparse(uri).path))
        if not any(file.is_relative_to(ROOT / folder) for folder in FOLDERS):
            continue
        for edit in own:
            start, end = edit["range"]["start"], edit["range"]["end"]
            key = (start["line"], start["character"], end["character"])
            other = edits.setdefault(file, {}).setdefault(key, edit["newText"])
            if other != edit["newText"]:
                raise ValueError(f"{file.name}:{key[0] + 1} becomes {other} by another entry")
            found += 1
    if not found:
        raise ValueError("nothing to rename")


def _apply(file: Path, edits: Edits) -> None:
    lines = file.read_text().split("\n")
    for (line, first, last), text in sorted(edits.items(), reverse=True):
        data = lines[line].encode("utf-16-le")
        lines[line] = (data[: 2 * first] + text.encode("utf-16-le") + data[2 * last :]).decode("utf-16-le")
    file.write_text("\n".join(lines))


def _overrides(symbols: Iterable[Symbol]) -> Iterator[Symbol]:
    """Yield members of subclasses, and of classes that have all that a Protocol asks for."""
    classes = list(_classes())
    by_name: dict[str, list[Class]] = {}
    for one in classes:
        by_name.setdefault(one.name, []).append(one)
    for symbol in symbols:
        path, colon, local = symbol.name.partition(":")
        name, dot, member = path.partition(".")
        own = next((one for one in classes if (one.file, one.name) == (symbol.file, name)), None)
        if not dot or "." in member or own is None:
            continue
        for one in _followers(own, classes, by_name):
            other = Symbol(one.file, f"{one.name}.{member}{colon}{local}", symbol.to)
            if member in one.members and one != own and find(ast.parse(one.file.read_text()), other.name) is not None:
                yield other


def _followers(own: Class, classes: list[Class], by_name: dict[str, list[Class]]) -> Iterator[Class]:
    names = {own.name}
    while more := {one.name for one in classes if one.bases & names} - names:
        names |= more
    asked = {one for one in own.members if not one.startswith("_")}
    for one in classes:
        if one.name in names and one.bases & names:
            yield one
        elif own.is_protocol and asked:
            line = _line(one, by_name)
            if asked <= frozenset[str]().union(*(each.members for each in line)):
                yield from (each for each in line if not each.is_protocol or each.name in names)


def _line(one: Class, by_name: dict[str, list[Class]]) -> list[Class]:
    found, waiting = [], [one]
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.append(each)
            waiting += [base for name in each.bases for base in by_name.get(name, [])]
    return found


def _classes() -> Iterator[Class]:
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.ClassDef):
                    bases = frozenset(name for base in node.bases if (name := _base(base)))
                    yield Class(file, node.name, bases, frozenset(members(node)))


def _base(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):
        return _base(node.value)
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
