"""Predicates over the tables of `sketch_cases`: with values that are there, with their neighbours, and with others."""

import random
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from grebe.errors import GrebeError
from grebe.predicate.bind import bind
from grebe.predicate.evaluate import matches
from grebe.predicate.normalise import normalise
from grebe.predicate.parse import parse
from grebe.predicate.text import natural_decimal, to_sql
from grebe.predicate.tree import (
    And,
    Arithmetic,
    Call,
    Cast,
    Column,
    Compare,
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
    Operator,
    Or,
    Predicate,
    StartsWith,
    Term,
    opaque_terms,
)
from grebe.predicate.types import BIGINT, BOOLEAN, DATE, DOUBLE, FLOAT, INT, STRING, TIMESTAMP, VOID, Type
from tests.indexes.sketch_cases import FIELDS, Field, Files, anywhere, near

_OPERATORS: list[Operator] = ["=", "<=>", "<>", "<", "<=", ">", ">="]
_ORDERS: list[Operator] = ["<", "<=", ">", ">="]
_ZONES = ["UTC", "America/New_York", "Asia/Kathmandu"]
_DAY = 86_400_000_000
_LONG_TEXT = 2_000


@dataclass(frozen=True)
class Question:
    text: str
    asked: Predicate
    """As an index is asked."""
    truth: npt.NDArray[np.bool_]
    """Of every row of the table."""


def question(chance: random.Random, files: Files) -> Question | None:
    """None where the predicate made is one that Spark refuses, or that has no answer for some row."""
    made = _Maker(chance, files).predicate(chance.choice([0, 0, 1, 1, 2, 3]))
    zone, ansi = chance.choice(_ZONES), chance.random() < 0.7
    try:
        text = to_sql(made)
        if len(text) < _LONG_TEXT and chance.random() < 0.3:
            made = parse(text)
        bound = bind(made, files.whole.schema, time_zone=zone, ansi=ansi)
        if any(not isinstance(term, Call) for term in opaque_terms(bound)):
            return None
        truth = matches(files.whole, bound).to_numpy(zero_copy_only=False)
    except GrebeError:
        return None
    return Question(f"{text[:_LONG_TEXT]} (zone {zone}, ansi {ansi})", normalise(bound), truth)


