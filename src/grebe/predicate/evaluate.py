"""Predicates applied to Arrow data, with exactly Spark's answers.

A row in which Spark would raise (an ANSI cast that does not fit) raises here as well, but only if the answer depends on it: `x AND
failing` is false where x is false, whichever side is written first. Spark itself gives no promise about the order of evaluation.
What Grebe does not know to evaluate exactly is refused with `Unsupported`, never guessed.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from grebe.errors import InvalidPredicate, Unsupported
from grebe.predicate.arrow_types import from_arrow, physical_type, to_physical
from grebe.predicate.call_values import call_values
from grebe.predicate.casts import cast_values
from grebe.predicate.compare import compare, is_among
from grebe.predicate.geometry import related
from grebe.predicate.like import regular_expression
from grebe.predicate.text import column_sql, to_sql
from grebe.predicate.tree import (
    And,
    Call,
    Cast,
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
    Or,
    Path,
    Predicate,
    Related,
    StartsWith,
    Term,
    TextMatch,
    TruthOf,
    opaque_terms,
    type_of,
)
from grebe.predicate.types import DOUBLE, Type
from grebe.predicate.vector import Rows, Vector, either, valid_rows

_NULL = pa.scalar(None, pa.bool_())


def evaluate(data: pa.Table | pa.RecordBatch, predicate: Predicate) -> pa.BooleanArray:
    """True, false or NULL for every row. The predicate must be bound."""
    return Evaluator(predicate).truth(data)


def matches(data: pa.Table | pa.RecordBatch, predicate: Predicate) -> pa.BooleanArray:
    """True for the rows that a WHERE keeps, false for the others; no NULLs."""
    return Evaluator(predicate).matches(data)


def can_be_evaluated(predicate: Predicate) -> bool:
    """Whether nothing in it is known to Spark alone."""
    return not _unknown_terms(predicate)


class Evaluator:
    """A bound predicate for many tables: what it takes to ready it is done once. Threads may share one."""

    def __init__(self, predicate: Predicate) -> None:
        if unknown := _unknown_terms(predicate):
            raise _unknown(unknown[0])
        self.predicate = predicate
        self._items: dict[tuple[int, str], pa.Array] = {}

    def truth(self, data: pa.Table | pa.RecordBatch) -> pa.BooleanArray:
        batches = [data] if isinstance(data, pa.RecordBatch) else data.to_batches()
        answers = [_answer(_Rows(batch, self._items).truth(self.predicate)) for batch in batches]
        return pa.concat_arrays(answers) if answers else pa.array([], pa.bool_())

    def matches(self, data: pa.Table | pa.RecordBatch) -> pa.BooleanArray:
        return pc.fill_null(self.truth(data), False)


def _answer(truth: Vector) -> pa.Array:
    if truth.failed is not None and truth.failed.any():
        raise InvalidPredicate(
            f"a cast, a number or a geometry in the predicate does not fit {int(truth.failed.sum())} of {len(truth.failed)} rows, "
            "and Spark in ANSI mode would fail on them; use TRY_CAST, or leave these rows out by a further condition",
            detail="CAST_FAILED",
        )
    return truth.values


@dataclass(frozen=True, slots=True)
class _Rows:
    """Evaluation over one batch."""

    batch: pa.RecordBatch
    items: dict[tuple[int, str], pa.Array]
    """The values of each IN, by who it is and by type."""

    def truth(self, predicate: Predicate) -> Vector:
        match predicate:
            case And(below):
                return self._combined(below, pc.and_kleene, decided=False)
            case Or(below):
                return self._combined(below, pc.or_kleene, decided=True)
            case Not(inner):
                below_it = self.truth(inner)
                return Vector(pc.invert(below_it.values), below_it.failed)
            case Constant(value):
                return self._everywhere(value)
            case Holds(term):
                return self._column(term)
            case Compare(operator, left, right):
                one, other = self._side(left), self._side(right)
                failed = either(one.failed, other.failed)
                if failed is not None and operator != "<=>":
                    # Beside NULL it does not matter what the failed value would have been.
                    failed = failed & self._known(one) & self._known(other)
                return self._result(compare(operator, one.values, other.values), failed)
            case In(term, values):
                subject = self._column(term)
                return self._result(is_among(subject.values, self._among(values, subject.values.type)), subject.failed)
            case IsNull(term):
                inner_value = self._nullness(term)
                return self._result(inner_value.values.is_null(), inner_value.failed)
            case IsNotNull(term):
                inner_value = self._nullness(term)
                return self._result(inner_value.values.is_valid(), inner_value.failed)
            case Like() | StartsWith() | EndsWith() | Contains():
                subject = self._column(predicate.term)
                return self._result(_text_match(predicate, subject.values), subject.failed)
        raise TypeError(f"no predicate: {type(predicate).__name__}")

    def _combined(self, below: tuple[Predicate, ...], kernel: Any, decided: bool) -> Vector:
        """`decided`: the value of one operand that settles the whole."""
        whole = self._everywhere(not decided)
        for predicate in below:
            operand = self.truth(predicate)
            values = kernel(whole.values, operand.values)
            failed = either(whole.failed, operand.failed)
            if failed is not None:
                settled = pc.fill_null(pc.equal(values, decided), False).to_numpy(zero_copy_only=False)
                failed = failed & ~settled
            whole = Vector(values, failed)
        return whole

    def _everywhere(self, value: bool | None) -> Vector:
        return Vector(pa.repeat(pa.scalar(value, pa.bool_()), self.batch.num_rows))

    def _result(self, values: Any, failed: Rows | None) -> Vector:
        """Kernels give a scalar when both sides are constants, and an answer where a failed row was NULL."""
        if isinstance(values, pa.Scalar):
            values = pa.repeat(values, self.batch.num_rows)
        if failed is not None:
            values = pc.if_else(pa.array(failed), _NULL, values)
        return Vector(values, failed)

    def _side(self, term: Term) -> Vector:
        """A side of a comparison, which may stay a scalar."""
        if isinstance(term, Literal):
            return Vector(pa.scalar(term.value, physical_type(term.type)))
        return self._column(term)

    def _known(self, side: Vector) -> Rows:
        """The rows that are not NULL; a failed row is not, since it would have had a value."""
        if isinstance(side.values, pa.Scalar):
            return np.full(self.batch.num_rows, side.values.is_valid)
        valid = valid_rows(side.values)
        return valid if side.failed is None else valid | side.failed

    def _column(self, term: Term) -> Vector:
        """A term as an array in the physical form of its type."""
        match term:
            case Literal(value, kind):
                return Vector(pa.repeat(pa.scalar(value, physical_type(kind)), self.batch.num_rows))
            case Column(path, kind) if kind is not None:
                return _stored(self._field(path), kind, path)
            case TruthOf(predicate):
                return self.truth(predicate)
            case Cast(inner, to, mode, time_zone):
                return self._cast(inner, to, mode, time_zone)
            case Call():
                return self._called(term)
            case Related(terms=terms):
                return self._related(term, terms)
            case Opaque():
                raise _unknown(term)
        raise TypeError(f"not bound: {type(term).__name__}")

    def _cast(self, inner: Term, to: Type, mode: Any, time_zone: str) -> Vector:
        source = type_of(inner)
        if source is None or not source.is_scalar or not to.is_scalar:
            raise Unsupported(f"{to_sql(inner)} cannot be cast to {to} without Spark", detail="CAST")
        value = self._column(inner)
        result = cast_values(value.values, source, to, mode, time_zone)
        return Vector(result.values, either(value.failed, result.failed))

    def _called(self, call: Call) -> Vector:
        value = self._column(call.term)
        result = call_values(call, value.values)
        return Vector(result.values, either(value.failed, result.failed))

    def _related(self, term: Related, terms: tuple[Term, ...]) -> Vector:
        given = [self._column(one) for one in terms]
        if len(given) == 1:
            return related(term, [given[0].values])
        numbers = [
            cast_values(one.values, kind, DOUBLE, "legacy", "UTC")
            for one, kind in zip(given, map(type_of, terms), strict=True)
            if kind is not None
        ]
        return related(term, [one.values for one in numbers])

    def _nullness(self, term: Term) -> Vector:
        """For IS NULL alone the type of a column does not matter."""
        return Vector(self._field(term.path)) if isinstance(term, Column) else self._column(term)

    def _field(self, path: Path) -> pa.Array:
        index = self.batch.schema.get_field_index(path[0])
        if index < 0:
            raise InvalidPredicate(f"column {column_sql(path)} is not in the data", detail="UNKNOWN_COLUMN")
        field = self.batch.column(index)
        return pc.struct_field(field, list(path[1:])) if len(path) > 1 else field

    def _among(self, values: tuple[Term, ...], arrow: pa.DataType) -> pa.Array:
        # The predicate that is evaluated holds the values, so that no other can come to be the same.
        who = (id(values), str(arrow))
        known = self.items.get(who)
        if known is None:
            known = self.items[who] = pa.array([one.value for one in values if isinstance(one, Literal)], arrow)
        return known


def _stored(array: pa.Array, kind: Type, path: Path) -> Vector:
    """A stored column in the form of the type it was bound to, which may be wider than that of one file."""
    own = from_arrow(array.type)
    if not own.is_scalar or not kind.is_scalar:
        raise Unsupported(f"comparing {column_sql(path)}, which is {own}, without Spark", detail="TYPE")
    return cast_values(to_physical(array, own), own, kind, "ansi", "UTC")


def _text_match(match: TextMatch, values: pa.Array) -> pa.Array:
    if isinstance(match, StartsWith):
        return pc.starts_with(values, match.text)
    if isinstance(match, EndsWith):
        return pc.ends_with(values, match.text)
    if isinstance(match, Contains):
        return pc.match_substring(values, match.text)
    return pc.match_substring_regex(values, regular_expression(match.pattern, match.escape))


def _unknown_terms(predicate: Predicate) -> list[Opaque]:
    return [term for term in opaque_terms(predicate) if not isinstance(term, Call | Related)]


def _unknown(term: Opaque) -> Unsupported:
    return Unsupported(f"{term.text} cannot be evaluated without Spark", detail="OPAQUE_TERM")
