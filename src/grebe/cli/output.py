"""What a command tells its caller: tables for people, JSON for programs. Commands call this and never print."""

import datetime
import json
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import PurePath
from typing import Protocol

Row = Mapping[str, object]
_LONGEST_SHOWN = 2_000
_MOST_SHOWN = 1_000
"""Rows on a terminal; nothing is left out elsewhere."""


class Output(Protocol):
    def rows(self, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Many things of one sort: a table of these columns, or an array of the whole rows."""
        ...

    def records(self, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Rows of a table of the user's, as plain data: every column is shown, and NULL is told from nothing."""
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
        shown = [column for column in columns if any(_for_people(row.get(column)) for row in rows)] or list(columns)
        cells = [[_for_people(row.get(column)) for column in shown] for row in rows]
        numeric = [bool(rows) and _are_numbers(row.get(column) for row in rows) for column in shown]
        _print_table([column.replace("_", " ") for column in shown], cells, numeric)

    def records(self, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Rows too wide for the terminal are laid out one below the other."""
        hidden = max(len(rows) - _MOST_SHOWN, 0) if _is_terminal() else 0
        rows = rows[: len(rows) - hidden]
        heads = list(map(_visible, columns))
        cells = [[_of_data(row[column]) for column in columns] for row in rows]
        widths = list(map(_widest, zip(heads, *cells, strict=True)))
        if _is_terminal() and sum(widths) + 2 * len(widths) > shutil.get_terminal_size().columns:
            _print_one_below_the_other(heads, cells)
        else:
            numeric = [bool(rows) and _are_numbers(row[column] for row in rows) for column in columns]
            _print_table(heads, cells, numeric)
        if hidden:
            self.note(f"… and {hidden:,} more, which a file, a pipe and --json get as well.")

    def one(self, row: Row) -> None:
        facts = list(_facts(row))
        width = max((len(name) for name, _ in facts), default=0)
        sys.stdout.writelines(f"{name:{width}}  {text}\n" for name, text in facts)

    def note(self, text: str) -> None:
        sys.stdout.write(f"{text}\n")


class Json:
    """For programs: one JSON value, on one line a row."""

    def rows(self, columns: Sequence[str], rows: Sequence[Row]) -> None:
        lines = ",\n".join(map(_for_programs, rows))
        sys.stdout.write(f"[\n{lines}\n]\n" if rows else "[]\n")

    records = rows

    def one(self, row: Row) -> None:
        sys.stdout.write(_for_programs(row) + "\n")

    def note(self, text: str) -> None:
        pass


def _print_table(heads: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[bool]) -> None:
    import rich.box
    import rich.console
    import rich.table
    import rich.text

    table = rich.table.Table(box=rich.box.SIMPLE_HEAD, pad_edge=False)
    for head, right in zip(heads, numeric, strict=True):
        table.add_column(rich.text.Text(head), justify="right" if right else "left", overflow="fold")
    for row in rows:
        # As Text, since square brackets in a path are no markup.
        table.add_row(*map(rich.text.Text, row))
    # In a pipe nothing is cut or folded: whoever reads it looks for whole values.
    width = None if _is_terminal() else 4 * len(heads) + sum(map(_widest, zip(heads, *rows, strict=True)))
    rich.console.Console(width=width, highlight=False).print(table)


def _print_one_below_the_other(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    width = max(map(len, heads))
    for number, row in enumerate(rows, 1):
        sys.stdout.write(f"-- row {number}\n" if len(rows) > 1 else "")
        sys.stdout.writelines(f"{head:{width}}  {_cut(text)}\n" for head, text in zip(heads, row, strict=True))


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def _widest(column: Sequence[str]) -> int:
    import rich.cells

    return max(map(rich.cells.cell_len, column))


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


def _of_data(value: object) -> str:
    """One line, whatever the value: control characters of the data stay without effect on the terminal."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case Mapping() | list():
            return _for_programs(value)
        case _:
            return _visible(str(value))


def _visible(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}… ({len(text):,} characters)"


def _are_numbers(values: Iterable[object]) -> bool:
    return all(isinstance(value, int | float | Decimal | None) for value in values)


def _for_programs(value: object) -> str:
    """As JSON. Decimals become numbers with all their digits, which `json` by itself would not write."""
    match value:
        case Mapping():
            return "{" + ", ".join(f"{_text(name)}: {_for_programs(one)}" for name, one in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(_for_programs, value)) + "]"
        case Decimal():
            return f"{value:f}"
        case datetime.datetime() | datetime.date():
            return _text(value.isoformat())
        case PurePath():
            return _text(str(value))
        case None | bool() | int() | float() | str():
            return json.dumps(value, ensure_ascii=False, allow_nan=False)
        case _:
            raise TypeError(f"no JSON form for a {type(value).__name__}")


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
