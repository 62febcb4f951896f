"""LIKE patterns: read once, checked, and brought to the simplest question they ask."""

import re
from dataclasses import dataclass

from grebe.errors import InvalidPredicate
from grebe.predicate.tree import Compare, Contains, EndsWith, Like, Literal, Predicate, StartsWith
from grebe.predicate.types import STRING


@dataclass(frozen=True, slots=True)
class Wildcard:
    sign: str


ANY_TEXT = Wildcard("%")
ONE_CHARACTER = Wildcard("_")


def pattern_parts(pattern: str, escape: str) -> list[str | Wildcard]:
    """Text and wildcards in turn. Spark refuses a pattern whose escape character stands before anything else than it may."""
    parts: list[str | Wildcard] = []
    text = ""
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            escaped = next(characters, None)
            if escaped is None or escaped not in ("%", "_", escape):
                raise InvalidPredicate(
                    "in a LIKE pattern the escape character may stand only before %, _ or itself; double it to mean it",
                    detail="LIKE_PATTERN",
                )
            text += escaped
        elif character in "%_":
            parts += [text] if text else []
            parts.append(ANY_TEXT if character == "%" else ONE_CHARACTER)
            text = ""
        else:
            text += character
    return [*parts, text] if text else parts


def regular_expression(pattern: str, escape: str) -> str:
    """The same pattern for RE2. Like Spark's it spans lines, and `_` is one code point."""
    signs = {ANY_TEXT: ".*", ONE_CHARACTER: "."}
    body = "".join(re.escape(part) if isinstance(part, str) else signs[part] for part in pattern_parts(pattern, escape))
    return rf"(?s)\A(?:{body})\z"


def simplified(like: Like) -> Predicate:
    """A pattern without inner wildcards asks for equality, a prefix, a suffix or a part."""
    parts = pattern_parts(like.pattern, like.escape)
    while len(parts) > 1 and parts[0] == parts[1] == ANY_TEXT:
        parts.pop(0)
    while len(parts) > 1 and parts[-1] == parts[-2] == ANY_TEXT:
        parts.pop()
    match parts:
        case []:
            return Compare("=", like.term, Literal("", STRING))
        case [str(text)]:
            return Compare("=", like.term, Literal(text, STRING))
        case [Wildcard("%")]:
            return StartsWith(like.term, "")
        case [str(text), Wildcard("%")]:
            return StartsWith(like.term, text)
        case [Wildcard("%"), str(text)]:
            return EndsWith(like.term, text)
        case [Wildcard("%"), str(text), Wildcard("%")]:
            return Contains(like.term, text)
    return Like(like.term, _written(parts))


def _written(parts: list[str | Wildcard]) -> str:
    return "".join(re.sub(r"([\\%_])", r"\\\1", part) if isinstance(part, str) else part.sign for part in parts)
