"""The command line as a whole: exit codes, errors, output for people and for programs, and what it loads."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from grebe.cli import verb
from grebe.cli.main import VERBS, main
from grebe.cli.output import Output
from grebe.cli.verb import Verb, Verbs
from grebe.errors import Conflict

ROWS = [{"name": "a[b]", "rows": 3, "kept": None}, {"name": "ü" * 300, "rows": 14, "kept": None}]


def program(does: Callable[..., Any]) -> Verbs:
    """A command line with the one verb `act`."""

    @click.command(cls=Verb)
    @click.argument("values", nargs=-1)
    @click.pass_obj
    def act(output: Output, values: tuple[str, ...]) -> None:
        does(output, *values)

    class OneVerb(Verbs):
        def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
            return act if cmd_name == "act" else None

    return OneVerb("grebe", verbs={"act": ("", "")}, callback=lambda **_: None)


def run(does: Callable[..., Any], *arguments: str) -> Result:
    return CliRunner().invoke(program(does), arguments)


@pytest.mark.parametrize(
    "arguments", [[], ["nonsense"], ["doctor", "--nonsense"], ["--nonsense"], ["doctor", "a", "b"]]
)
def test_wrong_use_ends_with_2_and_says_how_to_use_it(arguments: list[str]) -> None:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert "Usage: " in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_has_help_that_says_what_it_does(name: str) -> None:
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == 0
    assert f"Usage: main {name}" in result.stdout
    assert "--json" in result.stdout


def test_an_error_of_ours_is_one_line_on_stderr_and_ends_with_1() -> None:
    def refuse(output: Output) -> None:
        raise Conflict("another writer was first. Try again.", detail="LOST_RACE")

    result = run(refuse, "act")
    assert result.exit_code == 1
    assert result.stderr == "error: [CONFLICT_LOST_RACE] another writer was first. Try again.\n"
    assert result.stdout == ""


def test_a_fault_of_ours_shows_neither_traceback_nor_values_unless_asked_to() -> None:
    def fail(output: Output) -> None:
        raise KeyError("a value of the user's")

    quiet = run(fail, "act", "-v")
    assert quiet.exit_code == 1
    assert quiet.stderr.startswith("error: [UNEXPECTED] KeyError: ")
    assert "value of the user" not in quiet.output
    loud = run(fail, "act", "-vv")
    assert loud.exit_code == 1
    assert "Traceback" in loud.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["doctor", "--help"], ["list", "{table}"], ["vacuum", "{table}"]]
)
def test_output_that_cannot_be_written_is_one_line_and_no_fault(arguments: list[str], indexed: str) -> None:
    program = "from grebe.cli.main import main; main()"
    asked = [part.replace("{table}", indexed) for part in arguments]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-c", program, *asked], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert ended.returncode == 1
    assert ended.stderr.startswith("error: the output cannot be written (No space left on device); ")
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.parametrize("arguments", [["--json", "act"], ["act", "--json"], ["act", "x", "--json"]])
def test_json_can_be_asked_for_before_and_after_the_verb(arguments: list[str]) -> None:
    result = run(lambda output, *_: output.rows(["name"], ROWS), *arguments)
    assert json.loads(result.stdout) == ROWS


def test_no_rows_are_an_empty_array() -> None:
    assert json.loads(run(lambda output: output.rows(["name"], []), "act", "--json").stdout) == []


def test_a_table_for_people_shows_whole_values_and_no_empty_columns() -> None:
    text = run(lambda output: output.rows(["name", "rows", "kept"], ROWS), "act").stdout
    assert text.split() == ["name", "rows", text.split()[2], "a[b]", "3", "ü" * 300, "14"]


def test_a_note_is_for_people_only() -> None:
    assert run(lambda output: output.note("done"), "act").stdout == "done\n"
    assert run(lambda output: output.note("done"), "act", "--json").stdout == ""


@pytest.mark.parametrize("value", ["-1", "-1.5", "-.5", "-1e-3", "-Infinity"])
def test_a_negative_number_is_a_value(value: str) -> None:
    seen: list[str] = []
    result = run(lambda output, *values: seen.extend(values), "act", "id", value, "--json", "7")
    assert result.exit_code == 0, result.output
    assert seen == ["id", value, "7"]


def test_a_mistyped_option_beside_a_negative_number_is_still_wrong_use() -> None:
    assert run(lambda output, *values: None, "act", "-1", "--jsn").exit_code == 2


def test_after_two_dashes_everything_is_a_value() -> None:
    seen: list[str] = []
    run(lambda output, *values: seen.extend(values), "act", "-1", "--", "--jsn")
    assert seen == ["-1", "--jsn"]


def test_help_and_version_load_nothing_heavy() -> None:
    heavy = {"pyarrow", "numpy", "obstore", "rich", "sqlglot", "pyspark", "pandas"}
    code = f"""
import sys
from grebe.cli.main import main
for arguments in (["--help"], ["--version"]):
    assert main.main(arguments, standalone_mode=False) == 0
print(sorted({heavy!r} & set(sys.modules)))
"""
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert result.stdout.splitlines()[-1] == "[]"


def test_a_package_that_is_not_installed_is_named_with_what_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(main.verbs, "broken", ("no_such_package.verb", ""))
    result = CliRunner().invoke(main, ["broken"])
    assert result.exit_code == 1
    assert result.stderr == "error: the package no_such_package is not installed: pip install grebe brings it\n"


def test_the_verbs_share_their_options() -> None:
    assert verb.json_option in main.params


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_are_told_how_to_complete(shell: str) -> None:
    result = CliRunner().invoke(main, ["completion", shell])
    assert result.exit_code == 0, result.output
    assert "_GREBE_COMPLETE" in result.stdout
    assert json.loads(CliRunner().invoke(main, ["completion", shell, "--json"]).stdout)["shell"] == shell


def test_verbs_and_options_are_completed() -> None:
    def offered(words: str, number: int) -> str:
        asked = {"COMP_WORDS": words, "COMP_CWORD": str(number), "_GREBE_COMPLETE": "bash_complete"}
        return CliRunner().invoke(main, prog_name="grebe", env=asked).stdout

    assert "plain,refresh" in offered("grebe ref", 1)
    assert "--include" in offered("grebe create --inc", 2)


@pytest.mark.parametrize(
    "arguments", [["explain", "SELECT 1"], ["why-not", "SELECT 1"], ["watch", "somewhere"], ["refresh", "somewhere"]]
)
def test_a_verb_that_needs_spark_says_how_to_install_it(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in {"pyspark.sql", "pyspark.errors", *(name for name in sys.modules if name.startswith("pyspark"))}:
        monkeypatch.setitem(sys.modules, name, None)
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 1
    assert "[UNSUPPORTED_NO_SPARK] this needs Spark: install the extra `grebe[spark]`" in result.stderr