@dataclass(frozen=True)
class _Maker:
    chance: random.Random
    files: Files

    def predicate(self, depth: int) -> Predicate:
        if depth == 0:
            return self._simple(self.chance.choice(FIELDS))
        match self.chance.randrange(8):
            case 0 | 1:
                return Not(self.predicate(depth - 1))
            case 2:
                return self._range(self.chance.choice(FIELDS))
            case 3:
                field = self.chance.choice(FIELDS)
                return And(tuple(self._simple(field) for _ in range(self.chance.randint(2, 3))))
        below = tuple(self.predicate(depth - 1) for _ in range(self.chance.randint(2, 3)))
        return And(below) if self.chance.random() < 0.5 else Or(below)

    def _simple(self, field: Field) -> Predicate:
        subject = Column(field.path)
        draw = self.chance.randrange(12)
        if draw <= 1:
            return IsNull(subject) if draw else IsNotNull(subject)
        if draw <= 3:
            inside = In(subject, tuple(self._items(field)))
            return inside if draw == 2 else Not(inside)
        if field.kind == STRING and 6 <= draw <= 8:
            return self._text_match(subject, field)
        if draw == 4:
            return Holds(subject) if field.kind == BOOLEAN else self._computed(field)
        operator = self.chance.choice(_OPERATORS)
        if draw == 5:
            alike = [Column(other.path) for other in FIELDS if other.kind == field.kind]
            return Compare(operator, subject, self.chance.choice(alike))
        sides: list[Term] = [subject, self._literal(field)]
        if self.chance.random() < 0.2:
            sides.reverse()
        return Compare(operator, *sides)

    def _computed(self, field: Field) -> Predicate:
        """Of a function of the column, or of a cast of it."""
        operator, value = self.chance.choice(_OPERATORS), self.value(field)
        subject, small = Column(field.path), self.chance.randint(-3, 40)
        if field.kind == DATE:
            days = Function(self.chance.choice(["date_add", "date_sub"]), (subject, Literal(small, INT)))
            year = Function("year", (subject,))
            cut = Function("trunc", (subject, Literal(self.chance.choice(["year", "month", "week"]), STRING)))
            asked = [
                (days, Literal(value, DATE)),
                (year, Literal(1970 + value // 365, INT)),
                (cut, Literal(value, DATE)),
            ]
            return Compare(operator, *self.chance.choice(asked))
        if field.kind == TIMESTAMP:
            unit = Literal(self.chance.choice(["year", "day", "hour", "minute"]), STRING)
            seconds = Function("unix_seconds", (subject,))
            cut = Function("date_trunc", (unit, subject))
            return Compare(
                operator,
                *self.chance.choice([(seconds, Literal(value // 10**6, BIGINT)), (cut, Literal(value, TIMESTAMP))]),
            )
        if field.kind == STRING:
            beginning = Function("substring", (subject, Literal(1, INT), Literal(abs(small), INT)))
            return Compare(operator, beginning, Literal(value[: abs(small)], STRING))
        if (field.kind.is_integral or field.kind.is_decimal) and self.chance.random() < 0.7:
            changed = Arithmetic(self.chance.choice(["+", "-", "*"]), subject, Literal(small, INT))
            return Compare(operator, self.chance.choice([changed, Negative(subject)]), self._literal(field))
        like = self.chance.choice(FIELDS)
        return Compare(operator, Cast(subject, like.kind, self.chance.choice(["session", "try"])), self._literal(like))

    def _range(self, field: Field) -> Predicate:
        subject = Column(field.path)
        low, high = (self._literal(field) for _ in range(2))
        return And(
            (Compare(self.chance.choice(_ORDERS), subject, low), Compare(self.chance.choice(_ORDERS), high, subject))
        )

    def _items(self, field: Field) -> list[Term]:
        count = self.chance.choice([1, 2, 3, 3, 5, 20, 70])
        items = [self._literal(field) for _ in range(count)]
        if self.chance.random() < 0.3:
            items.append(Literal(None, VOID))
        return items

    def value(self, field: Field) -> Any:
        known = self.files.values[field.path]
        draw = self.chance.random()
        if known and draw < 0.8:
            value = self.chance.choice(known)
            return value if draw < 0.5 else near(self.chance, value, field.kind)
        return self.chance.choice(field.pool) if draw < 0.95 else anywhere(self.chance, field.kind)

    def _literal(self, field: Field) -> Term:
        draw = self.chance.random()
        if draw < 0.03:
            return Literal(None, VOID)
        value = self.value(field)
        if field.kind == FLOAT and draw < 0.5:
            return Literal(float(str(np.float32(value))), FLOAT)  # as a plan of Spark writes it
        return self._of_another_type(value, field.kind) if draw < 0.15 else Literal(value, field.kind)

    def _of_another_type(self, value: Any, kind: Type) -> Term:
        """As somebody may write it: Spark then casts the column, or the literal."""
        if kind.is_integral:
            wider = [Literal(value, BIGINT), Literal(str(value), STRING), Literal(float(value), DOUBLE)]
            return self.chance.choice([*wider, Literal(natural := Decimal(value), natural_decimal(natural))])
        if kind.is_decimal:
            return Literal(value, natural_decimal(value)) if value.as_tuple().digits else Literal(0, BIGINT)
        if kind.is_floating:
            return Literal(value, DOUBLE)
        if kind.name == "date" and abs(value) < 1_000_000:
            return Literal(value * _DAY, Type("timestamp"))
        if kind.name == "timestamp":
            return Literal(value // _DAY, Type("date")) if abs(value) < 2**60 else Literal(value, Type("timestamp_ntz"))
        return Literal(value, kind)

    def _text_match(self, subject: Term, field: Field) -> Predicate:
        text = self.value(field)[:300]
        start = self.chance.randint(0, len(text))
        part = text[start : start + self.chance.choice([0, 1, 2, 3, 5, 9, 300])]
        match self.chance.randrange(6):
            case 0:
                return StartsWith(subject, text[: self.chance.randint(0, len(text))])
            case 1:
                return EndsWith(subject, text[start:])
            case 2:
                return Contains(subject, part)
        pieces = [_escaped(text[:start]), _escaped(part), _escaped(text[start + len(part) :])]
        joint = self.chance.choice(["%", "_", "", "%%", "_%"])
        shapes = [
            *(f"{pieces[0]}%", f"%{pieces[1]}%", f"%{pieces[2]}", f"{pieces[0]}%{pieces[2]}", "%", "_", "%_%", ""),
            *(joint.join(pieces), f"{joint}{pieces[1]}{joint}", _escaped(text), f"{_escaped(text[1:])}_"),
        ]
        return Like(subject, self.chance.choice(shapes))


def _escaped(text: str) -> str:
    return "".join("\\" + character if character in "\\%_" else character for character in text)
