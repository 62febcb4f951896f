"""The condition of a partial index: which rows it holds.

It must mean the same to every session, now and at every refresh. So what is remembered is the condition as it was understood when
the index was made (constants computed, casts inserted), and a condition that a session's settings could change is refused.
"""

from collections.abc import Iterator

from grebe.errors import CorruptIndex, InvalidIndex, InvalidPredicate, Unsupported
from grebe.files.untrusted import decoding
from grebe.formats import Reading
from grebe.predicate.arrow_types import from_arrow
from grebe.predicate.bind import bind
from grebe.predicate.normalise import normalise
from grebe.predicate.parse import parse
from grebe.predicate.text import to_sql
from grebe.predicate.tree import Cast, Constant, Predicate, opaque_terms, type_of, walk
from grebe.predicate.types import OTHER, Field, Type, decimal_for_integral, integral_range


def where_text(where: object, index: str) -> str | None:
    """The condition as given to a kind, as SQL."""
    if where is None:
        return None
    if isinstance(where, Predicate):
        return to_sql(where)
    if isinstance(where, str) and where.strip():
        return where
    raise InvalidIndex(
        f'index {index}: where is SQL text or a predicate such as grebe.col("a") == 1, not {type(where).__name__}',
        detail="WHERE",
    )


def understood(text: str, reading: Reading, case_sensitive: bool, time_zone: str, ansi: bool, index: str) -> Predicate:
    """The condition over the table's columns, in the one form that is remembered."""
    try:
        condition = meant(text, reading, case_sensitive, time_zone, ansi)
    except InvalidPredicate as problem:
        raise InvalidIndex(f"index {index}: where: {problem.args[0]}", detail="WHERE") from problem
    if opaque := opaque_terms(condition):
        raise InvalidIndex(
            f"index {index}: where: Grebe does not know the term {opaque[0].text}, so it could not tell which queries the index "
            "answers; compare columns with constants",
            detail="WHERE_OPAQUE",
        )
    if isinstance(condition, Constant):
        raise InvalidIndex(f"index {index}: where: the condition is {to_sql(condition)} in every row", detail="WHERE")
    for cast in unsure_casts(condition):
        raise InvalidIndex(
            f"index {index}: where: {to_sql(cast)} depends on the settings of a session; compare the column with a constant of its "
            "own type",
            detail="WHERE_CAST",
        )
    return condition


def recalled(text: str, reading: Reading) -> Predicate:
    """Return the condition that the log remembers as text. Raises `CorruptIndex` for what is no condition of an index: a term that
    only Spark would understand is never one, so none is ever handed to Spark."""
    with decoding(_no_condition):
        try:
            condition = meant(text, reading, case_sensitive=True)
        except (InvalidPredicate, Unsupported) as problem:
            raise _no_condition(problem.code) from problem
    if opaque_terms(condition):
        raise _no_condition("a term that Grebe does not know")
    return condition


def _no_condition(why: str) -> CorruptIndex:
    return CorruptIndex(
        f"the condition that the log remembers of an index is none that Grebe writes ({why}); create the index anew",
        detail="WHERE",
    )


def meant(text: str, reading: Reading, case_sensitive: bool, time_zone: str = "UTC", ansi: bool = True) -> Predicate:
    """A condition over the table's columns, as a session with these settings understands it. Raises `InvalidPredicate`."""
    bound = bind(parse(text), _schema(reading), case_sensitive=case_sensitive, time_zone=time_zone, ansi=ansi)
    return normalise(bound)


def _schema(reading: Reading) -> Type:
    return Type("struct", fields=tuple(_fields(reading)))


def _fields(reading: Reading) -> Iterator[Field]:
    for column in reading.columns:
        try:
            yield Field(column.name, from_arrow(column.arrow.type))
        except Unsupported:  # a type that Arrow lacks: only a condition on this very column is out of the question
            yield Field(column.name, OTHER)


def unsure_casts(condition: Predicate) -> Iterator[Cast]:
    """Casts that can fail, or that look at the session's time zone."""
    for node in walk(condition):
        if isinstance(node, Cast) and not _always_exact(type_of(node.term), node.to):
            yield node


def _always_exact(kind: Type | None, to: Type) -> bool:
    if kind is None or not kind.is_numeric or not to.is_numeric:
        return False
    if to.is_floating:
        return True
    if to.is_integral:
        return kind.is_integral and integral_range(kind)[1] <= integral_range(to)[1]
    whole = decimal_for_integral(kind) if kind.is_integral else kind
    return whole.is_decimal and whole.scale <= to.scale and whole.precision - whole.scale <= to.precision - to.scale
