"""Small pictures as SVG: which files are read and which are not, and two amounts beside each other."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

READ = "#2f7ed8"
DIRECT = "#f28f43"
SPARED = "rgba(128,128,128,.22)"
_WIDTH = 560
_SIDE, _GAP = 8, 2
_MOST_SQUARES = 700
_BAR = 14
_LEGEND = 18


@dataclass(frozen=True, slots=True)
class Share:
    """So many files of one sort. `count` may be a share of something, where files cannot be counted."""

    name: str
    count: float
    colour: str


def files(shares: Sequence[Share]) -> str:
    """A square for each file while they can be told apart, a bar above that; and what the colours mean."""
    total = sum(share.count for share in shares)
    whole = all(share.count == int(share.count) for share in shares)
    drawn, height = _squares(shares) if whole and 0 < total <= _MOST_SQUARES else _bar(shares, total)
    return _svg(drawn + _legend(shares, height + _LEGEND - 5, whole), height + _LEGEND)


def amounts(rows: Sequence[tuple[str, float, str]], colours: Sequence[str] = (SPARED, READ)) -> str:
    """One bar a row, as long as its amount; each row has a name, an amount, and the amount as text."""
    most = max((amount for _, amount, _ in rows), default=0.0) or 1.0
    start = 12 + 6 * max((len(name) for name, _, _ in rows), default=0)
    room = _WIDTH - start - 110
    lines = []
    for place, (name, amount, text) in enumerate(rows):
        top = place * (_BAR + 6)
        wide = max(amount / most * room, 1.0)
        colour = colours[place % len(colours)]
        lines.append(
            f'<text x="0" y="{top + 11}">{escape(name)}</text>'
            f'<rect x="{start}" y="{top}" width="{wide:.1f}" height="{_BAR}" fill="{colour}"/>'
            f'<text x="{start + wide + 6:.1f}" y="{top + 11}">{escape(text)}</text>'
        )
    return _svg("".join(lines), len(rows) * (_BAR + 6))


def _squares(shares: Sequence[Share]) -> tuple[str, int]:
    across = _WIDTH // (_SIDE + _GAP)
    drawn = []
    place = 0
    for share in shares:
        for _ in range(int(share.count)):
            x, y = place % across * (_SIDE + _GAP), place // across * (_SIDE + _GAP)
            drawn.append(f'<rect x="{x}" y="{y}" width="{_SIDE}" height="{_SIDE}" fill="{share.colour}"/>')
            place += 1
    return "".join(drawn), (place + across - 1) // across * (_SIDE + _GAP)


def _bar(shares: Sequence[Share], total: float) -> tuple[str, int]:
    drawn, x = [], 0.0
    for share in shares:
        wide = _WIDTH * share.count / total if total else 0.0
        # What is there is seen, however little it is.
        wide = max(wide, 1.0) if share.count else 0.0
        drawn.append(f'<rect x="{x:.1f}" y="0" width="{wide:.1f}" height="{_BAR}" fill="{share.colour}"/>')
        x += wide
    return "".join(drawn), _BAR


def _legend(shares: Sequence[Share], y: int, whole: bool) -> str:
    drawn, x = [], 0
    for share in shares:
        count = f"{int(share.count):,}" if whole else f"{share.count:.1%}"
        text = f"{count} {share.name}"
        drawn.append(f'<rect x="{x}" y="{y - 8}" width="8" height="8" fill="{share.colour}"/>')
        drawn.append(f'<text x="{x + 12}" y="{y}">{escape(text)}</text>')
        x += 24 + 7 * len(text)
    return "".join(drawn)


def _svg(inner: str, height: int) -> str:
    start = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}"'
    )
    return f'{start} style="display:block;margin:4px 0;max-width:100%" font-size="11" fill="currentColor">{inner}</svg>'
