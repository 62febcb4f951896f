"""Writes the pages of docs/reference from the code itself: Python's names, the command line, the settings and the errors.
`make docs` runs it."""

import ast
import inspect
import re
from collections import defaultdict
from pathlib import Path

import click

import grebe
from grebe import errors
from grebe.cli.main import VERBS
from grebe.cli.main import main as command_line
from grebe.config import ENVIRONMENT_PREFIX, SPARK_PREFIX, TOML_NAME, describe
from grebe.errors import GrebeError
from grebe.setting_values import LONGEST_DAYS

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "reference"


def settings_page() -> str:
    rows = [f"| `{name}` | `{_literal(default)}` | {says} |" for name, default, says in describe()]
    return f"""# Settings

The same names hold in every place. From the highest rank to the lowest:

1. an argument of the call,
2. a `grebe.Config` made in code: only what it names counts, `Config(hybrid=True)` says nothing about the others,
3. `{SPARK_PREFIX}<name>` in Spark,
4. `{ENVIRONMENT_PREFIX}<NAME>` in the environment, in capitals; an empty variable is one that is not set, and one
   that names no setting is a warning, where in the other places it is an error,
5. `<name> = …` in `{TOML_NAME}`, looked for beside the program and then in the working folder,
6. the default.

A name or a value that Grebe does not know is refused with [`InvalidConfig`](errors.md), wherever it stands.

| setting | default | what it says |
|---|---|---|
{chr(10).join(rows)}

Sizes are bytes or text such as `"256MB"`, below 2^63; units are powers of 1024, as in Spark. A span in seconds is a
hundred years at the most, one in days {LONGEST_DAYS:,} days. Where `none` is a value it can be written as text:
`{ENVIRONMENT_PREFIX}LOCATION=none`.
"""


def errors_page() -> str:
    codes = raised_codes()
    rows = []
    for name, kind in inspect.getmembers(errors, inspect.isclass):
        if kind is not GrebeError and issubclass(kind, GrebeError):
            listed = "<br>".join(f"`{code}`" for code in sorted(codes[name]))
            rows.append(f"| `{name}` | {inspect.getdoc(kind)} | {listed} |")
    return f"""# Errors

Every error that leaves Grebe is a `GrebeError`. Its class says what to do, its `.code` is stable and begins with the name of the
class, and its message names the values and the next step. No message holds a credential or a value of your data.

The command line prints `error: [CODE] message` to standard error and ends with code 1; wrong use ends with 2.

| class | when | codes |
|---|---|---|
{chr(10).join(rows)}
"""


def python_page() -> str:
    """Every public name but the errors, which have a page of their own."""
    names = {name: getattr(grebe, name) for name in grebe.__all__ if not hasattr(errors, name)}
    functions = [_function(f"grebe.{name}", found) for name, found in names.items() if inspect.isfunction(found)]
    classes = [_class(name, found) for name, found in names.items() if inspect.isclass(found)]
    return f"""# Python

`import grebe` gives these names; they load when they are first used. [Errors](errors.md) and [settings](settings.md) have pages of
their own.

## Functions

{chr(10).join(functions)}
{chr(10).join(classes)}"""


def _class(name: str, kind: type) -> str:
    made = f"{name}{_signature(kind).removesuffix(' -> None')}"
    members = [
        _function(member, found)
        for member, found in vars(kind).items()
        if not member.startswith("_") and inspect.isfunction(found) and inspect.getdoc(found)
    ]
    return f"## {name}\n\n```text\n{made}\n```\n\n{_said(kind)}\n\n{chr(10).join(members)}"


def _function(name: str, found: object) -> str:
    return f"### `{name}`\n\n```text\n{name.rpartition('.')[2]}{_signature(found)}\n```\n\n{_said(found)}\n"


def _signature(found: object) -> str:
    text = str(inspect.signature(found)).replace("(self, /", "(self").replace("(self, ", "(").replace("(self)", "()")  # type: ignore[arg-type]  # a function or a class
    text = re.sub(r"<function .*? at 0x[0-9a-f]+>", "…", text)
    return re.sub(
        r"(?<![\w.])(?:grebe|pyspark|pyarrow|collections|typing|datetime|os)(?:\.\w+)*\.(?=\w)", "", text
    ).replace("'", "")


def _said(found: object) -> str:
    return inspect.getdoc(found) or ""


def command_line_page() -> str:
    context = click.Context(command_line, info_name="grebe")
    verbs = [_verb(name, context) for name in VERBS]
    return f"""# Command line

`grebe VERB --help` says the same. Every verb takes `--json`, which prints one JSON value for programs, and `-v`, which says more.
Exit codes: 0 done, 1 failed, 2 wrong use. Completion: `eval "$(grebe completion bash)"`, or `zsh`, `fish`.

{chr(10).join(verbs)}"""


def _verb(name: str, above: click.Context) -> str:
    command = command_line.get_command(above, name)
    assert command is not None, "it is one of the verbs"
    context = click.Context(command, info_name=name, parent=above)
    records = [param.get_help_record(context) for param in command.params if _is_own(param)]
    options = "".join(f"| `{_cell(record[0])}` | {_cell(record[1])} |\n" for record in records if record is not None)
    usage = command.get_usage(context).removeprefix("Usage: ")
    text = " ".join((command.help or "").split())
    return f"## {name}\n\n```text\n{' '.join(usage.split())}\n```\n\n{text}\n\n" + (
        f"| option | |\n|---|---|\n{options}" if options else ""
    )


def _is_own(param: click.Parameter) -> bool:
    return isinstance(param, click.Option) and param.name not in ("as_json", "verbose")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def raised_codes() -> dict[str, set[str]]:
    """The codes that the code can raise, by class: every `Class(…, detail="…")` in it."""
    codes: dict[str, set[str]] = defaultdict(set)
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id=name), keywords=words) if isinstance(getattr(errors, name, None), type):
                    details = [word.value for word in words if word.arg == "detail"]
                    texts = [detail.value for detail in details if isinstance(detail, ast.Constant)]
                    # A detail that is made up as the code runs is one of those that stand elsewhere.
                    codes[name] |= {
                        getattr(errors, name)("", detail=text).code for text in (texts if details else [""])
                    }
    return codes


def _literal(default: object) -> str:
    return "none" if default is None else str(default).lower()


PAGES = {
    FOLDER / "python.md": python_page,
    FOLDER / "command-line.md": command_line_page,
    FOLDER / "settings.md": settings_page,
    FOLDER / "errors.md": errors_page,
}


def main() -> None:
    for path, page in PAGES.items():
        path.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
