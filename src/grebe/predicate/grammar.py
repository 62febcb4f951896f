"""What the operators and functions of a predicate's text stand for in the tree."""

from collections.abc import Callable
from typing import cast

from grebe.predicate.lexer import Token, syntax_error
from grebe.predicate.tree import (
    Arithmetic,
    ArithmeticOperator,
    Cast,
    Compare,
    Contains,
    EndsWith,
    IsNotNull,
    IsNull,
    Literal,
    Not,
    Operator,
    Predicate,
    StartsWith,
    Term,
    is_constant,
)
from grebe.predicate.types import BOOLEAN, DOUBLE, STRING, VOID, is_type_name, parse_type

COMPARISONS: dict[str, Operator] = {
    "=": "=",
    "==": "=",
    "<=>": "<=>",
    "<>": "<>",
    "!=": "<>",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}
KEYWORD_VALUES: dict[str, Literal] = {
    "true": Literal(True, BOOLEAN),
    "false": Literal(False, BOOLEAN),
    "null": Literal(None, VOID),
}
_ARITHMETIC = ("+", "-", "*", "/", "%", "div")
# How tightly an operator between two values binds.
_LEVELS = (("|",), ("^",), ("&",), ("<<", ">>", ">>>"), ("+", "-", "||"), ("*", "/", "%", "div"))
BINDING = {operator: level for level, operators in enumerate(_LEVELS) for operator in operators}
_TEXT_FUNCTIONS: dict[str, Callable[[Term, str], Predicate]] = {
    "startswith": StartsWith,
    "endswith": EndsWith,
    "contains": Contains,
}


def negated(predicate: Predicate) -> Predicate:
    return predicate.predicate if isinstance(predicate, Not) else Not(predicate)


def constant_arithmetic(operator: str, left: object, right: object) -> Arithmetic | None:
    constants = [side for side in (left, right) if isinstance(side, Term) and is_constant(side)]
    if operator not in _ARITHMETIC or len(constants) != 2:
        return None
    return Arithmetic(cast(ArithmeticOperator, operator), *constants)


def hex_bytes(token: Token) -> bytes:
    digits = token.text[2:-1]
    try:
        return bytes.fromhex(digits if len(digits) % 2 == 0 else "0" + digits)
    except ValueError:
        raise syntax_error(token.start, "expected hexadecimal digits") from None


def _is_nan(term: Term) -> Predicate:
    # NaN equals NaN in Spark, and isnan(NULL) is false.
    return Compare("<=>", term, Cast(Literal("NaN", STRING), DOUBLE))


_ONE_ARGUMENT: dict[str, Callable[[Term], Predicate]] = {"isnull": IsNull, "isnotnull": IsNotNull, "isnan": _is_nan}


def is_known_function(word: str) -> bool:
    return word in _TEXT_FUNCTIONS or word in _ONE_ARGUMENT or is_type_name(word)


def known_call(word: str, arguments: list[Term]) -> Term | Predicate | None:
    match arguments:
        case [term, Literal(value, kind)] if word in _TEXT_FUNCTIONS and kind == STRING and isinstance(value, str):
            return _TEXT_FUNCTIONS[word](term, value)
        case [term] if word in _ONE_ARGUMENT:
            return _ONE_ARGUMENT[word](term)
        case [term] if is_type_name(word):
            return Cast(term, parse_type(word))
    return None
