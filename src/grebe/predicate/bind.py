"""Gives a predicate the types of a schema, and the casts that Spark's analyser would insert.

A bound predicate needs no context: columns carry their exact names and types, casts their mode and time zone, and constants are
computed. Where Spark's own versions disagree about a comparison it becomes opaque, so that it neither prunes nor is evaluated.
"""

import math
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import groupby

import pyarrow as pa

from grebe.errors import InvalidPredicate
from grebe.formats.zones import zone
from grebe.predicate import functions, geometry
from grebe.predicate.arrow_types import schema_type
from grebe.predicate.coercion import VersionsDiffer, common_type, comparison_type
from grebe.predicate.fold import fold, fold_casts, smallest_decimal
from grebe.predicate.like import pattern_parts
from grebe.predicate.resolve import resolve
from grebe.predicate.text import to_sql
from grebe.predicate.tree import (
    FALSE,
    NULL,
    TRUE,
    And,
    Arithmetic,
    ArithmeticOperator,
    Cast,
    CastMode,
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
    Operator,
    Or,
    Predicate,
    StartsWith,
    Term,
    TruthOf,
    columns_of,
    is_constant,
    require_shallow,
    type_of,
)
from grebe.predicate.types import BIGINT, BOOLEAN, OTHER, STRING, VOID, Type, decimal_for_integral, integral_range

