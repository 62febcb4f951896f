"""A place in a list of tokens: looking, taking, expecting, and passing over what stays opaque."""

from typing import NoReturn

from grebe.predicate.lexer import Token, string_value, syntax_error
from grebe.predicate.words import OPERATORS


class Cursor:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self.at = 0

    @property
    def here(self) -> Token:
        return self._tokens[self.at]

    @property
    def next(self) -> Token:
        return self.ahead(1)

    def ahead(self, steps: int) -> Token:
        return self._tokens[min(self.at + steps, len(self._tokens) - 1)]

    @property
    def last_end(self) -> int:
        """Where the token before this place ends in the text."""
        return self._tokens[self.at - 1].end

    def advance(self) -> Token:
        token = self.here
        if token.kind == "end":
            self.fail("the text ends too early")
        self.at += 1
        return token

    def fail(self, problem: str) -> NoReturn:
        raise syntax_error(self.here.start, problem)

    def take_word(self, *words: str) -> str:
        """The keyword, if one of these is next; else nothing."""
        return self.advance().word if self.here.word in words else ""

    def take_sign(self, *signs: str) -> str:
        return self.advance().text if self.here.is_sign(*signs) else ""

    def expect_sign(self, sign: str) -> None:
        if not self.take_sign(sign):
            self.fail(f"expected {sign}")

    def expect_word(self, word: str) -> None:
        if not self.take_word(word):
            self.fail(f"expected {word.upper()}")

    def take_name(self) -> str:
        if self.here.kind not in ("word", "name"):
            self.fail("expected a name")
        token = self.advance()
        return token.text[1:-1].replace("``", "`") if token.kind == "name" else token.text

    def take_strings(self) -> str:
        """Strings side by side are one string."""
        parts = []
        while self.here.kind in ("string", "raw"):
            parts.append(string_value(self.advance()))
        return "".join(parts)

    def skip_brackets(self) -> None:
        if not self.here.is_sign("(", "["):
            self.fail("expected (")
        depth = 0
        while True:
            if self.here.kind == "end":
                self.fail("expected )")
            token = self.advance()
            depth += token.is_sign("(", "[") - token.is_sign(")", "]")
            if depth == 0:
                return

    def skip_angles(self) -> None:
        """The type arguments of `array<…>`, whose closing signs may stand together."""
        depth = 0
        while True:
            if self.here.kind == "end":
                self.fail("expected >")
            token = self.advance()
            depth += token.is_sign("<") - (len(token.text) if token.is_sign(">", ">>", ">>>") else 0)
            if depth <= 0:
                return

    def skip_case(self) -> None:
        depth = 0
        while True:
            if self.here.kind == "end":
                self.fail("expected END")
            word = self.advance().word
            depth += (word == "case") - (word == "end")
            if depth == 0:
                return

    def skip_interval(self) -> None:
        self.advance()
        while self.here.kind in ("string", "number") or self.here.is_sign("-", "+"):
            self.take_sign("-", "+")
            self.advance()
            if self.here.kind == "word" and self.here.word not in OPERATORS:
                self.advance()
            if self.take_word("to"):
                self.advance()

    def skip_call_suffixes(self) -> None:
        """FILTER (…) and OVER (…) or OVER name after a function call."""
        while (self.here.word == "filter" and self.next.is_sign("(")) or self.here.word == "over":
            self.advance()
            if self.here.is_sign("("):
                self.skip_brackets()
            else:
                self.take_name()
