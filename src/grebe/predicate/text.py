"""Predicates as SQL of Spark again, for explanations and for asking Spark itself.

The text parses to the same tree, and means the same in every session time zone.
"""

import math
import re
from datetime import date
from decimal import Decimal

from grebe.predicate.tree import (
    And,
    Arithmetic,
    Cast,
    Column,
    Compare,
    Constant,
    Contains,
    EndsWith,
    Function,
    Holds,
    In,
    IsNotNull,
    IsNull,
    Like,
    Literal,
    Negative,
    Not,
    Opaque,
    Or,
    Path,
    Predicate,
    StartsWith,
    Term,
    TruthOf,
)
from grebe.predicate.types import Type, decimal
from grebe.predicate.words import NEEDS_QUOTES

_SECONDS_PER_DAY = 86_400
_DAYS_PER_CYCLE = 146_097  # 400 years
_EPOCH = date(1970, 1, 1).toordinal()
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0", "\x1a": "\\Z"}
_INTEGER_SUFFIX = {"tinyint": "Y", "smallint": "S", "int": "", "bigint": "L"}


def to_sql(node: Predicate | Term) -> str:
    return _predicate(node) if isinstance(node, Predicate) else _term(node)


def column_sql(path: Path) -> str:
    return ".".join(_name(part) for part in path)


def _name(name: str) -> str:
    if _PLAIN_NAME.fullmatch(name) and name.lower() not in NEEDS_QUOTES:
        return name
    return "`" + name.replace("`", "``") + "`"


def _predicate(predicate: Predicate) -> str:
    match predicate:
        case Constant(value):
            return {True: "TRUE", False: "FALSE", None: "NULL"}[value]
        case Holds(term):
            return _term(term)
        case Compare(operator, left, right):
            return f"{_term(left)} {operator} {_term(right)}"
        case In(term, values):
            return f"{_term(term)} IN ({', '.join(map(_term, values))})"
        case Like(term, pattern, escape):
            suffix = "" if escape == "\\" else f" ESCAPE {_string(escape)}"
            return f"{_term(term)} LIKE {_string(pattern)}{suffix}"
        case StartsWith(term, text):
            return f"startswith({_term(term)}, {_string(text)})"
        case EndsWith(term, text):
            return f"endswith({_term(term)}, {_string(text)})"
        case Contains(term, text):
            return f"contains({_term(term)}, {_string(text)})"
        case IsNull(term):
            return f"{_term(term)} IS NULL"
        case IsNotNull(term):
            return f"{_term(term)} IS NOT NULL"
        case Not(inner):
            return f"NOT ({_predicate(inner)})"
        case And(below):
            return " AND ".join(map(_operand, below)) if below else "TRUE"
        case Or(below):
            return " OR ".join(map(_operand, below)) if below else "FALSE"
    raise TypeError(f"no predicate: {type(predicate).__name__}")


def _operand(predicate: Predicate) -> str:
    text = _predicate(predicate)
    return f"({text})" if isinstance(predicate, And | Or) else text


def _term(term: Term) -> str:
    match term:
        case Column(path):
            return column_sql(path)
        case Literal():
            return _literal(term)
        case Cast(inner, to, mode):
            return f"{'TRY_CAST' if mode == 'try' else 'CAST'}({_term(inner)} AS {to})"
        case Arithmetic(operator, left, right):
            return f"({_term(left)} {operator} {_term(right)})"
        case Negative(inner):
            return f"-({_term(inner)})"
        case Function(name, arguments):
            return f"{name}({', '.join(map(_term, arguments))})"
        case TruthOf(predicate):
            return f"({_predicate(predicate)})"
        case Opaque(text):
            return f"({text})"
    raise TypeError(f"no term: {type(term).__name__}")


def _literal(literal: Literal) -> str:
    value, kind = literal.value, literal.type
    if value is None:
        return "NULL" if kind.name == "void" else f"CAST(NULL AS {kind})"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, bytes):
        return f"X'{value.hex().upper()}'"
    if isinstance(value, Decimal):
        return _decimal(value, kind)
    if isinstance(value, float):
        return _floating(value, kind)
    if kind.name == "date":
        return f"DATE '{_day(value)}'"
    if kind.name == "timestamp":
        return f"TIMESTAMP '{_moment(value)}Z'"
    if kind.name == "timestamp_ntz":
        return f"TIMESTAMP_NTZ '{_moment(value)}'"
    return f"{value}{_INTEGER_SUFFIX[kind.name]}"


def _string(text: str) -> str:
    return "'" + "".join(_ESCAPES.get(character, character) for character in text) + "'"


def natural_decimal(value: Decimal) -> Type:
    """The type that Spark gives a decimal number as it is written."""
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    return decimal(max(len(digits) + max(exponent, 0), scale), scale)


def _decimal(value: Decimal, kind: Type) -> str:
    text = f"{value:f}BD"
    return text if natural_decimal(value) == kind else f"CAST({text} AS {kind})"


def _floating(value: float, kind: Type) -> str:
    if not math.isfinite(value):
        return f"CAST('{'NaN' if math.isnan(value) else 'Infinity' if value > 0 else '-Infinity'}' AS {kind})"
    return f"{value!r}{'F' if kind.name == 'float' else 'D'}"


def _day(days: int) -> str:
    cycles, ordinal = divmod(days + _EPOCH - 1, _DAYS_PER_CYCLE)
    day = date.fromordinal(ordinal + 1)
    year = day.year + 400 * cycles
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04d}-{day.month:02d}-{day.day:02d}"


def _moment(micros: int) -> str:
    seconds, fraction = divmod(micros, 1_000_000)
    days, second = divmod(seconds, _SECONDS_PER_DAY)
    text = f"{_day(days)} {second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
    return f"{text}.{fraction:06d}" if fraction else text
