"""Pictures of measurements as SVG: one amount against another, amounts over time, and boxes over two columns."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

COLOURS = ("#2f7ed8", "#f28f43", "#4ba373", "#a05195", "#888888")
_GREY = "rgba(128,128,128,.35)"
_SIDE = 300
_EDGE = 46
_WIDE = 520


@dataclass(frozen=True, slots=True)
class Point:
    x: float
    y: float
    group: str
    title: str


@dataclass(frozen=True, slots=True)
class Line:
    name: str
    xs: Sequence[float]
    ys: Sequence[float]


@dataclass(frozen=True, slots=True)
class Rect:
    """By shares of the picture's width and height, from the left and from below."""

    left: float
    bottom: float
    right: float
    top: float
    title: str = ""


def against(points: Sequence[Point], across: str, upwards: str) -> str:
    """Both by powers of ten, with the line where they are the same; groups have colours."""
    drawn = [one for one in points if one.x > 0 and one.y > 0]
    logs = [math.log10(value) for one in drawn for value in (one.x, one.y)] or [0.0]
    low, high = math.floor(min(logs)), math.ceil(max(max(logs), math.floor(min(logs)) + 1e-9)) or 1
    high = max(high, low + 1)
    groups = list(dict.fromkeys(one.group for one in drawn))

    def place(value: float) -> float:
        return (math.log10(value) - low) / (high - low) * _SIDE

    parts = [_frame(_SIDE, _SIDE), f'<line x1="{_EDGE}" y1="{_SIDE}" x2="{_EDGE + _SIDE}" y2="0" stroke="{_GREY}"/>']
    for power in range(low, high + 1):
        at = (power - low) / (high - low) * _SIDE
        parts.append(_text(_EDGE + at, _SIDE + 14, _power(power), "middle"))
        parts.append(_text(_EDGE - 4, _SIDE - at + 4, _power(power), "end"))
    for one in drawn:
        colour = COLOURS[groups.index(one.group) % len(COLOURS)]
        parts.append(
            f'<circle cx="{_EDGE + place(one.x):.1f}" cy="{_SIDE - place(one.y):.1f}" r="4" fill="{colour}" fill-opacity=".75">'
            f"<title>{escape(one.title)}</title></circle>"
        )
    parts.append(_text(_EDGE + _SIDE / 2, _SIDE + 30, across, "middle"))
    parts.append(_text(_EDGE + 6, 14, upwards, "start"))
    parts.append(_legend(groups, _SIDE + 48))
    return _svg("".join(parts), _EDGE + _SIDE + 20, _SIDE + 56)


def over_time(lines: Sequence[Line], across: str, marks: Sequence[tuple[float, str]] = ()) -> str:
    """`marks`: moments at which something happened, and what."""
    high = max((value for line in lines for value in line.ys), default=0.0) or 1.0
    last = max((value for line in lines for value in line.xs), default=0.0) or 1.0
    tall = 200
    parts = [_frame(_WIDE, tall)]
    for at, name in marks:
        x = _EDGE + at / last * _WIDE
        parts.append(f'<line x1="{x:.1f}" y1="0" x2="{x:.1f}" y2="{tall}" stroke="{_GREY}" stroke-dasharray="4 3"/>')
        parts.append(_text(x + 3, 12, name, "start"))
    for number, line in enumerate(lines):
        points = " ".join(
            f"{_EDGE + x / last * _WIDE:.1f},{tall - y / high * tall:.1f}"
            for x, y in zip(line.xs, line.ys, strict=True)
        )
        colour = COLOURS[number % len(COLOURS)]
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
    parts.append(_text(_EDGE - 4, 10, _short(high), "end"))
    parts.append(_text(_EDGE - 4, tall, "0", "end"))
    parts.append(_text(_EDGE + _WIDE / 2, tall + 16, across, "middle"))
    parts.append(_legend([line.name for line in lines], tall + 34))
    return _svg("".join(parts), _EDGE + _WIDE + 20, tall + 42)


def regions(cells: Sequence[Rect], asked: Sequence[Rect], across: str, upwards: str, title: str) -> str:
    """Cells of a layout as outlines, and what queries ask for as boxes above them."""
    parts = [_text(_EDGE, 12, title, "start"), '<g transform="translate(0,18)">', _frame(_SIDE, _SIDE)]
    filled = f'fill="{COLOURS[1]}" fill-opacity=".10" stroke="{COLOURS[1]}" stroke-opacity=".5"'
    parts += [f"<rect {_box(one)} {filled}/>" for one in asked]
    outlined = f'fill="none" stroke="{COLOURS[0]}" stroke-opacity=".8"'
    parts += [f"<rect {_box(one)} {outlined}><title>{escape(one.title)}</title></rect>" for one in cells]
    parts.append(_text(_EDGE + _SIDE / 2, _SIDE + 16, across, "middle"))
    parts.append(
        f'<g transform="rotate(-90,{_EDGE - 8},{_SIDE / 2})">{_text(_EDGE - 8, _SIDE / 2, upwards, "middle")}</g></g>'
    )
    return _svg("".join(parts), _EDGE + _SIDE + 20, _SIDE + 44)


def _box(one: Rect) -> str:
    x, y = _EDGE + one.left * _SIDE, (1 - one.top) * _SIDE
    wide, tall = (one.right - one.left) * _SIDE, (one.top - one.bottom) * _SIDE
    return f'x="{x:.1f}" y="{y:.1f}" width="{max(wide, 0.5):.1f}" height="{max(tall, 0.5):.1f}"'


def _frame(wide: float, tall: float) -> str:
    return f'<rect x="{_EDGE}" y="0" width="{wide}" height="{tall}" fill="none" stroke="{_GREY}"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _legend(names: Sequence[str], y: float) -> str:
    parts, x = [], float(_EDGE)
    for number, name in enumerate(names):
        parts.append(f'<rect x="{x}" y="{y - 8}" width="8" height="8" fill="{COLOURS[number % len(COLOURS)]}"/>')
        parts.append(_text(x + 12, y, name, "start"))
        x += 24 + 7 * len(name)
    return "".join(parts)


def _power(power: int) -> str:
    return _short(10.0**power)


def _short(value: float) -> str:
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def _svg(inner: str, wide: float, tall: float) -> str:
    start = f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide:.0f}" height="{tall:.0f}" viewBox="0 0 {wide:.0f} {tall:.0f}"'
    return f'{start} style="display:block;margin:4px 0;max-width:100%" font-size="11" fill="currentColor">{inner}</svg>'
