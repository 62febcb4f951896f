"""Number literals and their types, as Spark gives them."""

import math
from decimal import Decimal, InvalidOperation

from grebe.predicate.lexer import Token, syntax_error
from grebe.predicate.scalar_text import to_float
from grebe.predicate.text import natural_decimal
from grebe.predicate.tree import Literal
from grebe.predicate.types import BIGINT, DOUBLE, FLOAT, INT, MAX_PRECISION, SMALLINT, TINYINT, Type, integral_range

_INTEGER_SUFFIXES = {"l": BIGINT, "s": SMALLINT, "y": TINYINT}

_MAX_INTEGER_DIGITS = 1000  # Python refuses to read very long integers


def number(token: Token, negative: bool) -> Literal:
    """The sign belongs to the literal, so that the smallest integer of a type can be written."""
    text = ("-" if negative else "") + token.text.lower()
    if text.endswith("bd"):
        return _decimal(text[:-2], token)
    if text[-1] in "df":
        return _floating(text[:-1], DOUBLE if text[-1] == "d" else FLOAT, token)
    if text[-1] in _INTEGER_SUFFIXES:
        return _sized_integer(text[:-1], _INTEGER_SUFFIXES[text[-1]], token)
    if "e" in text:
        return _floating(text, DOUBLE, token)
    if "." in text:
        return _decimal(text, token)
    return (integer(int(text)) if len(text) <= _MAX_INTEGER_DIGITS else None) or _decimal(text, token)


def integer(value: int) -> Literal | None:
    """int or bigint, the narrowest that holds it."""
    for kind in (INT, BIGINT):
        low, high = integral_range(kind)
        if low <= value <= high:
            return Literal(value, kind)
    return None


def _sized_integer(digits: str, kind: Type, token: Token) -> Literal:
    low, high = integral_range(kind)
    if "." in digits or "e" in digits or len(digits) > _MAX_INTEGER_DIGITS or not low <= (value := int(digits)) <= high:
        raise syntax_error(token.start, f"this is no {kind}")
    return Literal(value, kind)


def _floating(digits: str, kind: Type, token: Token) -> Literal:
    value = to_float(digits) if kind == FLOAT else float(digits)
    if value is None or math.isinf(value):
        raise syntax_error(token.start, f"this number is beyond the range of {kind}")
    return Literal(value, kind)


def _decimal(digits: str, token: Token) -> Literal:
    try:
        value = Decimal(digits)
    except InvalidOperation:  # the exponent alone has many digits
        raise syntax_error(token.start, f"a decimal has at most {MAX_PRECISION} digits") from None
    kind = natural_decimal(value)
    if kind.precision > MAX_PRECISION:
        raise syntax_error(token.start, f"a decimal has at most {MAX_PRECISION} digits")
    return Literal(Decimal(int(value)) if kind.scale == 0 else value, kind)  # 1e3BD is 1000
