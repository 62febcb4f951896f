"""What holds for every file of the project."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from grebe.config import ENVIRONMENT_PREFIX, MACHINE_VARIABLES, Config, describe
from tests.project.tree import ROOT, Module, files, module, modules

LONGEST = 400
FILES = files()
LOCKS = [ROOT / "requirements.lock", *sorted((ROOT / "requirements").glob("*.lock"))]

# Spelled so that this file does not find itself.
REGISTRIES = re.compile(
    r"pypi[.]org|pythonhosted[.]org|maven[.](apache[.])?org|repo1[.]|npmjs[.]org|crates[.]io|golang[.]org"
    r"|debian[.]org|index[-_]url|find[-_]links|trusted[-_]host",
    re.IGNORECASE,
)
MACHINE_PATHS = re.compile(r"(?<![\w./$}~-])/(tmp|work|root|farm|home)(/|\b)")


def text_of(path: Path) -> str:
    """Empty for what is no text."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def found_in_tree(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number} {line.strip()[:100]}"
        for path in FILES
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if pattern.search(line)
    ]


def test_nothing_names_the_host_of_a_package_registry_or_an_index() -> None:
    assert found_in_tree(REGISTRIES) == []


def test_nothing_names_a_path_of_some_machine() -> None:
    assert found_in_tree(MACHINE_PATHS) == []


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_a_lock_holds_pins_and_hashes_and_nothing_else(lock: Path) -> None:
    pin = re.compile(r"[a-z0-9-]+==[\w.!+]+( ; [^\\]+)? \\")
    digest = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")
    lines = lock.read_text().splitlines()
    assert [line for line in lines if not (pin.fullmatch(line) or digest.fullmatch(line))] == []
    assert lines


def test_the_lock_pins_the_main_spark_and_the_build_lock_agrees_with_it() -> None:
    def pins(path: Path) -> set[str]:
        return set(re.findall(r"^[a-z0-9-]+==[^ ]+", path.read_text(), re.MULTILINE))

    main = pins(ROOT / "requirements.lock")
    assert any(pin.startswith("pyspark==4.1.") for pin in main)
    assert pins(ROOT / "requirements" / "build.lock") <= main


def test_no_file_of_code_is_too_long() -> None:
    lengths = {path: len(text_of(path).splitlines()) for path in FILES if path.suffix in (".py", ".java")}
    assert {str(path.relative_to(ROOT)): n for path, n in lengths.items() if n > LONGEST} == {}


def test_no_module_is_a_drawer_for_odds_and_ends() -> None:
    drawers = {"util", "utils", "helper", "helpers", "common", "misc"}
    assert [str(path) for path in FILES if path.suffix == ".py" and drawers & {*path.parts, path.stem}] == []


def code_beyond_names(of: Module) -> list[str]:
    """The statements of a package's `__init__` that do more than name things."""
    lazy = {"__getattr__", "__dir__"} if of.name == "grebe" else set()

    def names_only(statement: ast.stmt) -> bool:
        match statement:
            case ast.Expr(value=ast.Constant(value=str())) | ast.Import() | ast.ImportFrom():
                return True
            case ast.Assign() | ast.AnnAssign():
                calls = (node for node in ast.walk(statement) if isinstance(node, ast.Call | ast.Lambda))
                return not any(calls)
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), body=body, orelse=[]):
                return all(map(names_only, body))
            case ast.FunctionDef(name=name):
                return name in lazy
            case _:
                return False

    return [f"{of.name}:{s.lineno}" for s in of.tree.body if not names_only(s)]


def test_packages_hold_names_only() -> None:
    assert [fault for of in modules() if of.is_package for fault in code_beyond_names(of)] == []


@pytest.mark.parametrize("statement", ["print(1)", "x = f()", "def f(): ...", "class A: ...", "for x in y: ..."])
def test_code_in_a_package_is_found(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "grebe" / "__init__.py"
    path.parent.mkdir()
    path.write_text(f'"""Names."""\nfrom a import b\n__all__ = ["b"]\n{statement}\n')
    assert code_beyond_names(module(path, path.parent)) == ["grebe:4"]


def test_every_module_says_what_lives_there() -> None:
    assert [of.name for of in modules() if not ast.get_docstring(of.tree)] == []


def test_every_variable_of_ours_is_a_setting_or_said_to_be_none() -> None:
    settings = {ENVIRONMENT_PREFIX + name.upper() for name, _, _ in describe()}
    code = [path for path in FILES if path.parts[len(ROOT.parts)] in ("src", "testbed", "bench", "tools")]
    named = {name for path in code for name in re.findall(r"\bGREBE_[A-Z][A-Z_]*\b", text_of(path))}
    assert named <= settings | MACHINE_VARIABLES
    assert Config.load(env=dict.fromkeys(MACHINE_VARIABLES, "x")) == Config()


def test_importing_grebe_loads_no_heavy_package() -> None:
    heavy = "{'pyspark', 'py4j', 'sqlglot', 'rich', 'pandas', 'pyarrow', 'obstore', 'numpy', 'deltalake', 'pyiceberg'}"
    program = f"import sys, grebe; print(sorted({heavy} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert run.stdout == "[]\n"
