"""What a command tells its caller: tables for people, JSON for programs. Commands call this and never print."""

import datetime
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Protocol

Row = Mapping[str, object]


class Output(Protocol):
    def rows(self, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Many things of one sort: a table of these columns, or an array of the whole rows."""
        ...

    def one(self, row: Row) -> None:
        """One thing: a line for each of its facts, or an object."""
        ...

    def note(self, text: str) -> None:
        """A sentence for people; programs do not see it."""
        ...


class Text:
    """For people. A column that is empty in every row is left out."""

    def rows(self, columns: Sequence[str], rows: Sequence[Row]) -> None:
        import rich.box
        import rich.console
        import rich.table
        import rich.text

        table = rich.table.Table(box=rich.box.SIMPLE_HEAD, pad_edge=False)
        shown = [column for column in columns if any(_for_people(row.get(column)) for row in rows)] or columns
        for column in shown:
            numeric = all(isinstance(row.get(column), int | float | None) for row in rows)
            table.add_column(column.replace("_", " "), justify="right" if numeric and rows else "left", overflow="fold")
        for row in rows:
            # As Text, since square brackets in a path are no markup.
            table.add_row(*(rich.text.Text(_for_people(row.get(column))) for column in shown))
        # In a pipe nothing is cut or folded: whoever reads it looks for whole values.
        rich.console.Console(width=None if sys.stdout.isatty() else 10_000, highlight=False).print(table)

    def one(self, row: Row) -> None:
        facts = list(_facts(row))
        width = max((len(name) for name, _ in facts), default=0)
        sys.stdout.writelines(f"{name:{width}}  {text}\n" for name, text in facts)

    def note(self, text: str) -> None:
        sys.stdout.write(f"{text}\n")


class Json:
    """For programs: one JSON value, on one line a row."""

    def rows(self, columns: Sequence[str], rows: Sequence[Row]) -> None:
        lines = ",\n".join(json.dumps(dict(row), ensure_ascii=False, default=_for_programs) for row in rows)
        sys.stdout.write(f"[\n{lines}\n]\n" if rows else "[]\n")

    def one(self, row: Row) -> None:
        sys.stdout.write(json.dumps(dict(row), ensure_ascii=False, default=_for_programs) + "\n")

    def note(self, text: str) -> None:
        pass


def _facts(row: Row) -> Iterator[tuple[str, str]]:
    """Names and texts, those of what is itself a thing below it; without what is empty."""
    for name, value in row.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{inner}", text) for inner, text in _facts(value))
        elif text := _for_people(value):
            yield name.replace("_", " "), text


def _for_people(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case datetime.datetime():
            return value.isoformat(sep=" ", timespec="seconds")
        case list() | tuple():
            return ", ".join(map(_for_people, value))
        case _:
            return str(value)


def _for_programs(value: object) -> object:
    match value:
        case datetime.datetime() | datetime.date():
            return value.isoformat()
        case PurePath():
            return str(value)
        case _:
            raise TypeError(f"no JSON form for a {type(value).__name__}")
