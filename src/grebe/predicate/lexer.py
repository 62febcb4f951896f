"""SQL text cut into tokens, by the rules of Spark's own lexer.

(sqlglot's tree loses what matters here: `CAST` and `TRY_CAST` become one, `'a''b'` is read as in Spark 3, `a = b < c` is grouped
from the right. It is used, through `opaque_sql`, for what lies beyond the grammar of predicates.)
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal as OneOf
from typing import TypeAlias

from grebe.errors import GrebeError, InvalidPredicate

Kind: TypeAlias = OneOf["word", "name", "number", "string", "raw", "hex", "sign", "end"]

_TOKEN = re.compile(
    r"""
    (?P<raw>      [rR] (?: '[^']*' | "[^"]*" ) )
  | (?P<hex>      [xX] (?: '[^']*' | "[^"]*" ) )
  | (?P<string>   ' (?: [^'\\] | \\. | '' )* ' | " (?: [^"\\] | \\. | "" )* " )
  | (?P<number>   (?: [0-9]+\.?[0-9]* | \.[0-9]+ ) (?: [eE][+-]?[0-9]+ )? (?: [bB][dD] | [lLsSyYdDfF] )? (?!\w) )
  | (?P<word>     \w+ )
  | (?P<name>     ` (?: [^`] | `` )+ ` )
  | (?P<sign>     <=> | <= | >= | <> | != | == | => | -> | :: | \|\| | >>> | << | >> | [-+*/%&|^~=<>!(),.\[\]:] )
    """,
    re.VERBOSE | re.DOTALL,
)
_BLANK = re.compile(r"(?:\s++|--(?:\\\n|[^\r\n])*+)++")
"""Blanks and comments to the end of a line; a backslash before the line break carries the comment on, as in Spark."""
_COMMENT_EDGE = re.compile(r"/\*(?!\+)|\*/")
"""Where a bracketed comment begins or ends. `/*+` opens a hint and no comment, so that it does not nest."""
_ESCAPED = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([0-3][0-7]{2})|(.))", re.DOTALL)
_CONTROL = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


@dataclass(frozen=True, slots=True)
class Token:
    kind: Kind
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def word(self) -> str:
        """The word in lower case; empty for what is no word, so that it compares unequal to every keyword."""
        return self.text.lower() if self.kind == "word" else ""

    @property
    def operator(self) -> str:
        """The sign, or the word in lower case; empty for values."""
        return self.text if self.kind == "sign" else self.word

    def is_sign(self, *signs: str) -> bool:
        return self.kind == "sign" and self.text in signs


def syntax_error(position: int, problem: str) -> GrebeError:
    return InvalidPredicate(f"cannot parse the predicate at character {position + 1}: {problem}", detail="SYNTAX")


def tokens(text: str, error: Callable[[int, str], GrebeError] = syntax_error) -> list[Token]:
    """Return all tokens, the last of kind `end`. `error` makes what is raised where a character means nothing."""
    return list(_scanned(text, error))


def first_tokens(text: str, count: int) -> list[Token]:
    """Return up to `count` tokens from the beginning, fewer where the text ends or a character means nothing."""
    found: list[Token] = []
    try:
        for token in _scanned(text, syntax_error):
            found.append(token)
            if len(found) == count:
                break
    except GrebeError:
        pass  # what comes later is another grammar's
    return found


def _scanned(text: str, error: Callable[[int, str], GrebeError]) -> Iterator[Token]:
    position = _after_blanks(text, 0, error)
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise error(position, _lexical_problem(text[position]))
        yield Token(match.lastgroup, match[0], position)  # type: ignore[arg-type]  # the group names are the kinds
        position = _after_blanks(text, match.end(), error)
    yield Token("end", "", len(text))


def _after_blanks(text: str, position: int, error: Callable[[int, str], GrebeError]) -> int:
    """Return where the next token begins. A regular expression cannot count the levels of nested comments."""
    while True:
        blank = _BLANK.match(text, position)
        if blank is not None:
            position = blank.end()
        if not text.startswith("/*", position):
            return position
        position = _after_comment(text, position, error)


def _after_comment(text: str, start: int, error: Callable[[int, str], GrebeError]) -> int:
    depth = 1
    for edge in _COMMENT_EDGE.finditer(text, start + 2):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    raise error(start, "a comment is opened here and not closed")


def _lexical_problem(character: str) -> str:
    if character in "'\"`":
        return "a quote is opened here and not closed"
    return "this character means nothing in SQL"


def string_value(token: Token) -> str:
    """What a string literal means. A doubled quote is one quote, as in Spark 4."""
    if token.kind == "raw":
        return token.text[2:-1]
    quote, body = token.text[0], token.text[1:-1]
    if "\\" not in body:
        return body.replace(quote * 2, quote)
    pieces: list[str] = []
    end = 0
    for escape in _ESCAPED.finditer(body):
        pieces += (body[end : escape.start()].replace(quote * 2, quote), _unescaped(escape))
        end = escape.end()
    return "".join((*pieces, body[end:].replace(quote * 2, quote)))


def _unescaped(escape: re.Match[str]) -> str:
    four, eight, octal, character = escape.groups()
    if four or eight:
        code = int(four or eight, 16)
        return chr(code) if code <= 0x10FFFF else escape[0][1:]
    if octal:
        return chr(int(octal, 8))
    if character in "%_":
        return "\\" + character  # kept for LIKE
    return _CONTROL.get(character, character)
