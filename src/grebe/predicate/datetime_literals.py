"""DATE '…' and TIMESTAMP '…': constants whose text is checked when the predicate is parsed."""

from grebe.predicate.lexer import syntax_error
from grebe.predicate.scalar_text import (
    SPECIAL_WORDS,
    is_time_of_today,
    names_zone,
    to_date,
    to_timestamp,
    to_timestamp_ntz,
)
from grebe.predicate.tree import Cast, Literal, Term
from grebe.predicate.types import DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ, Type

_KINDS: dict[str, Type] = {
    "date": DATE,
    "timestamp": TIMESTAMP,
    "timestamp_ltz": TIMESTAMP,
    "timestamp_ntz": TIMESTAMP_NTZ,
}


def typed_literal(word: str, text: str, position: int) -> Term | None:
    """None where the value depends on the day, as for DATE 'today'. Without a zone in it a timestamp waits for the session's."""
    kind = _KINDS[word]
    if text.strip().lower().startswith(SPECIAL_WORDS) or (kind == TIMESTAMP and is_time_of_today(text)):
        return None
    value = _value(kind, text)
    if value is None:
        raise syntax_error(position, f"this is no {kind}, such as {_example(kind)}")
    if kind == TIMESTAMP and not names_zone(text):
        return Cast(Literal(text, STRING), TIMESTAMP)
    return Literal(value, kind)


def _value(kind: Type, text: str) -> int | None:
    if kind == DATE:
        return to_date(text)
    return to_timestamp_ntz(text) if kind == TIMESTAMP_NTZ else to_timestamp(text, "UTC")


def _example(kind: Type) -> str:
    return "'2024-12-31'" if kind == DATE else "'2024-12-31 23:59:59'"
