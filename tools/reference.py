"""Writes the pages of docs/reference from the code itself: the settings and the errors. `make docs` runs it."""

import ast
import inspect
from collections import defaultdict
from pathlib import Path

from grebe import errors
from grebe.config import ENVIRONMENT_PREFIX, SPARK_PREFIX, TOML_NAME, describe
from grebe.errors import GrebeError

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "reference"


def settings_page() -> str:
    rows = [f"| `{name}` | `{_literal(default)}` | {says} |" for name, default, says in describe()]
    return f"""# Settings

The same names hold in every place. From the highest rank to the lowest:

1. an argument of the call,
2. a `grebe.Config` made in code: only what it names counts, `Config(hybrid=True)` says nothing about the others,
3. `{SPARK_PREFIX}<name>` in Spark,
4. `{ENVIRONMENT_PREFIX}<NAME>` in the environment, in capitals; an empty variable is one that is not set,
5. `<name> = …` in `{TOML_NAME}`, looked for beside the program and then in the working folder,
6. the default.

A name or a value that Grebe does not know is refused with [`InvalidConfig`](errors.md), wherever it stands.

| setting | default | what it says |
|---|---|---|
{chr(10).join(rows)}

Sizes are bytes or text such as `"256MB"`; units are powers of 1024, as in Spark. Where `none` is a value it can be written as text:
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


def raised_codes() -> dict[str, set[str]]:
    """The codes that the code can raise, by class: every `Class(…, detail="…")` in it."""
    codes: dict[str, set[str]] = defaultdict(set)
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id=name), keywords=words) if isinstance(getattr(errors, name, None), type):
                    details = [word.value for word in words if word.arg == "detail"]
                    texts = [detail.value for detail in details if isinstance(detail, ast.Constant)]
                    codes[name] |= {getattr(errors, name)("", detail=text).code for text in texts or [""]}
    return codes


def _literal(default: object) -> str:
    return "none" if default is None else str(default).lower()


PAGES = {FOLDER / "settings.md": settings_page, FOLDER / "errors.md": errors_page}


def main() -> None:
    for path, page in PAGES.items():
        path.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