_MIRRORED: dict[Operator, Operator] = {"=": "=", "<=>": "<=>", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def bind(
    predicate: Predicate,
    schema: pa.Schema | Type,
    *,
    case_sensitive: bool = False,
    time_zone: str = "UTC",
    ansi: bool = True,
) -> Predicate:
    """The predicate over this schema, as a Spark session with these settings understands it."""
    zone(time_zone)  # an unknown zone is refused here, not in the middle of a scan
    require_shallow(predicate)
    kind = schema if isinstance(schema, Type) else schema_type(schema)
    return _Binder(kind, case_sensitive, time_zone, ansi).predicate(predicate)


def mirrored(operator: Operator) -> Operator:
    """The operator with its sides exchanged."""
    return _MIRRORED[operator]


@dataclass(frozen=True, slots=True)
class _Operand:
    """A side of a comparison: its folded term, its type, and whether it is a literal in the text, which Spark's rules look at."""

    term: Term
    type: Type
    written: bool


@dataclass(frozen=True, slots=True)
class _Binder:
    schema: Type
    case_sensitive: bool
    time_zone: str
    ansi: bool
    known: dict[int, tuple[Term, Term]] = field(default_factory=dict)
    """What became of each term, by its identity, with the term itself, so that this stays its own: a term may be asked for several
    times by what stands around it, which multiplies with every level."""

    def predicate(self, predicate: Predicate) -> Predicate:
        match predicate:
            case Constant():
                return predicate
            case And(below):
                return And(tuple(self.predicate(one) for one in below))
            case Or(below):
                return Or(tuple(self.predicate(one) for one in below))
            case Not(inner):
                return Not(self.predicate(inner))
            case Compare(operator, left, right):
                return self._compare(operator, left, right)
            case In(term, values):
                return self._in(term, values)
            case Holds(term):
                return self._holds(term)
            case IsNull(term):
                return IsNull(self._term(term))
            case IsNotNull(term):
                return IsNotNull(self._term(term))
            case Like(term, pattern, escape):
                pattern_parts(pattern, escape)
                return Like(self._text(term), pattern, escape)
            case StartsWith(term, text):
                return StartsWith(self._text(term), text)
            case EndsWith(term, text):
                return EndsWith(self._text(term), text)
            case Contains(term, text):
                return Contains(self._text(term), text)
        raise TypeError(f"no predicate: {type(predicate).__name__}")

    def _term(self, term: Term) -> Term:
        bound = self._resolved(term)
        folded = fold(bound)
        return folded if folded is not None else _opaque(bound)

    def _resolved(self, term: Term) -> Term:
        known = self.known.get(id(term))
        if known is None:
            known = self.known[id(term)] = (term, self._resolved_anew(term))
        return known[1]

    def _resolved_anew(self, term: Term) -> Term:
        match term:
            case Column(path):
                return resolve(path, self.schema, self.case_sensitive)
            case Cast(inner, to, mode, time_zone):
                known_mode = self._mode if mode == "session" else mode
                bound = self._resolved(inner)
                if type_of(bound) == to and not is_constant(bound):
                    return bound
                return Cast(bound, to, known_mode, time_zone or self.time_zone)
            case Arithmetic(operator, left, right):
                return self._arithmetic(operator, left, right)
            case Negative(inner):
                return functions.negative(self._term(inner), self._mode) or Negative(self._resolved(inner))
            case Function(name, arguments):
                terms = tuple(map(self._term, arguments))
                if name in geometry.ARGUMENTS:
                    return geometry.call(name, terms) or Function(name, terms)
                return functions.call(name, terms, self.time_zone, self._implicit) or Function(name, terms)
            case TruthOf(predicate):
                return TruthOf(self.predicate(predicate))
        return term

    def _arithmetic(self, operator: ArithmeticOperator, left: Term, right: Term) -> Term:
        if is_constant(left) and is_constant(right):
            return Arithmetic(operator, self._resolved(left), self._resolved(right))
        sides = self._term(left), self._term(right)
        written = isinstance(left, Literal), isinstance(right, Literal)
        computed = functions.alike(*sides, written, self._implicit)
        made = None if computed is None else functions.arithmetic(operator, *computed, self._mode)
        return Arithmetic(operator, *sides) if made is None else made

    def _implicit(self, term: Term, to: Type) -> Term:
        return Cast(term, to, self._mode, self.time_zone)

    @property
    def _mode(self) -> CastMode:
        return "ansi" if self.ansi else "legacy"

    def _cast(self, operand: _Operand, to: Type) -> Term:
        """The implicit cast of an operand."""
        if operand.type == to:
            return operand.term
        cast: Term = Cast(operand.term, to, self._mode, self.time_zone)
        folded = fold(cast)
        return _opaque(cast) if folded is None else folded

    def _cast_all(self, operands: list[_Operand], to: Type) -> list[Term]:
        """As `_cast`, with the literals of each type cast together."""
        cast: dict[Term, Term] = {}
        literals = dict.fromkeys(
            operand.term for operand in operands if isinstance(operand.term, Literal) and operand.type != to
        )
        for _, same in groupby(sorted(literals, key=_type_name), key=_type_name):
            group = [term for term in same if isinstance(term, Literal)]
            for literal, folded in zip(group, fold_casts(group, to, self._mode, self.time_zone), strict=True):
                cast[literal] = _opaque(Cast(literal, to)) if folded is None else folded
        return [cast[operand.term] if operand.term in cast else self._cast(operand, to) for operand in operands]

    def _operand(self, term: Term) -> _Operand | None:
        """None where the type cannot be known."""
        bound = self._term(term)
        kind = type_of(bound)
        return None if kind is None else _Operand(bound, kind, isinstance(term, Literal))

    def _compare(self, operator: Operator, left: Term, right: Term) -> Predicate:
        one, other = self._operand(left), self._operand(right)
        if one is None or other is None:
            return Compare(operator, self._term(left), self._term(right))
        whole = self._whole_number_comparison(operator, one, other)
        if whole is not None:
            return whole
        equality = operator in ("=", "<=>", "<>")
        try:
            common = comparison_type(_digits_kind(one, other), _digits_kind(other, one), equality, self.ansi)
        except VersionsDiffer:
            common = OTHER
        if not common.is_scalar:
            return Holds(_opaque(Compare(operator, one.term, other.term)))
        return Compare(operator, self._cast(one, common), self._cast(other, common))

    def _whole_number_comparison(self, operator: Operator, one: _Operand, other: _Operand) -> Predicate | None:
        """Spark compares an integer with a written decimal as integers; with one beyond bigint not at all, even for NULL."""
        if other.type.is_integral and one.type.is_decimal and one.written:
            return self._whole_number_comparison(mirrored(operator), other, one)
        bound = other.term.value if isinstance(other.term, Literal) else None
        if operator not in ("<", "<=", ">", ">=") or not (
            one.type.is_integral and other.written and isinstance(bound, Decimal)
        ):
            return None
        low, high = integral_range(BIGINT)
        if bound > high or bound < low:
            return TRUE if (bound > high) == (operator in ("<", "<=")) else FALSE
        whole = math.floor(bound) if operator in (">", "<=") else math.ceil(bound)
        return Compare(operator, self._cast(one, BIGINT), Literal(whole, BIGINT))

    def _in(self, term: Term, values: tuple[Term, ...]) -> Predicate:
        operands = [self._operand(each) for each in (term, *values)]
        if any(operand is None for operand in operands):
            return In(self._term(term), tuple(self._term(value) for value in values))
        known = [operand for operand in operands if operand is not None]
        try:
            common = common_type([operand.type for operand in known], self.ansi)
        except VersionsDiffer:
            common = OTHER
        if not common.is_scalar:
            return Holds(_opaque(In(known[0].term, tuple(operand.term for operand in known[1:]))))
        subject, *items = self._cast_all(known, common)
        if all(isinstance(item, Literal) for item in items):
            return In(subject, tuple(items))
        return Or(tuple(Compare("=", subject, item) for item in items))

    def _holds(self, term: Term) -> Predicate:
        bound = self._term(term)
        kind = type_of(bound)
        if kind == VOID:
            return NULL
        if kind not in (BOOLEAN, None):
            raise InvalidPredicate(
                f"{to_sql(bound)} is {kind}, not boolean: compare it with something", detail="TYPE_MISMATCH"
            )
        return Holds(bound)

    def _text(self, term: Term) -> Term:
        operand = self._operand(term)
        return self._term(term) if operand is None else self._cast(operand, STRING)


def _digits_kind(operand: _Operand, beside: _Operand) -> Type:
    """Beside a decimal, a written integer counts as a decimal of just its digits."""
    if operand.type.is_integral and beside.type.is_decimal:
        value = operand.term.value if operand.written and isinstance(operand.term, Literal) else None
        return smallest_decimal(value) if isinstance(value, int) else decimal_for_integral(operand.type)
    return operand.type


def _type_name(term: Term) -> str:
    return str(type_of(term))


def _opaque(node: Term | Predicate) -> Opaque:
    return Opaque(to_sql(node), tuple(sorted(columns_of(node))))
