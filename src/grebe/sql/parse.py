"""Text into statements, by the lexer of predicates: comments, quoted names and any case are Spark's."""

import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from grebe.errors import InvalidIndex, InvalidStatement
from grebe.indexes.kind import Kind
from grebe.indexes.making import fields_of, kind_made
from grebe.indexes.registry import kind_named
from grebe.predicate.cursor import Cursor
from grebe.predicate.lexer import Token, first_tokens, tokens
from grebe.sql.statement import (
    CancelIndex,
    CreateIndex,
    DescribeIndex,
    DropIndex,
    ExplainIndexes,
    OptimizeIndexes,
    RefreshIndexes,
    RepairIndexes,
    RestoreIndex,
    ShowHistory,
    ShowIndexes,
    Statement,
    TableName,
    VacuumIndexes,
    VerifyIndexes,
)

_ALWAYS_OURS = ("create", "drop", "show", "cancel", "verify", "repair")
"""Words before INDEX that no statement of Spark's begins with. (Of CREATE and DROP INDEX, Spark's own are for databases.)"""
_FIRST = 5
"""Tokens from which a statement is told to be ours."""
_TO_THE_TABLE = 32
"""More tokens than stand before and in the name of a table."""
_CLAUSES = ("include", "where", "options")
_OPTION_WORDS = {"true": True, "false": False, "null": None}


def parse_statement(text: str) -> Statement | None:
    """Return the statement on indexes that the text is, or None if its first words are not those of one.

    Raises `InvalidStatement`, and what the kinds raise, only for texts whose first words are ours: any other text may be a
    statement of Spark's or of another extension's, with words and signs that this grammar does not have.
    """
    body = _without_end(text)
    first = first_tokens(body, _FIRST)
    if _is_explain(first):
        return _explain(text, body, first)
    return _Statements(body, tokens(body, _error)).statement() if _is_ours(first) else None


def table_of(text: str) -> TableName | None:
    """Return the table that a statement names, or None, also where the rest of the statement is wrong."""
    first = first_tokens(text, _TO_THE_TABLE)
    if not _is_ours(first[:_FIRST]):
        return None
    read = _Statements(text, [*first, Token("end", "", len(text))])
    try:
        while not (read.here.word == "on" and read.next.kind in ("word", "name")):
            read.advance()
        return read.on_table()
    except InvalidStatement:
        return None


def _is_explain(first: list[Token]) -> bool:
    return [token.word for token in first[:2]] == ["explain", "indexes"]


def _explain(text: str, body: str, first: list[Token]) -> ExplainIndexes:
    """Take the query as it is written: it is Spark's to read."""
    verbose = len(first) > 2 and first[2].word in ("verbose", "extended")
    query = body[first[2 if verbose else 1].end :]
    if not query.strip():
        raise _error(len(text), "expected a query")
    return ExplainIndexes(query, verbose)


def _without_end(text: str) -> str:
    """Cut blanks and semicolons off the end. (A regular expression would look for the end from every blank.)"""
    end = len(text)
    while end and (text[end - 1].isspace() or text[end - 1] == ";"):
        end -= 1
    return text[:end]


def _error(position: int, problem: str) -> InvalidStatement:
    return InvalidStatement(f"cannot parse the statement: {problem}", position=position, detail="SYNTAX")


def _is_ours(cut: list[Token]) -> bool:
    """A table may be named `index`, so that `VACUUM index` is Delta's and `DESCRIBE index` is Spark's."""
    words = [token.word for token in cut] + [""] * 4
    if words[:3] == ["create", "or", "replace"]:
        return words[3] == "index"
    if words[1] not in ("index", "indexes"):
        return False
    on_a_table = "on" in words[2:4] or (len(cut) > 3 and cut[3].is_sign(","))
    return words[0] in _ALWAYS_OURS or on_a_table or (words[0] == "refresh" and len(cut) > 3)


