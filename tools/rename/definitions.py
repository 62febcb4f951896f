"""Finds the definition that an entry of a map names."""

import ast
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "src"
MAPS = Path(__file__).parent / "maps"
FOLDERS = ("src", "tests", "bench", "testbed", "tools")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def maps(paths: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the maps by their names; all maps of Python if none are given."""
    chosen = [Path(path) for path in paths] or sorted(path for path in MAPS.glob("*.json") if path.stem != "java")
    return {path.stem: json.loads(path.read_text()) for path in chosen}


def file_of(module: str) -> Path | None:
    path = SOURCE / Path(*module.split("."))
    return next((one for one in (path.with_suffix(".py"), path / "__init__.py") if one.is_file()), None)


def find(tree: ast.Module, name: str) -> Any:
    """Return the node that defines `Class.member`, `function`, or `function:parameter`; None if there is none."""
    path, _, local = name.partition(":")
    found: Any = tree
    for part in path.split("."):
        found = _member(found, part)
        if found is None:
            return None
    if not local:
        return found
    return _local(found, local) if isinstance(found, Function) else None


def _member(scope: Any, name: str) -> Any:
    for node in _statements(getattr(scope, "body", [])):
        if isinstance(node, ast.ClassDef | Function) and node.name == name:
            return node
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        for target in targets:
            for one in ast.walk(target):
                if isinstance(one, ast.Name) and one.id == name:
                    return one
    if isinstance(scope, ast.ClassDef):
        return next((one for one in _own_attributes(scope) if one.attr == name), None)
    return None


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try):
            for part in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(node, part, []))


def _own_attributes(scope: ast.ClassDef) -> Iterator[ast.Attribute]:
    for node in ast.walk(scope):
        match node:
            case ast.Attribute(value=ast.Name(id="self"), ctx=ast.Store()):
                yield node


def members(scope: ast.ClassDef) -> set[str]:
    """Return the names of methods, fields and attributes that a class itself defines."""
    found = {one.attr for one in _own_attributes(scope)}
    for node in scope.body:
        if isinstance(node, Function):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        elif isinstance(node, ast.Assign):
            found |= {one.id for one in node.targets if isinstance(one, ast.Name)}
    return found


def _local(function: Function, name: str) -> Any:
    for node in ast.walk(function):
        if isinstance(node, ast.arg) and node.arg == name:
            return node
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            return node
        if isinstance(node, ast.FunctionDef) and node is not function and node.name == name:
            return node
        if isinstance(node, ast.MatchAs | ast.MatchStar) and node.name == name:
            return node
    return None
