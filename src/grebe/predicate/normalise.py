"""One form for predicates that mean the same, so that indexes need to know fewer shapes.

- NOT is pushed down to where it can vanish: `NOT a < 1` is `a >= 1`, which holds for NULL too, and for NaN since Spark orders it.
- AND and OR are flat, without repetition, in a fixed order; constants are gone as far as SQL's three values allow.
- The literal stands on the right, and columns are freed from casts and functions where that is exact (`unwrap`).
- LIKE is equality, a prefix, a suffix or a part where that says the same; IN of one value is `=`.

Every rule keeps the value in every row, NULL included. Applying it twice changes nothing.
"""

from grebe.predicate.bind import mirrored
from grebe.predicate.compare import compare
from grebe.predicate.fold import one_value
from grebe.predicate.like import simplified
from grebe.predicate.text import to_sql
from grebe.predicate.tree import (
    FALSE,
    NULL,
    TRUE,
    And,
    Call,
    Cast,
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
    Predicate,
    StartsWith,
    Term,
    TruthOf,
)
from grebe.predicate.types import BOOLEAN
from grebe.predicate.unwrap import unwrapped_compare, unwrapped_in, unwrapped_start, without_nulls_of_its_own

_INVERSE: dict[Operator, Operator] = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_TRUTH = {True: Literal(True, BOOLEAN), False: Literal(False, BOOLEAN)}


def normalise(predicate: Predicate) -> Predicate:
    """The normal form of a bound predicate."""
    return _normal(predicate, negated=False)


def _normal(predicate: Predicate, negated: bool) -> Predicate:
    match predicate:
        case Not(inner):
            return _normal(inner, not negated)
        case And(below) | Or(below):
            parts = [_normal(part, negated) for part in below]
            return _conjunction(parts) if isinstance(predicate, And) != negated else _disjunction(parts)
        case Constant(value):
            return predicate if value is None or not negated else Constant(not value)
        case Holds(TruthOf(inner)):
            return _normal(inner, negated)
        case Holds(Opaque()):
            return Not(predicate) if negated else predicate
        case Holds(term):
            return _compare("=", _term(term), _TRUTH[not negated])
        case Compare(operator, left, right):
            return _negatable_compare(operator, _term(left), _term(right), negated)
        case IsNull(term):
            return _nullness(_term(term), null=not negated)
        case IsNotNull(term):
            return _nullness(_term(term), null=negated)
        case In(term, values):
            return _in(_term(term), values, negated)
        case Like():
            simple = simplified(predicate)
            return _text_match(simple, negated) if isinstance(simple, Like) else _normal(simple, negated)
        case StartsWith() | EndsWith() | Contains():
            return _text_match(predicate, negated)
    raise TypeError(f"no predicate: {type(predicate).__name__}")


def _term(term: Term) -> Term:
    match term:
        case TruthOf(predicate):
            inner = normalise(predicate)
            return Literal(inner.value, BOOLEAN) if isinstance(inner, Constant) else TruthOf(inner)
        case Cast(inner_term, to, mode, time_zone):
            return Cast(_term(inner_term), to, mode, time_zone)
    return term


def _conjunction(parts: list[Predicate]) -> Predicate:
    flat = _flat(parts, And, neutral=TRUE)
    if FALSE in flat:
        return FALSE
    return TRUE if not flat else flat[0] if len(flat) == 1 else And(tuple(flat))


def _disjunction(parts: list[Predicate]) -> Predicate:
    flat = _flat(parts, Or, neutral=FALSE)
    if TRUE in flat:
        return TRUE
    return FALSE if not flat else flat[0] if len(flat) == 1 else Or(tuple(flat))


def _flat(parts: list[Predicate], kind: type[And] | type[Or], neutral: Constant) -> list[Predicate]:
    """Parts of the same kind taken apart, without those that change nothing, once each, in the order of their text."""
    single: dict[Predicate, None] = {}
    for part in parts:
        for one in part.predicates if isinstance(part, kind) else (part,):
            if one != neutral:
                single[one] = None
    return sorted(single, key=to_sql) if len(single) > 1 else list(single)


