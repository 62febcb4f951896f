"""SQL text, in Spark's dialect, to a predicate.

The grammar of predicates is Spark's own, with its precedence: `a = b IS NULL` means `(a = b) IS NULL`. Whatever is no
predicate that Grebe understands (most functions, arithmetic of two columns, CASE, subqueries) is handed to sqlglot, which checks it
and finds its columns, and becomes an opaque term with its text.
"""

from collections.abc import Callable
from dataclasses import dataclass

from grebe.errors import InvalidPredicate
from grebe.predicate import opaque_sql
from grebe.predicate.cursor import Cursor
from grebe.predicate.datetime_literals import typed_literal
from grebe.predicate.grammar import (
    BINDING,
    COMPARISONS,
    KEYWORD_VALUES,
    arithmetic,
    hex_bytes,
    is_known_function,
    is_operand,
    known_call,
    negated,
)
from grebe.predicate.lexer import string_value, syntax_error, tokens
from grebe.predicate.like import pattern_parts
from grebe.predicate.number_literals import number
from grebe.predicate.tree import (
    DEEPEST,
    And,
    Cast,
    Column,
    Compare,
    Constant,
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
    Predicate,
    Term,
    TruthOf,
    is_constant,
    require_shallow,
)
from grebe.predicate.types import BINARY, BOOLEAN, OTHER, STRING, VOID, parse_type
from grebe.predicate.words import BARE_FUNCTIONS, OPERATORS, TYPED_LITERALS

_SUBQUERY_STARTS = ("select", "with", "values", "from", "table")


def parse(text: str) -> Predicate:
    """The predicate that a WHERE clause with this text would apply."""
    try:
        made = _Parser(text).whole()
    except RecursionError:
        raise InvalidPredicate(
            "the predicate is nested too deeply; write long AND and OR chains flat", detail="SYNTAX"
        ) from None
    require_shallow(made)
    return made


@dataclass(frozen=True, slots=True)
class _Piece:
    """What a stretch of text stands for; `node` is None for what Grebe does not understand."""

    node: Term | Predicate | None
    start: int
    end: int


