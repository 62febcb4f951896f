"""Text into statements, by the lexer of predicates: comments, quoted names and any case are Spark's."""

import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from grebe.errors import InvalidIndex, InvalidStatement
from grebe.indexes.kind import Kind
from grebe.indexes.making import fields_of, kind_made
from grebe.indexes.registry import kind_named
from grebe.predicate.cursor import Cursor
from grebe.predicate.lexer import Token, tokens
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

_EXPLAIN = re.compile(
    r"(?:\s|--[^\n]*\n|/\*.*?\*/)*EXPLAIN\s+INDEXES\b(?P<verbose>\s+(?:VERBOSE|EXTENDED)\b)?(?P<query>.*)",
    re.IGNORECASE | re.DOTALL,
)
_END = re.compile(r"[\s;]+\Z")
_ALWAYS_OURS = ("create", "drop", "show", "cancel", "verify", "repair")
"""Words before INDEX that no statement of Spark's begins with. (Of CREATE and DROP INDEX, Spark's own are for databases.)"""
_CLAUSES = ("include", "where", "options")
_OPTION_WORDS = {"true": True, "false": False, "null": None}


def parse_statement(text: str) -> Statement | None:
    """None: this is no statement on indexes. Raises `InvalidStatement`, and what the kinds raise."""
    explained = _EXPLAIN.fullmatch(text)
    if explained is not None:
        return _explain(explained)
    body = _END.sub("", text)
    try:
        cut = tokens(body, _error)
    except InvalidStatement:
        # Another extension's words may be none of ours.
        if re.search(r"\bINDEX(ES)?\s+\S+\s+ON\b", body, re.IGNORECASE) is None:
            return None
        raise
    return _Statements(body, cut).statement() if _is_ours(cut) else None


def _explain(found: re.Match[str]) -> ExplainIndexes:
    query = _END.sub("", found["query"])
    if not query.strip():
        raise _error(found.end(), "expected a query")
    return ExplainIndexes(query, found["verbose"] is not None)


def _error(position: int, problem: str) -> InvalidStatement:
    return InvalidStatement(f"cannot parse the statement: {problem}", position=position, detail="SYNTAX")


def _is_ours(cut: list[Token]) -> bool:
    """A table may be named `index`, so that `VACUUM index` is Delta's and `DESCRIBE index` is Spark's."""
    words = [token.word for token in cut[:5]] + [""] * 4
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
        table = self._on_table()
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
            return ShowHistory(self._on_table())
        self.expect_word("indexes")
        return ShowIndexes(self._on_table() if self.here.word in ("on", "in", "from") else None)

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
        return DropIndex(self._on_table(), name, if_exists)

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
        return self._on_table(), name

    def _indexes_on_table(self) -> TableName:
        self.expect_word("indexes")
        return self._on_table()

    def _some_on_table(self) -> tuple[tuple[str, ...], TableName]:
        """INDEX a ON t, INDEXES a, b ON t; or INDEXES ON t: all."""
        if self.take_word("index", "indexes") == "":
            self.fail("expected INDEX or INDEXES")
        names: list[str] = []
        if self.here.word != "on" or self.next.word == "on":
            names.append(self.take_name())
            while self.take_sign(","):
                names.append(self.take_name())
        return tuple(names), self._on_table()

    def _on_table(self) -> TableName:
        if not self.take_word("on", "in", "from"):
            self.fail("expected ON and a table")
        if self.here.word == "table" and not self.next.is_sign(".") and self.next.kind in ("word", "name"):
            self.advance()
        parts = [self.take_name()]
        while self.take_sign("."):
            parts.append(self.take_name())
        return TableName(tuple(parts))