def _negatable_compare(operator: Operator, left: Term, right: Term, negated: bool) -> Predicate:
    if not negated:
        return _compare(operator, left, right)
    if operator != "<=>":
        return _compare(_INVERSE[operator], left, right)
    inner = _compare(operator, left, right)
    return Not(inner) if isinstance(inner, Compare) and inner.operator == "<=>" else _normal(inner, negated=True)


def _compare(operator: Operator, left: Term, right: Term) -> Predicate:
    if isinstance(left, Literal) and not isinstance(right, Literal):
        return _compare(mirrored(operator), right, left)
    if isinstance(right, Literal):
        return _compare_with(operator, left, right)
    if to_sql(right) < to_sql(left):
        return Compare(mirrored(operator), right, left)
    return Compare(operator, left, right)


def _compare_with(operator: Operator, left: Term, right: Literal) -> Predicate:
    if right.value is None:
        return _nullness(left, null=True) if operator == "<=>" else NULL
    if isinstance(left, Literal):
        if left.type != right.type:
            return Compare(operator, left, right)
        return Constant(compare(operator, one_value(left), one_value(right))[0].as_py())
    if isinstance(left, TruthOf) and operator in ("=", "<>"):
        return _normal(left.predicate, negated=right.value is (operator == "<>"))
    if right.type == BOOLEAN and operator == "<>":
        return Compare("=", left, _TRUTH[not right.value])
    unwrapped = unwrapped_compare(operator, left, right)
    return Compare(operator, left, right) if unwrapped is None else _normal(unwrapped, negated=False)


def _nullness(term: Term, null: bool) -> Predicate:
    if isinstance(term, Literal):
        return Constant((term.value is None) == null)
    if isinstance(term, Call | Cast):
        term = without_nulls_of_its_own(term)
    return IsNull(term) if null else IsNotNull(term)


def _in(term: Term, values: tuple[Term, ...], negated: bool) -> Predicate:
    literals = [value for value in values if isinstance(value, Literal)]
    if len(literals) != len(values):
        return Not(In(term, values)) if negated else In(term, values)
    known = list(dict.fromkeys(value for value in literals if value.value is not None))
    nulls = [value for value in literals if value.value is None][:1]
    if not known or (isinstance(term, Literal) and term.value is None):
        return NULL
    if isinstance(term, Literal) or (len(known) == 1 and not nulls):
        parts = [_negatable_compare("=", term, value, negated) for value in known] + [NULL] * len(nulls)
        return _conjunction(parts) if negated else _disjunction(parts)
    unwrapped = unwrapped_in(term, tuple(known + nulls))
    if unwrapped is not None:
        return _normal(unwrapped, negated)
    inside = In(term, (*sorted(known, key=_literal_order), *nulls))
    return Not(inside) if negated else inside


def _literal_order(literal: Literal) -> tuple[str, bool, object]:
    """By value within a type; NaN last, where it would otherwise break the order."""
    value = literal.value
    unordered = isinstance(value, float) and value != value
    return str(literal.type), unordered, 0 if unordered else value


def _text_match(predicate: Predicate, negated: bool) -> Predicate:
    assert isinstance(predicate, Like | StartsWith | EndsWith | Contains)
    term = _term(predicate.term)
    if isinstance(term, Literal) and term.value is None:
        return NULL
    match predicate:
        case Like(_, pattern, escape):
            inside: Predicate = Like(term, pattern, escape)
        case StartsWith(_, text):
            whole = unwrapped_start(term, text) if isinstance(term, Call) else None
            if whole is not None:
                return _normal(whole, negated)
            inside = StartsWith(term, text)
        case EndsWith(_, text):
            inside = EndsWith(term, text)
        case Contains(_, text):
            inside = Contains(term, text)
    return Not(inside) if negated else inside
