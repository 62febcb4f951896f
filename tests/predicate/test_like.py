"""LIKE patterns are read as Spark reads them."""

import re

import pytest

from grebe.errors import InvalidPredicate
from grebe.predicate.like import ANY_TEXT, ONE_CHARACTER, Wildcard, pattern_parts, regular_expression


@pytest.mark.parametrize(
    ("pattern", "escape", "parts"),
    [
        ("", "\\", []),
        ("abc", "\\", ["abc"]),
        ("a%b_c", "\\", ["a", ANY_TEXT, "b", ONE_CHARACTER, "c"]),
        (r"a\%b\_c\\d", "\\", [r"a%b_c\d"]),
        ("a!%b!!", "!", ["a%b!"]),
        (r"a\b", "!", [r"a\b"]),
        ("%%__", "\\", [ANY_TEXT, ANY_TEXT, ONE_CHARACTER, ONE_CHARACTER]),
        ("a%%b", "%", ["a%b"]),
    ],
)
def test_a_pattern_is_text_and_wildcards(pattern: str, escape: str, parts: list[str | Wildcard]) -> None:
    assert pattern_parts(pattern, escape) == parts


@pytest.mark.parametrize(("pattern", "escape"), [("a\\", "\\"), (r"\a", "\\"), ("!x", "!")])
def test_an_escape_before_anything_else_is_refused(pattern: str, escape: str) -> None:
    with pytest.raises(InvalidPredicate, match="double it to mean it") as refused:
        pattern_parts(pattern, escape)
    assert refused.value.code == "INVALID_PREDICATE_LIKE_PATTERN"


def test_signs_of_regular_expressions_mean_themselves() -> None:
    text = r"a.b*c+d?(e)[f]{g}^$|\h-# &~"
    assert re.fullmatch(regular_expression(text.replace("\\", "\\\\"), "\\").replace(r"\z", r"\Z"), text)
