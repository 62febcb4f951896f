"""What the operators and functions of a predicate's text stand for in the tree."""

from collections.abc import Callable
from typing import TypeGuard, cast

from grebe.predicate import functions, geometry
from grebe.predicate.lexer import Token, syntax_error
from grebe.predicate.tree import (
    Arithmetic,
    ArithmeticOperator,
    Cast,
    Compare,
    Contains,
    EndsWith,
    Function,
    IsNotNull,
    IsNull,
    Literal,
    Not,
    Opaque,
    Operator,
    Predicate,
    StartsWith,
    Term,
    is_constant,
)
from grebe.predicate.types import BOOLEAN, DATE, DOUBLE, STRING, VOID, is_type_name, parse_type

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
_WITH_A_COLUMN = ("+", "-", "*")
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


def arithmetic(operator: str, left: object, right: object) -> Arithmetic | None:
    """Of two constants, or of a constant and what is understood."""
    known = [side for side in (left, right) if is_operand(side)]
    constants = sum(is_constant(side) for side in known)
    if operator not in _ARITHMETIC or len(known) != 2 or not constants:
        return None
    if constants == 1 and operator not in _WITH_A_COLUMN:
        return None
    return Arithmetic(cast(ArithmeticOperator, operator), *known)


def is_operand(node: object) -> TypeGuard[Term]:
    return isinstance(node, Term) and not isinstance(node, Opaque)


def hex_bytes(token: Token) -> bytes:
    digits = token.text[2:-1]
    try:
        return bytes.fromhex(digits if len(digits) % 2 == 0 else "0" + digits)
    except ValueError:
        raise syntax_error(token.start, "expected hexadecimal digits") from None


def _is_nan(term: Term) -> Predicate:
    # NaN equals NaN in Spark, and isnan(NULL) is false.
    return Compare("<=>", term, Cast(Literal("NaN", STRING), DOUBLE))


_ONE_ARGUMENT: dict[str, Callable[[Term], Predicate | Term]] = {
    "isnull": IsNull,
    "isnotnull": IsNotNull,
    "isnan": _is_nan,
    "to_date": lambda term: Cast(term, DATE),
}


def is_known_function(word: str) -> bool:
    known = (_TEXT_FUNCTIONS, _ONE_ARGUMENT, functions.ARGUMENTS, geometry.ARGUMENTS)
    return any(word in names for names in known) or is_type_name(word)


def known_call(word: str, arguments: list[Term]) -> Term | Predicate | None:
    match arguments:
        case [term, Literal(value, kind)] if word in _TEXT_FUNCTIONS and kind == STRING and isinstance(value, str):
            return _TEXT_FUNCTIONS[word](term, value)
        case [term] if word in _ONE_ARGUMENT:
            return _ONE_ARGUMENT[word](term)
        case [term] if is_type_name(word):
            return Cast(term, parse_type(word))
    if word in geometry.ARGUMENTS:
        return geometry.known_call(word, arguments) if all(map(is_operand, arguments)) else None
    known = all(map(is_operand, arguments)) and not all(map(is_constant, arguments))
    if known and functions.ARGUMENTS.get(word) == len(arguments):
        return Function(word, tuple(arguments))
    return None
