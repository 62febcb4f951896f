"""Globs as Hadoop takes them: `*`, `?`, `[a-z]`, `[^a]`, `{a,b}`, and `\\` before a character that shall mean itself.

No part of a glob but braces reaches over a `/`.
"""

import re
from dataclasses import dataclass
from itertools import product

from grebe.errors import TableNotFound

_MEANINGFUL = frozenset("{}[]*?\\")


def is_glob(path: str) -> bool:
    """As for Spark, any of these characters makes a glob, even if a file is called so; a `\\` before it helps."""
    return not _MEANINGFUL.isdisjoint(path)


@dataclass(frozen=True, slots=True)
class Glob:
    """A folder without glob characters, and one pattern for each level below it."""

    folder: str
    levels: tuple[re.Pattern[str], ...]


def globs_of(path: str) -> list[Glob]:
    """One for each way through the braces."""
    return [_glob(alternative) for alternative in dict.fromkeys(_alternatives(path))]


def name_pattern(glob: str) -> re.Pattern[str]:
    """What the names match that a glob without `/` means."""
    return re.compile("|".join(_regex(alternative) for alternative in _alternatives(glob)), re.DOTALL)


def _glob(path: str) -> Glob:
    parts = path.split("/")
    plain = 0
    while plain < len(parts) - 1 and not is_glob(parts[plain]):
        plain += 1
    return Glob("/".join(parts[:plain]), tuple(re.compile(_regex(part), re.DOTALL) for part in parts[plain:]))


def _alternatives(path: str) -> list[str]:
    """The path without braces: all combinations of what stands in them."""
    pieces: list[list[str]] = [[""]]
    place = 0
    while place < len(path):
        character = path[place]
        if character == "\\" and place + 1 < len(path):
            pieces.append([path[place : place + 2]])
            place += 2
        elif character == "{":
            end = _closing(path, place)
            inner = [alternative for option in _options(path[place + 1 : end]) for alternative in _alternatives(option)]
            pieces.append(inner)
            place = end + 1
        else:
            pieces.append([character])
            place += 1
    return ["".join(combination) for combination in product(*pieces)]


def _closing(path: str, opening: int) -> int:
    depth, place = 0, opening
    while place < len(path):
        if path[place] == "\\":
            place += 1
        elif path[place] in "{}":
            depth += 1 if path[place] == "{" else -1
            if depth == 0:
                return place
        place += 1
    raise TableNotFound(f"the glob {path} opens a brace and does not close it", detail="GLOB")


def _options(text: str) -> list[str]:
    """Split at the commas of the outermost level."""
    options, depth, place = [""], 0, 0
    while place < len(text):
        character = text[place : place + 2] if text[place] == "\\" else text[place]
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            options.append("")
        else:
            options[-1] += character
        place += len(character)
    return options


def _regex(part: str) -> str:
    out, place = "", 0
    while place < len(part):
        character = part[place]
        if character == "\\" and place + 1 < len(part):
            place += 1
            out += re.escape(part[place])
        elif character == "*":
            out += "[^/]*"
        elif character == "?":
            out += "[^/]"
        elif character == "[":
            end = part.find("]", place + 2)
            if end < 0:
                raise TableNotFound(f"the glob {part} opens a bracket and does not close it", detail="GLOB")
            inner = part[place + 1 : end].replace("[", "\\[")
            out += "[" + ("^" + inner[1:] if inner[0] in "!^" else inner) + "]"
            place = end
        else:
            out += re.escape(character)
        place += 1
    return out
