"""The checkout as the project's tests see it: its files, and the imports of its modules."""

import ast
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "grebe"

_MADE_HERE = {"__pycache__", "build", "dist", "site", "spark-warehouse", "metastore_db"}


@dataclass(frozen=True)
class Import:
    """One imported name: `module` is the whole dotted path as far as it may be a module."""

    module: str
    line: int
    in_function: bool
    for_types_only: bool


@dataclass(frozen=True)
class Module:
    name: str
    path: Path
    tree: ast.Module

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    def imports(self) -> list[Import]:
        return list(self._imports_below(self.tree, in_function=False, for_types_only=False))

    def _imports_below(self, node: ast.AST, in_function: bool, for_types_only: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            inside = in_function or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            types = for_types_only or (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test))
            if isinstance(child, ast.Import):
                yield from (Import(name.name, child.lineno, inside, types) for name in child.names)
            elif isinstance(child, ast.ImportFrom):
                base = self._resolved(child)
                yield from (Import(f"{base}.{name.name}", child.lineno, inside, types) for name in child.names)
            yield from self._imports_below(child, inside, types)

    def _resolved(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        package = self.name.split(".") if self.is_package else self.name.split(".")[:-1]
        above = package[: len(package) - node.level + 1]
        return ".".join([*above, node.module] if node.module else above)


def module(path: Path, source: Path = SOURCE) -> Module:
    parts = path.relative_to(source.parent).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return Module(name, path, ast.parse(path.read_text(encoding="utf-8"), str(path)))


def modules(source: Path = SOURCE) -> list[Module]:
    return [module(path, source) for path in sorted(source.rglob("*.py"))]


def files() -> list[Path]:
    """All files that belong to the project, committed or about to be; in a copy without history, all that were not made here."""
    if (ROOT / ".git").exists():
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:
        paths = []
        for folder, below, names in os.walk(ROOT):
            below[:] = [name for name in below if name == ".ci" or not (name.startswith(".") or name in _MADE_HERE)]
            paths += [Path(folder, name) for name in names]
    return sorted(path for path in paths if path.is_file())
