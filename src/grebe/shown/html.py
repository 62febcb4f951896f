"""Small pieces of HTML that look alike in a light and in a dark notebook. Every text is escaped here, and nowhere else."""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from html import escape

LINE = "1px solid rgba(128,128,128,.35)"
_CELL = f"padding:2px 10px 2px 0;text-align:{{align}};vertical-align:top;border-bottom:{LINE}"
_BLOCK = "font-size:13px;line-height:1.45"
_CODE = "font-family:monospace;font-size:12px"
_LONGEST = 300


def block(*parts: str) -> str:
    return f'<div style="{_BLOCK}">{"".join(parts)}</div>'


def title(text: str) -> str:
    return f'<div style="font-weight:600;margin:8px 0 2px">{escape(text)}</div>'


def paragraph(text: str) -> str:
    return f"<div>{escape(text)}</div>"


def table(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    """The rows' values under these columns; numbers stand at the right."""
    listed = list(rows)
    aligned = {name: "right" if _are_numbers(row.get(name) for row in listed) else "left" for name in columns}
    head = "".join(_cell("th", name.replace("_", " "), aligned[name]) for name in columns)
    body = "".join(
        f"<tr>{''.join(_cell('td', said(row.get(name)), aligned[name]) for name in columns)}</tr>" for row in listed
    )
    return f'<table style="border-collapse:collapse;{_BLOCK}"><tr>{head}</tr>{body}</table>'


def facts(pairs: Iterable[tuple[str, object]]) -> str:
    """Names and values, one below the other."""
    lines = "".join(
        f"<tr>{_cell('th', name.replace('_', ' '), 'left')}{_cell('td', said(value), 'left')}</tr>"
        for name, value in pairs
    )
    return f'<table style="border-collapse:collapse;{_BLOCK}">{lines}</table>'


def side_by_side(left: tuple[str, str], right: tuple[str, str]) -> str:
    """Two texts in a fixed width, each under its title."""
    column = "flex:1 1 0;min-width:280px;overflow-x:auto"
    text = f"{_CODE};white-space:pre;margin:0;padding:6px;border:{LINE}"
    columns = "".join(
        f'<div style="{column}">{title(name)}<pre style="{text}">{escape(body)}</pre></div>'
        for name, body in (left, right)
    )
    return f'<div style="display:flex;gap:12px;flex-wrap:wrap">{columns}</div>'


def beside(*parts: str) -> str:
    """As many in a row as there is room for."""
    return f'<div style="display:flex;gap:12px;flex-wrap:wrap">{"".join(parts)}</div>'


def folded(summary: str, inner: str) -> str:
    """Shown once it is clicked."""
    return f'<details style="margin-top:8px"><summary>{escape(summary)}</summary>{inner}</details>'


def said(value: object) -> str:
    """A value as people read it."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.3g}" if abs(value) < 1 else f"{value:,.0f}"
        case datetime.datetime():
            return value.isoformat(sep=" ", timespec="seconds")
        case list() | tuple():
            return ", ".join(map(said, value))
        case _:
            text = str(value)
            return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _cell(tag: str, text: str, align: str) -> str:
    return f'<{tag} style="{_CELL.format(align=align)}">{escape(text)}</{tag}>'


def _are_numbers(values: Iterable[object]) -> bool:
    found = [value for value in values if value is not None]
    return bool(found) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in found)