class _Parser(Cursor):
    def __init__(self, text: str) -> None:
        super().__init__(tokens(text))
        self._text = text

    def whole(self) -> Predicate:
        predicate = self._predicate(self._or())
        if self.here.kind != "end":
            self.fail("expected AND, OR or the end")
        return predicate

    def _piece(self, node: Term | Predicate | None, start: int) -> _Piece:
        return _Piece(node, start, self.last_end)

    def _term(self, piece: _Piece) -> Term:
        if piece.node is None:
            return self._opaque(piece.start, piece.end)
        if isinstance(piece.node, Holds):
            return piece.node.term
        if isinstance(piece.node, Constant):
            return Literal(piece.node.value, VOID if piece.node.value is None else BOOLEAN)
        return TruthOf(piece.node) if isinstance(piece.node, Predicate) else piece.node

    def _predicate(self, piece: _Piece) -> Predicate:
        if isinstance(piece.node, Predicate):
            return piece.node
        term = self._term(piece)
        if isinstance(term, Literal) and (term.value is None or isinstance(term.value, bool)):
            return Constant(term.value)
        return term.predicate if isinstance(term, TruthOf) else Holds(term)

    def _opaque(self, start: int, end: int) -> Opaque:
        text = self._text[start:end]
        return Opaque(text, opaque_sql.columns(text, start))

    # The grammar, loosest first

    def _or(self) -> _Piece:
        return self._chain("or", self._and, Or)

    def _and(self) -> _Piece:
        return self._chain("and", self._not, And)

    def _chain(
        self, word: str, below: Callable[[], _Piece], combine: Callable[[tuple[Predicate, ...]], Predicate]
    ) -> _Piece:
        first = below()
        if self.here.word != word:
            return first
        predicates = [self._predicate(first)]
        while self.take_word(word):
            predicates.append(self._predicate(below()))
        return self._piece(combine(tuple(predicates)), first.start)

    def _not(self) -> _Piece:
        start = self.here.start
        if self.take_word("not") or self.take_sign("!"):
            return self._piece(Not(self._predicate(self._not())), start)
        return self._suffixed()

    def _suffixed(self) -> _Piece:
        """A value, and at most one of IS, IN, BETWEEN, LIKE after it."""
        value = self._comparison()
        if self.take_word("is"):
            return self._is(value)
        at = self.at
        inverted = bool(self.take_word("not"))
        node: Predicate | None
        if self.take_word("between"):
            node = self._between(value)
        elif self.take_word("in"):
            node = self._in(value)
        elif self.take_word("like"):
            node = self._like(value)
        elif self.take_word("rlike", "regexp", "ilike"):
            self._pass_over_pattern()
            node = None
        else:
            self.at = at
            return value
        if node is None:
            return self._piece(None, value.start)
        return self._piece(Not(node) if inverted else node, value.start)

    def _is(self, value: _Piece) -> _Piece:
        inverted = bool(self.take_word("not"))
        term = self._term(value)
        node: Predicate
        if self.take_word("null", "unknown"):
            return self._piece(IsNotNull(term) if inverted else IsNull(term), value.start)
        if word := self.take_word("true", "false"):
            node = Compare("<=>", term, KEYWORD_VALUES[word])
        elif self.take_word("distinct"):
            self.expect_word("from")
            node = Not(Compare("<=>", term, self._term(self._comparison())))
        else:
            self.fail("expected NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM")
        return self._piece(negated(node) if inverted else node, value.start)

    def _between(self, value: _Piece) -> Predicate:
        low = self._term(self._comparison())
        self.expect_word("and")
        high = self._term(self._comparison())
        term = self._term(value)
        return And((Compare(">=", term, low), Compare("<=", term, high)))

    def _in(self, value: _Piece) -> Predicate | None:
        if not self.here.is_sign("("):
            self.fail("expected (")
        if self.next.word in _SUBQUERY_STARTS:
            self.skip_brackets()
            return None
        self.advance()
        items = [self._term(self._or())]
        while self.take_sign(","):
            items.append(self._term(self._or()))
        self.expect_sign(")")
        return In(self._term(value), tuple(items))

    def _like(self, value: _Piece) -> Predicate | None:
        if self.here.word in ("any", "some", "all"):
            self.advance()
            if not self.here.is_sign("("):
                self.fail("expected (")
            self.skip_brackets()
            return None
        start = self.here.start
        pattern = self._term(self._comparison())
        escape = self._escape_character()
        if pattern == KEYWORD_VALUES["null"]:
            return Constant(None)
        if not (isinstance(pattern, Literal) and isinstance(pattern.value, str)):
            return None
        try:
            pattern_parts(pattern.value, escape)
        except InvalidPredicate as cause:
            raise syntax_error(start, cause.args[0]) from None
        return Like(self._term(value), pattern.value, escape)

    def _escape_character(self) -> str:
        if not self.take_word("escape"):
            return "\\"
        if self.here.kind not in ("string", "raw") or len(character := string_value(self.here)) != 1:
            self.fail("expected one character in quotes")
        self.advance()
        return character

    def _pass_over_pattern(self) -> None:
        if self.take_word("any", "some", "all"):
            self.skip_brackets()
        else:
            self._comparison()
            self._escape_character()

    def _comparison(self) -> _Piece:
        left = self._binary()
        while self.here.is_sign(*COMPARISONS):
            operator = COMPARISONS[self.advance().text]
            right = self._binary()
            left = self._piece(Compare(operator, self._term(left), self._term(right)), left.start)
        return left

    def _binary(self, loosest: int = 0) -> _Piece:
        """A value, and the operators after it that bind at least as tightly as `loosest`."""
        left, operations = self._unary(), 0
        while (binding := BINDING.get(self.here.operator, -1)) >= loosest:
            operator = self.advance().operator
            right = self._binary(binding + 1)
            left = self._piece(arithmetic(operator, left.node, right.node), left.start)
            operations = 0 if left.node is None else operations + 1
            if operations > DEEPEST:
                self.fail(f"expected no more than {DEEPEST} operations in a row; compute constants beforehand")
        return left

    def _unary(self) -> _Piece:
        start = self.here.start
        if sign := self.take_sign("-", "+", "~"):
            if sign == "-" and self.here.kind == "number":
                return self._postfix(self._piece(number(self.advance(), negative=True), start))
            inner = self._unary()
            if sign == "-" and is_operand(inner.node):
                return self._piece(Negative(inner.node), start)
            if sign == "+" and is_operand(inner.node) and is_constant(inner.node):
                return self._piece(inner.node, start)
            return self._piece(None, start)
        return self._postfix(self._primary())

    def _postfix(self, piece: _Piece) -> _Piece:
        while True:
            if self.take_sign("::"):
                piece = self._cast_to(piece, "session", piece.start)
            elif self.here.is_sign("["):
                self.skip_brackets()
                piece = self._piece(None, piece.start)
            elif self.here.is_sign(".") and not isinstance(piece.node, Literal):
                self.advance()
                self.take_name()
                piece = self._piece(None, piece.start)
            else:
                return piece

    # The tightest: names, literals, calls, brackets

    def _primary(self) -> _Piece:
        token = self.here
        node: Term | Predicate | None
        match token.kind:
            case "number":
                node = number(self.advance(), negative=False)
            case "string" | "raw":
                node = Literal(self.take_strings(), STRING)
            case "hex":
                node = Literal(hex_bytes(self.advance()), BINARY)
            case "name":
                return self._path()
            case "sign" if token.text == "(":
                return self._parenthesised()
            case "word":
                return self._worded()
            case _:
                self.fail("expected a column, a value or (")
        return self._piece(node, token.start)

    def _parenthesised(self) -> _Piece:
        start = self.here.start
        if self.next.word in _SUBQUERY_STARTS and not self.ahead(2).is_sign(")", *COMPARISONS):
            self.skip_brackets()
            return self._piece(None, start)
        at = self.at
        self.advance()
        inner = self._or()
        if self.here.is_sign(","):  # a row of values
            self.at = at
            self.skip_brackets()
            return self._piece(None, start)
        self.expect_sign(")")
        if inner.node is None:
            return self._piece(self._opaque(inner.start, inner.end), start)
        return self._piece(inner.node, start)

    def _worded(self) -> _Piece:
        token = self.here
        word = token.word
        if word in OPERATORS:
            self.fail("expected a column, a value or (")
        if word in KEYWORD_VALUES:
            self.advance()
            return self._piece(KEYWORD_VALUES[word], token.start)
        if word in TYPED_LITERALS and self.next.kind in ("string", "raw"):
            self.advance()
            position = self.here.start
            return self._piece(typed_literal(word, self.take_strings(), position), token.start)
        if word == "case":
            self.skip_case()
            return self._piece(None, token.start)
        if word == "interval" and (self.next.kind in ("string", "number") or self.next.is_sign("-", "+")):
            self.skip_interval()
            return self._piece(None, token.start)
        if word == "time" and self.next.kind == "string":
            self.advance()
            self.take_strings()
            return self._piece(None, token.start)
        if self.next.is_sign("("):
            return self._call()
        if word in BARE_FUNCTIONS:
            self.advance()
            return self._piece(None, token.start)
        return self._path()

    def _path(self) -> _Piece:
        start = self.here.start
        names = [self.take_name()]
        while self.here.is_sign(".") and self.next.kind in ("word", "name"):
            self.advance()
            names.append(self.take_name())
        if self.here.is_sign("("):  # a function of a named catalog
            self.skip_brackets()
            return self._piece(None, start)
        return self._piece(Column(tuple(names)), start)

    def _call(self) -> _Piece:
        start = self.here.start
        word = self.advance().word
        if word in ("cast", "try_cast"):
            self.advance()
            piece = self._or()
            self.expect_word("as")
            piece = self._cast_to(piece, "try" if word == "try_cast" else "session", start)
            self.expect_sign(")")
            return self._piece(piece.node, start)
        at = self.at
        if word == "extract" and self.next.word == "year" and self.ahead(2).word == "from":
            word, self.at = "year", self.at + 2
        between = ("from", "for") if word in ("substring", "substr") else ()
        arguments = self._arguments(*between) if is_known_function(word) else None
        node = known_call(word, arguments) if arguments else None
        if node is None:
            self.at = at
            self.skip_brackets()
            self.skip_call_suffixes()
        return self._piece(node, start)

    def _arguments(self, *between: str) -> list[Term]:
        self.advance()
        if self.take_sign(")"):
            return []
        found = [self._term(self._or())]
        while self.take_sign(",") or self.take_word(*between):
            found.append(self._term(self._or()))
        self.expect_sign(")")
        return found

    def _cast_to(self, piece: _Piece, mode: str, start: int) -> _Piece:
        at = self.here.start
        self.take_name()
        if self.here.is_sign("("):
            self.skip_brackets()
        elif self.here.is_sign("<"):
            self.skip_angles()
        to = parse_type(self._text[at : self.last_end])
        cast = None if to in (OTHER, VOID) else Cast(self._term(piece), to, "try" if mode == "try" else "session")
        return self._piece(cast, start)
