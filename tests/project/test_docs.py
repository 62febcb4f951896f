"""The documentation is true: it builds without a warning, its examples run, and its reference is that of the code."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from grebe.cli.main import main
from tests.project.tree import ROOT
from tools.reference import PAGES as REFERENCE

RunPage = Callable[[Path], dict[str, Any]]
"""Runs the examples of a page one after the other; what they have named."""

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(path: Path) -> list[tuple[str, str, int]]:
    """Language, text and first line of every block of code."""
    text = path.read_text(encoding="utf-8")
    return [(m[1], m[2], text.count("\n", 0, m.start()) + 2) for m in BLOCK.finditer(text)]


README = ROOT / "README.md"
SHELLS = {"bash", "console", "sh", "shell"}
EXAMPLES = [path for path in DOCUMENTS if {"python", *SHELLS} & {language for language, _, _ in blocks(path)}]
BASH = shutil.which("bash") or "/bin/bash"
ENDS = "-- ends --"
PASSES_ON = f"""#!{BASH}
printf '%s\\0' "$@" '{ENDS}' >> "$TOLD"
"""
"""A `grebe` that only writes down what the shell gave it."""


@pytest.fixture
def run_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> RunPage:
    def run(path: Path) -> dict[str, Any]:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr("grebe.cli.demo.find_spec", lambda name: None)  # with Spark it has tests of its own
        if any("SparkSession" in text or "grebe " in text for _, text, _ in blocks(path)):
            # The page's `getOrCreate` gets this session, and so does a command that needs one: a page that comes first and starts
            # a Spark of its own would leave the later ones without the lake formats.
            work_in(request.getfixturevalue("spark"), tmp_path)
        names: dict[str, Any] = {"__name__": "__main__"}
        for language, text, line in blocks(path):
            if language == "python":
                # Padded, so that a traceback names the line of the page.
                exec(compile("\n" * (line - 1) + text, str(path), "exec"), names)
            elif language == "sql":
                for statement in text.split(";\n"):
                    request.getfixturevalue("spark").sql(statement).collect()
            elif language in SHELLS:
                for arguments in told_to_grebe(text, tmp_path / "shell"):
                    result = CliRunner().invoke(main, arguments)
                    assert result.exit_code == 0, f"{path}:{line}: grebe {shlex.join(arguments)}: {result.output}"
        return names

    return run


@pytest.mark.parametrize(
    "path", [path for path in EXAMPLES if path != README], ids=lambda path: str(path.relative_to(ROOT))
)
def test_the_examples_of_a_page_run_one_after_the_other(path: Path, run_page: RunPage) -> None:
    run_page(path)


def test_the_example_of_the_readme_uses_its_indexes(run_page: RunPage) -> None:
    names = run_page(README)
    assert names["lake"].explain(names["sales"]).to_dict()["used"] == ["by_customer"]
    assert names["grebe"].open("lake/orders").files("id = 4711").index == "by_id"


def work_in(spark: Any, folder: Path) -> None:
    """Relative paths of pages lie below the folder, also for the JVM, which started elsewhere."""
    hadoop = spark._jvm.org.apache.hadoop.fs
    files = hadoop.FileSystem.get(spark._jsc.hadoopConfiguration())
    files.setWorkingDirectory(hadoop.Path(str(folder)))


def told_to_grebe(script: str, folder: Path) -> list[list[str]]:
    """Run a block in a real shell; return the arguments of each `grebe` as the shell passed them on. `make` and `pip` do nothing
    there. Fails where the shell complains, or runs anything else."""
    folder.mkdir(exist_ok=True)
    told = folder / "told"
    told.write_bytes(b"")
    for program in ("grebe", "make", "pip"):
        (folder / program).write_text(PASSES_ON if program == "grebe" else "#!/bin/sh\n")
        (folder / program).chmod(0o755)
    environment = {"PATH": str(folder), "TOLD": str(told)}
    command = [BASH, "--norc", "-euc", script]
    ran = subprocess.run(command, env=environment, cwd=folder.parent, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, ""), f"the shell makes something else of this:\n{script}\n{ran.stderr}"
    commands = told.read_text(encoding="utf-8").split(f"{ENDS}\0")[:-1]
    return [command.split("\0")[:-1] for command in commands]


def test_what_a_shell_would_run_in_an_example_is_noticed(tmp_path: Path) -> None:
    assert told_to_grebe("grebe get t id -1 'a b' # a remark\ngrebe list t", tmp_path / "shell") == [
        ["get", "t", "id", "-1", "a b"],
        ["list", "t"],
    ]
    with pytest.raises(AssertionError, match=r"not found|No such file"):
        told_to_grebe('grebe explain "SELECT * FROM parquet.`lake/visits`"', tmp_path / "shell")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: str(path.relative_to(ROOT)))
def test_examples_for_the_shell_are_understood_by_a_shell(path: Path, tmp_path: Path) -> None:
    for language, text, _ in blocks(path):
        if language in SHELLS:
            told_to_grebe(text, tmp_path / "shell")


def test_the_readme_names_both_commands_and_holds_an_example() -> None:
    readme = ROOT / "README.md"
    assert {"make demo", "make test"} <= {line for _, text, _ in blocks(readme) for line in text.splitlines()}
    assert any(language == "python" for language, _, _ in blocks(readme))


@pytest.mark.parametrize("path", REFERENCE, ids=lambda path: path.name)
def test_the_reference_is_that_of_the_code(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == REFERENCE[path](), "run `make docs` and commit what it writes"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_to_files_lead_somewhere(path: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)", path.read_text(encoding="utf-8"))
    files = [link for link in links if not re.match(r"[a-z]+:", link)]
    assert [link for link in files if not (path.parent / link).exists()] == []


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # an advertisement of the theme's
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    assert built.stdout + built.stderr == ""
    assert (tmp_path / "site" / "index.html").exists()
