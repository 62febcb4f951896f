"""Catalyst's expressions, as the Java part writes them, as predicates. Catalyst has bound them already: every cast is explicit.

What is not understood becomes an opaque term with the columns that it looks at.
"""

import base64
import functools
import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np

from grebe.errors import Unsupported
from grebe.formats.spark_types import arrow_type
from grebe.predicate import functions, geometry
from grebe.predicate.arrow_types import from_arrow
from grebe.predicate.like import simplified
from grebe.predicate.normalise import normalise
from grebe.predicate.tree import (
    And,
    Call,
    Cast,
    CastMode,
    Column,
    Compare,
    Constant,
    Contains,
    EndsWith,
    Holds,
    In,
    IsNotNull,
    IsNull,
    Like,
    Literal,
    Not,
    Opaque,
    Operator,
    Or,
    Path,
    Predicate,
    Related,
    StartsWith,
    Term,
    TruthOf,
    Value,
)
from grebe.predicate.types import BOOLEAN, FLOAT, OTHER, STRING, Type

Json = list[Any]
Columns = Mapping[int, tuple[str, Type]]
"""Attribute -> name and type of the column of the relation."""

_COMPARISONS: dict[str, Operator] = {
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
_FUNCTIONS = {
    "Year": "year",
    "TruncTimestamp": "date_trunc",
    "TruncDate": "trunc",
    "Substring": "substring",
    "DateAdd": "date_add",
    "DateSub": "date_sub",
    "UnixSeconds": "unix_seconds",
    "UnixMillis": "unix_millis",
    "UnixMicros": "unix_micros",
}
_ARITHMETIC = {"Add": "+", "Subtract": "-", "Multiply": "*"}
_COLLATIONS = "__COLLATIONS"
_MODES: dict[str, CastMode] = {"ANSI": "ansi", "LEGACY": "legacy", "TRY": "try"}
_TEXTS: dict[str, Callable[[Term, str], Predicate]] = {
    "StartsWith": StartsWith,
    "EndsWith": EndsWith,
    "Contains": Contains,
}


@functools.lru_cache(maxsize=4096)
def type_of_json(text: str) -> Type:
    """Of Spark's JSON of a type; `OTHER` for those that Grebe does not compare, collated strings among them."""
    if _COLLATIONS in text:  # of texts inside a struct Spark writes the collation not into their type but beside it
        return OTHER
    try:
        return from_arrow(arrow_type(json.loads(text)))
    except Unsupported:
        return OTHER


def predicate(expression: Json, columns: Columns) -> Predicate:
    match expression:
        case ["And", *parts]:
            return And(tuple(predicate(part, columns) for part in parts))
        case ["Or", *parts]:
            return Or(tuple(predicate(part, columns) for part in parts))
        case ["Not", part]:
            return Not(predicate(part, columns))
        case ["IsNull", part]:
            return IsNull(term(part, columns))
        case ["IsNotNull", part]:
            return IsNotNull(term(part, columns))
        case ["In", part, *values]:
            return In(term(part, columns), tuple(term(value, columns) for value in values))
        case ["$", _, (bool() | None) as value]:
            return Constant(value)
        case ["Like", part, ["$", kind, str(pattern)], escape] if type_of_json(kind) == STRING and _is_whole(pattern):
            return simplified(Like(term(part, columns), pattern, escape))
        case [name, part, ["$", kind, str(text)]] if (
            name in _TEXTS and type_of_json(kind) == STRING and _is_whole(text)
        ):
            return _TEXTS[name](term(part, columns), text)
        case [name, left, right] if name in _COMPARISONS:
            return Compare(_COMPARISONS[name], term(left, columns), term(right, columns))
    return Holds(term(expression, columns))


def term(expression: Json, columns: Columns) -> Term:
    match expression:
        case ["@", number, *fields]:
            name, kind = columns.get(number, ("", OTHER))
            found = _field_type(kind, fields)
            path = (name, *fields)
            return (
                Column(path, found) if found.is_scalar else Opaque("a column of a type that is not compared", (path,))
            )
        case ["$", kind, value]:
            return _literal(type_of_json(kind), value)
        case ["cast", part, kind, mode, zone] if mode in _MODES:
            to = type_of_json(kind)
            inner = term(part, columns)
            if to.is_scalar and not isinstance(inner, Opaque):
                return Cast(inner, to, _MODES[mode], zone or "")
        case ["f", name, kind, mode, zone, *arguments]:
            terms = [term(argument, columns) for argument in arguments]
            made = _call(name, terms, _MODES.get(mode, "legacy"), zone or "")
            if made is not None and made.type == type_of_json(kind):
                return made
        case ["geometry", str(name), left, right, *rest]:
            related = _geometric(name, left, right, rest, columns)
            if related is not None:
                return related
        case [str(name), *_] if name in _COMPARISONS or name in ("And", "Or", "Not", "IsNull", "IsNotNull", "In"):
            return TruthOf(predicate(expression, columns))
    return Opaque(_label(expression), tuple(_references(expression, columns)))


def _call(name: str, arguments: list[Term], mode: CastMode, zone: str) -> Call | None:
    if mode == "try":
        return None
    if name == "UnaryMinus":
        return functions.negative(arguments[0], mode)
    if name in _ARITHMETIC:
        return functions.arithmetic(_ARITHMETIC[name], arguments[0], arguments[1], mode)
    return functions.call(_FUNCTIONS[name], arguments, zone)


def _geometric(name: str, left: Json, right: Json, rest: Json, columns: Columns) -> Related | None:
    """A question of Apache Sedona, by the box of its constant."""
    distances = [one.value for one in (term(part, columns) for part in rest) if isinstance(one, Literal)]
    if len(distances) < len(rest) or not all(isinstance(one, float) for one in distances):
        return None
    sides = [_side(left, columns), _side(right, columns)]
    if any(side is None for side in sides):
        return None
    return geometry.in_box(name, [side for side in sides if side is not None], sum(distances))  # type: ignore[arg-type]  # floats


def _side(side: Json, columns: Columns) -> Term | geometry.Box | None:
    match side:
        case ["box", xmin, ymin, xmax, ymax]:
            return float(xmin), float(ymin), float(xmax), float(ymax)
        case ["point", x, y]:
            return geometry.point_of(term(x, columns), term(y, columns))
        case ["wkb", part]:
            return term(part, columns)
    return None


def one_of(path: Path, kind: str, values: list[str | bool]) -> Predicate | None:
    """That a column of this type (as Spark's JSON) has one of these values, as the Java part writes them; None where one of them
    cannot be told."""
    known = type_of_json(kind)
    literals = tuple(_literal(known, value) for value in values)
    if any(isinstance(one, Opaque) for one in literals):
        return None
    return normalise(In(Column(path, known), literals))


def _is_whole(text: str) -> bool:
    """The JVM puts this sign in the place of bytes that are no UTF-8, which Spark keeps in text all the same."""
    return "\ufffd" not in text


def _field_type(kind: Type, fields: list[str]) -> Type:
    for field in fields:
        kind = next((inner.type for inner in kind.fields if inner.name == field), OTHER)
    return kind


def _literal(kind: Type, value: str | bool | None) -> Term:
    if not kind.is_scalar:
        return Opaque("a constant of a type that is not compared")
    if isinstance(value, str) and not _is_whole(value):
        return Opaque("a text that may not be UTF-8")
    return Literal(_value(kind, value), kind)


def _value(kind: Type, value: str | bool | None) -> Value:
    if value is None or isinstance(value, bool):
        return value
    if kind == BOOLEAN:
        return value == "true"
    if kind.is_integral or kind.is_datetime:
        return int(value)
    if kind.is_decimal:
        return Decimal(value)
    if kind.is_floating:
        # A float is written as the shortest text that tells it from other floats, which as a double is another number.
        return float(np.float32(value)) if kind == FLOAT else float(value)
    return base64.b64decode(value) if kind.name == "binary" else value


def _label(expression: Json) -> str:
    return str(expression[1]) if expression[0] in ("?", "f", "geometry") else str(expression[0])


def _references(expression: Json, columns: Columns) -> list[Path]:
    if expression[0] == "@":
        return [(columns[expression[1]][0], *expression[2:])] if expression[1] in columns else []
    return [path for part in expression[1:] if isinstance(part, list) for path in _references(part, columns)]
