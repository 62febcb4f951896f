"""Moves modules as the maps say, and mends imports, and dotted names in texts."""

import ast
import re
import subprocess
import sys
from pathlib import Path

from tools.rename.definitions import FOLDERS, ROOT, SOURCE, maps

_DOTTED = re.compile(r"\bgrebe(?:\.[a-z_][a-z0-9_]*)+")
_TEXTS = (".py", ".md", ".toml", ".yml", ".java")


class Moves:
    def __init__(self, given: dict[str, str]) -> None:
        self._given = given
        self.files = {_dotted(path): path for path in SOURCE.rglob("*.py")}
        self.new = {name: self._new(name) for name in self.files}
        if len(set(self.new.values())) < len(self.new):
            raise ValueError("two modules would have one name")

    def _new(self, name: str) -> str:
        parts = name.split(".")
        for count in range(len(parts), 0, -1):
            found = self._given.get(".".join(parts[:count]))
            if found is not None:
                return ".".join((found, *parts[count:]))
        return name

    def mended(self, text: str) -> str:
        """Return a text with the new names of modules, wherever their old ones stand in full."""
        return _DOTTED.sub(lambda found: self._mended(found[0]), text)

    def _mended(self, name: str) -> str:
        parts = name.split(".")
        for count in range(len(parts), 1, -1):
            module = ".".join(parts[:count])
            if module in self.new:
                return ".".join((self.new[module], *parts[count:]))
        return name

    def move(self) -> int:
        moved = {old: new for old, new in self.new.items() if old != new}
        for old, new in sorted(moved.items()):
            to = SOURCE / Path(*new.split("."))
            to = to / "__init__.py" if self.files[old].name == "__init__.py" else to.with_suffix(".py")
            to.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["git", "mv", str(self.files[old]), str(to)], cwd=ROOT, check=True)
        return len(moved)


def main(paths: list[str]) -> int:
    moves = Moves({old: new for found in maps(paths).values() for old, new in found["modules"].items()})
    for folder in FOLDERS:
        for file in (ROOT / folder).rglob("*.py"):
            file.write_text(_with_imports(file.read_text(), moves, file))
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    for name in listed:
        file = ROOT / name
        if file.is_file() and (name == "Makefile" or name.endswith(_TEXTS)) and "tools/rename" not in name:
            file.write_text(moves.mended(file.read_text()))
    print(f"{moves.move()} modules moved")
    return 0


def _dotted(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _with_imports(text: str, moves: Moves, file: Path) -> str:
    """Return a text whose `from a import b` name modules anew; what a module is called in the text follows."""
    lines, names = text.split("\n"), dict[str, str]()
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom) and not node.level]
    for node in sorted(imports, key=lambda one: one.lineno, reverse=True):
        packages: dict[str, list[str]] = {}
        for one in node.names:
            whole = f"{node.module}.{one.name}"
            if whole not in moves.new or _defines(moves.files.get(node.module or ""), one.name):
                package, name = moves.new.get(node.module or "", node.module or ""), one.name
            else:
                package, _, name = moves.new[whole].rpartition(".")
                if one.asname is None and name != one.name:
                    names[one.name] = name
            packages.setdefault(package, []).append(
                name + (f" as {one.asname}" if one.asname not in (None, name) else "")
            )
        if list(packages) == [node.module] and not any(one.name in names for one in node.names):
            continue
        remark = re.search(r"\s+# (?:noqa|type).*$", lines[(node.end_lineno or node.lineno) - 1])
        made = [
            f"{' ' * node.col_offset}from {package} import ({', '.join(own)}){remark[0] if remark else ''}"
            for package, own in packages.items()
        ]
        lines[node.lineno - 1 : node.end_lineno] = [
            one.replace("(", "").replace(")", "") if "," not in one else one for one in made
        ]
    return _with_names("\n".join(lines), names, file) if names else "\n".join(lines)


def _with_names(text: str, names: dict[str, str], file: Path) -> str:
    tree, lines = ast.parse(text), text.split("\n")
    bound = {one.arg for one in ast.walk(tree) if isinstance(one, ast.arg)}
    bound |= {one.id for one in ast.walk(tree) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    for old, new in names.items():
        if bound & {old, new}:
            print(f"{file.relative_to(ROOT)}: {old} -> {new} meets another name")
    uses = {
        (one.lineno - 1, one.col_offset, one.id)
        for one in ast.walk(tree)
        if isinstance(one, ast.Name) and one.id in names
    }
    for line, column, name in sorted(uses, reverse=True):
        data = lines[line].encode()
        lines[line] = (data[:column] + names[name].encode() + data[column + len(name.encode()) :]).decode()
    return "\n".join(lines)


def _defines(package: Path | None, name: str) -> bool:
    """Tell whether a package itself has something of the name of one of its modules."""
    if package is None or package.name != "__init__.py":
        return False
    body = ast.parse(package.read_text()).body
    return any(isinstance(one, ast.FunctionDef | ast.ClassDef) and one.name == name for one in body)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