class _Statements(Cursor):
    def __init__(self, text: str, cut: list[Token]) -> None:
        super().__init__(cut)
        self._text = text

    def fail(self, problem: str) -> NoReturn:
        raise _error(self.here.start, problem)

    def statement(self) -> Statement:
        verbs: Mapping[str, Callable[[], Statement]] = {
            "create": self._create,
            "show": self._show,
            "describe": self._describe,
            "desc": self._describe,
            "refresh": self._refresh,
            "optimize": self._optimize,
            "drop": self._drop,
            "restore": lambda: RestoreIndex(*self._index_on_table()),
            "vacuum": self._vacuum,
            "cancel": lambda: CancelIndex(*self._index_on_table()),
            "verify": self._verify,
            "repair": lambda: RepairIndexes(self._indexes_on_table()),
        }
        if self.here.word not in verbs:
            self.fail(f"no verb on indexes; there are: {', '.join(verb.upper() for verb in verbs)}")
        made = verbs[self.advance().word]()
        if self.here.kind != "end":
            self.fail("this is too much")
        return made

    def _create(self) -> CreateIndex:
        replace = bool(self.take_word("or"))
        if replace:
            self.expect_word("replace")
        self.expect_word("index")
        if_not_exists = bool(self.take_word("if"))
        if if_not_exists:
            self.expect_word("not")
            self.expect_word("exists")
        name = self.take_name()
        table = self.on_table()
        self.expect_word("using")
        return CreateIndex(table, self._index(name), replace, if_not_exists)

    def _index(self, name: str) -> Kind:
        start = self.here.start
        try:
            kind = kind_named(self.take_name())
            return kind_made(kind, name, self._described(fields_of(kind)))
        except InvalidIndex as problem:
            problem.position = start
            raise

    def _described(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """What follows the kind: AS and a query; or its columns or sketches, INCLUDE, WHERE, OPTIONS."""
        values: dict[str, Any] = {}
        if self.take_word("as"):
            return {"query": self._rest()}
        if self.here.kind != "end" and not (self.here.word in _CLAUSES and "queries" in fields):
            items = self._items()
            sketches = [item for item in items if "(" in item]
            named = [item for item in items if "(" not in item]
            values |= {"sketches": ", ".join(sketches)} if sketches else {}
            values |= {"on": named} if named else {}
        if self.take_word("include"):
            values["include"] = self._items()
        if self.take_word("where"):
            values["where"] = self._condition()
        if self.take_word("options"):
            values |= self._options(fields)
        return values

    def _items(self) -> list[str]:
        """What stands between brackets, cut at its commas, as it is written."""
        self.expect_sign("(")
        items = []
        while True:
            start = self.here.start
            while not self.here.is_sign(",", ")"):
                if self.here.is_sign("("):
                    self.skip_brackets()
                else:
                    self.advance()
            if start == self.here.start:
                self.fail("expected a column")
            items.append(self._text[start : self.last_end])
            if not self.take_sign(","):
                self.expect_sign(")")
                return items

    def _rest(self) -> str:
        start = self.here.start
        while self.here.kind != "end":
            self.advance()
        if start == self.here.start:
            self.fail("expected a query")
        return self._text[start : self.last_end]

    def _condition(self) -> str:
        start = self.here.start
        while self.here.kind != "end" and not (self.here.word == "options" and self.next.is_sign("(")):
            self.advance()
        if start == self.here.start:
            self.fail("expected a condition")
        return self._text[start : self.last_end]

    def _options(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        self.expect_sign("(")
        options: dict[str, Any] = {}
        while True:
            name = self.take_strings() or self.take_name()
            if name.lower() not in fields:
                self.at -= 1
                self.fail(f"no option {name} of this kind; there are: {', '.join(fields)}")
            self.take_sign("=", "==")
            options[name.lower()] = self._option_value()
            if not self.take_sign(","):
                self.expect_sign(")")
                return options

    def _option_value(self) -> Any:
        sign = self.take_sign("-")
        here = self.here
        if here.kind == "number":
            number = sign + self.advance().text
            return int(number) if re.fullmatch(r"-?\d+", number) else float(number.rstrip("dDfFbB"))
        if here.kind == "string":
            return self.take_strings()
        if here.word not in _OPTION_WORDS:
            self.fail("expected a number, a text, true, false or null")
        return _OPTION_WORDS[self.advance().word]

    def _show(self) -> ShowIndexes | ShowHistory:
        if self.take_word("index"):
            self.expect_word("history")
            return ShowHistory(self.on_table())
        self.expect_word("indexes")
        return ShowIndexes(self.on_table() if self.here.word in ("on", "in", "from") else None)

    def _describe(self) -> DescribeIndex:
        return DescribeIndex(*self._index_on_table())

    def _refresh(self) -> RefreshIndexes:
        names, table = self._some_on_table()
        return RefreshIndexes(table, names, self.take_word("full", "incremental", "quick") or "incremental")

    def _optimize(self) -> OptimizeIndexes:
        names, table = self._some_on_table()
        return OptimizeIndexes(table, names, self.take_word("full", "quick") or "quick")

    def _drop(self) -> DropIndex:
        self.expect_word("index")
        if_exists = bool(self.take_word("if"))
        if if_exists:
            self.expect_word("exists")
        name = self.take_name()
        return DropIndex(self.on_table(), name, if_exists)

    def _vacuum(self) -> VacuumIndexes:
        names, table = self._some_on_table()
        if len(names) > 1:
            self.fail("VACUUM takes one index, or all: VACUUM INDEXES ON …")
        dry_run = bool(self.take_word("dry"))
        if dry_run:
            self.expect_word("run")
        return VacuumIndexes(table, names[0] if names else None, dry_run)

    def _verify(self) -> VerifyIndexes:
        table = self._indexes_on_table()
        return VerifyIndexes(table, bool(self.take_word("deep")))

    def _index_on_table(self) -> tuple[TableName, str]:
        self.expect_word("index")
        name = self.take_name()
        return self.on_table(), name

    def _indexes_on_table(self) -> TableName:
        self.expect_word("indexes")
        return self.on_table()

    def _some_on_table(self) -> tuple[tuple[str, ...], TableName]:
        """INDEX a ON t, INDEXES a, b ON t; or INDEXES ON t: all."""
        if self.take_word("index", "indexes") == "":
            self.fail("expected INDEX or INDEXES")
        names: list[str] = []
        if self.here.word != "on" or self.next.word == "on":
            names.append(self.take_name())
            while self.take_sign(","):
                names.append(self.take_name())
        return tuple(names), self.on_table()

    def on_table(self) -> TableName:
        if not self.take_word("on", "in", "from"):
            self.fail("expected ON and a table")
        if self.here.word == "table" and not self.next.is_sign(".") and self.next.kind in ("word", "name"):
            self.advance()
        parts = [self.take_name()]
        while self.take_sign("."):
            parts.append(self.take_name())
        return TableName(tuple(parts))
