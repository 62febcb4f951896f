"""Parses expressions of a view into our own tree. What the log holds is text, and anybody who can write to the log may have
written it; so it is read by this parser, and only what is in its grammar and on its list of functions ever becomes a column of
Spark.

The grammar is that of the SQL in which Spark writes its own expressions down: columns `t0.a.b`, constants, operators, `CASE`,
`CAST`, `IN`, `LIKE`, and calls.
"""

from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import NoReturn

from grebe.indexes.view.allowed import AGGREGATES, FUNCTIONS, TYPES
from grebe.indexes.view.nodes import (
    Call,
    Case,
    Cast,
    Column,
    Constant,
    Expression,
    Operation,
    Part,
    Refused,
    terms_of,
)
from grebe.predicate.cursor import Cursor
from grebe.predicate.lexer import tokens

_LONGEST = 200_000
_MOST_TABLES = 100
_DEEPEST = 300
_MOST_DIGITS = 38


OPERATORS = {
    "or": 1,
    "and": 2,
    **dict.fromkeys(("=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">="), 4),
    "|": 5,
    "^": 6,
    "&": 7,
    **dict.fromkeys(("+", "-", "||"), 8),
    **dict.fromkeys(("*", "/", "%", "div"), 9),
}
"""How tightly those with two sides bind."""
_NOT, _PREDICATE, _SIGN = 3, 4, 10
_TRUTHS = {"true": True, "false": False, "null": None}
_SUFFIXES = {"l": "bigint", "s": "smallint", "y": "tinyint"}
_UNITS = frozenset(("year", "month", "day", "hour", "minute", "second"))
_TRIMS = {"both": "trim", "leading": "ltrim", "trailing": "rtrim"}


@lru_cache(maxsize=4096)
def parsed(text: str, tables: int = _MOST_TABLES, aggregates: bool = False) -> Expression:
    """The tree of a text over so many tables. Raises `Refused`; `aggregates`: whether functions of a group may stand in it."""
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise Refused("what is no text, or a very long one")
    try:
        parser = _Parser(text, tables, aggregates)
        found = parser.expression(0)
        if parser.cursor.here.kind != "end":
            raise Refused(f"{parser.cursor.here.text[:40]!r} where an expression has ended")
        _require_shallow(found)
        return found
    except RecursionError:
        raise Refused("an expression that is nested too deeply") from None


def _require_shallow(expression: Expression) -> None:
    """Whoever goes through an expression does so by recursion."""
    level = [expression]
    for _ in range(_DEEPEST):
        level = [below for one in level for below in terms_of(one)]
        if not level:
            return
    raise Refused(f"an expression that is nested more than {_DEEPEST} deep")


def _syntax(position: int, problem: str) -> Refused:
    return Refused(f"no SQL at character {position + 1}: {problem}")


class _Cursor(Cursor):
    def fail(self, problem: str) -> NoReturn:
        raise _syntax(self.here.start, problem)


class _Parser:
    def __init__(self, text: str, tables: int, aggregates: bool) -> None:
        self.cursor = _Cursor(tokens(text, _syntax))  # type: ignore[arg-type]  # it only has to be raised
        self._tables = tables
        self._aggregates = aggregates

    def expression(self, least: int) -> Expression:
        """All that binds at least as tightly."""
        at = self.cursor
        if at.here.word == "not" and least <= _NOT:
            at.advance()
            left: Expression = Operation("not", (self.expression(_NOT),))
        else:
            left = self._primary()
        while True:
            sign = at.here.operator
            binds = OPERATORS.get(sign)
            if binds is not None and binds >= least:
                at.advance()
                left = Operation(sign, (left, self.expression(binds + 1)))
            elif least <= _PREDICATE and sign in ("is", "in", "not", "between", "like", "rlike"):
                left = self._predicate(left)
            else:
                return left

    def _predicate(self, left: Expression) -> Expression:
        at = self.cursor
        if at.take_word("is"):
            negated = bool(at.take_word("not"))
            found = self._is(left)
        else:
            negated = bool(at.take_word("not"))
            found = self._relation(left)
        return Operation("not", (found,)) if negated else found

    def _is(self, left: Expression) -> Expression:
        at = self.cursor
        if at.take_word("null"):
            return Operation("is null", (left,))
        if word := at.take_word("true", "false"):
            return Operation("<=>", (left, Constant(word == "true")))
        at.expect_word("distinct")
        at.expect_word("from")
        return Operation("not", (Operation("<=>", (left, self.expression(_PREDICATE + 1))),))

    def _relation(self, left: Expression) -> Expression:
        at = self.cursor
        if at.take_word("in"):
            return Operation("in", (left, *self._listed()))
        if at.take_word("between"):
            low = self.expression(_PREDICATE + 1)
            at.expect_word("and")
            high = self.expression(_PREDICATE + 1)
            return Operation("and", (Operation(">=", (left, low)), Operation("<=", (left, high))))
        if at.take_word("rlike"):
            return Call("rlike", (left, self.expression(_PREDICATE + 1)))
        at.expect_word("like")
        pattern = self.expression(_PREDICATE + 1)
        escape = (Constant(at.take_strings()),) if at.take_word("escape") else ()
        return Call("like", (left, pattern, *escape))

    def _listed(self) -> tuple[Expression, ...]:
        at = self.cursor
        at.expect_sign("(")
        found: list[Expression] = []
        while not at.take_sign(")"):
            if found:
                at.expect_sign(",")
            found.append(self.expression(0))
        return tuple(found)

    def _primary(self) -> Expression:
        at = self.cursor
        if sign := at.take_sign("-", "+", "~"):
            term = self.expression(_SIGN)
            if sign == "-" and isinstance(term, Constant) and (negative := _negative(term)) is not None:
                return negative  # the least whole number has no positive one
            return term if sign == "+" else Operation("negative" if sign == "-" else "~", (term,))
        if at.take_sign("("):
            found = self.expression(0)
            at.expect_sign(")")
        else:
            found = self._value()
        while True:
            if at.take_sign("."):
                found = Part(found, at.take_name())
            elif at.take_sign("["):
                found = Part(found, self._key())
                at.expect_sign("]")
            else:
                return found

    def _key(self) -> str | int:
        key = self.expression(0)
        if not isinstance(key, Constant) or isinstance(key.value, bool) or not isinstance(key.value, str | int):
            raise Refused("an item that is not named by a constant")
        return key.value

    def _value(self) -> Expression:
        at = self.cursor
        here = at.here
        if here.kind == "number":
            return _number(at.advance().text)
        if here.kind in ("string", "raw"):
            return Constant(at.take_strings())
        if here.kind == "hex":
            return Constant(_bytes(at.advance().text[2:-1]))
        if here.word in _TRUTHS and not at.next.is_sign("(", "."):
            return Constant(_TRUTHS[at.advance().word])
        if here.word == "interval" and at.next.kind == "string":
            return self._interval()
        if here.word in ("date", "timestamp", "timestamp_ntz", "timestamp_ltz") and at.next.kind == "string":
            kind = at.advance().word
            return Constant(at.take_strings(), kind)
        if here.word == "case":
            return self._case()
        if here.kind in ("word", "name") and at.next.is_sign("("):
            return self._call()
        return self._column()

    def _interval(self) -> Expression:
        at = self.cursor
        at.advance()
        value = at.take_strings()
        units = [unit] if (unit := at.take_word(*_UNITS)) else []
        if units and at.take_word("to"):
            if at.here.word not in _UNITS:
                at.fail("expected a unit of time")
            units.append(at.advance().word)
        return Constant(value, f"interval {' to '.join(units)}".rstrip())

    def _case(self) -> Expression:
        at = self.cursor
        at.advance()
        of = None if at.here.word == "when" else self.expression(0)
        branches: list[tuple[Expression, Expression]] = []
        while at.take_word("when"):
            condition = self.expression(0)
            at.expect_word("then")
            branches.append((condition if of is None else Operation("=", (of, condition)), self.expression(0)))
        otherwise = self.expression(0) if at.take_word("else") else None
        at.expect_word("end")
        if not branches:
            at.fail("CASE without WHEN")
        return Case(tuple(branches), otherwise)

    def _call(self) -> Expression:
        at = self.cursor
        name = at.take_name().lower()
        special: dict[str, Callable[[], Expression]] = {
            "cast": lambda: self._cast(attempt=False),
            "try_cast": lambda: self._cast(attempt=True),
            "trim": self._trim,
        }
        if name in special:
            return special[name]()
        if name not in FUNCTIONS and not (self._aggregates and name in AGGREGATES):
            raise Refused(f"the function {name[:60]}")
        return Call(name, self._listed())

    def _cast(self, attempt: bool) -> Expression:
        at = self.cursor
        at.expect_sign("(")
        term = self.expression(0)
        at.expect_word("as")
        kind = self._type()
        at.expect_sign(")")
        return Cast(term, kind, attempt)

    def _type(self) -> str:
        """Of scalars only, written anew."""
        at = self.cursor
        name = at.take_name().lower()
        if name == "interval":
            units = [at.advance().word]
            if at.take_word("to"):
                units.append(at.advance().word)
            if not _UNITS.issuperset(units):
                raise Refused("an interval of no known unit")
            return f"interval {' to '.join(units)}"
        if name in ("decimal", "dec", "numeric"):
            return f"decimal({','.join(self._precision())})"
        if name not in TYPES:
            raise Refused(f"the type {name[:60]}")
        return name

    def _precision(self) -> list[str]:
        at = self.cursor
        found = ["10", "0"]
        if at.take_sign("("):
            for place in range(2):
                if at.here.kind != "number" or not at.here.text.isdecimal() or int(at.here.text) > _MOST_DIGITS:
                    raise Refused("a decimal of no known precision")
                found[place] = str(int(at.advance().text))
                if not at.take_sign(","):
                    break
            at.expect_sign(")")
        return found

    def _trim(self) -> Expression:
        """`TRIM(BOTH 'x' FROM a)`, or a plain call."""
        at = self.cursor
        if at.next.word not in _TRIMS:
            return Call("trim", self._listed())
        at.expect_sign("(")
        name = _TRIMS[at.advance().word]
        signs = () if at.here.word == "from" else (self.expression(0),)
        at.expect_word("from")
        text = self.expression(0)
        at.expect_sign(")")
        return Call(name, (*signs, text))

    def _column(self) -> Expression:
        at = self.cursor
        table = at.take_name()
        number = table[1:]
        if not (table.startswith("t") and number.isdecimal() and len(number) <= 2 and int(number) < self._tables):
            raise Refused(f"the name {table[:60]!r}, which is no table of the view")
        at.expect_sign(".")
        path = [at.take_name()]
        while at.take_sign("."):
            path.append(at.take_name())
        return Column(int(number), tuple(path))


def _number(text: str) -> Constant:
    low = text.lower()
    if len(low) > 100:
        raise Refused("a number of more than 100 digits")
    if low.endswith("bd"):
        return Constant(_decimal(low[:-2]))
    if low[-1] in _SUFFIXES:
        return Constant(int(low[:-1]), _SUFFIXES[low[-1]])
    if low[-1] in "df":
        return Constant(float(low[:-1]), "double" if low[-1] == "d" else "float")
    if "e" in low:
        return Constant(float(low), "double")
    return Constant(_decimal(low)) if "." in low else Constant(int(low))


def _decimal(text: str) -> Decimal:
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise Refused("a decimal of no known precision") from None
    exponent = value.as_tuple().exponent
    if value.adjusted() >= _MOST_DIGITS or not isinstance(exponent, int) or abs(exponent) > _MOST_DIGITS:
        raise Refused("a decimal of no known precision")
    return value


def _negative(constant: Constant) -> Constant | None:
    value = constant.value
    if isinstance(value, Decimal):
        return Constant(value.copy_negate(), constant.type)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return Constant(-value, constant.type) if is_number else None  # type: ignore[operator]


def _bytes(digits: str) -> bytes:
    try:
        return bytes.fromhex(digits if len(digits) % 2 == 0 else "0" + digits)
    except ValueError:
        raise Refused("bytes that are no hexadecimal digits") from None
