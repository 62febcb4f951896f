"""What a view stores, as the log remembers it: tables, what holds of their rows, columns, and what is summed up of a group."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from grebe.errors import CorruptIndex, GrebeError
from grebe.files import canonical_uri
from grebe.files.untrusted import FOREIGN
from grebe.formats import Column, Reading
from grebe.formats.spark_types import type_json, type_text
from grebe.indexes import where
from grebe.indexes.view.expressions import parsed
from grebe.indexes.view.nodes import Refused, is_local_time
from grebe.indexes.view.trees import Tree, attempts_in, check_tree, columns_in
from grebe.predicate.tree import Predicate

_MERGES = ("sum", "min", "max")
ROWS = "count_of_rows"
"""Of a view that groups: how many rows a group has."""


def column_of(uri: str, name: str) -> str:
    """What conditions over several tables call a column."""
    return f"{uri}.{name}"


@dataclass(frozen=True, slots=True)
class Base:
    """A table of the view. `files` names its files as they were, and is empty for the first table, whose files the log knows."""

    uri: str
    reading: Reading
    files: str = ""


def same_files(one: str, other: str) -> bool:
    """Compare two digests of file lists: by paths, sizes and times, and by the facts of the files where both digests have them."""
    (times, _, facts), (other_times, _, other_facts) = one.partition("."), other.partition(".")
    return times == other_times and (not facts or not other_facts or facts == other_facts)


def by_times(digest: str) -> str:
    """Return a digest of a file list without the facts that `identity="times"` leaves out."""
    return digest.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Condition:
    tree: Tree
    sql: str
    holds: str = ""
    """The same as a predicate over columns that are named by `column_of`, as text; empty if it is none that could be told so."""


@dataclass(frozen=True, slots=True)
class Key:
    """A column: what is grouped by, or, of a view that does not group, any."""

    name: str
    """In the content."""
    tree: Tree
    sql: str
    type: str
    """Spark's, as text."""


@dataclass(frozen=True, slots=True)
class Measure:
    """What is kept of a group: `merge` says how two of them become one (`sum`, `min`, `max`)."""

    name: str
    merge: str
    sql: str
    """With the function."""
    type: str


@dataclass(frozen=True, slots=True)
class Function:
    """An aggregate of the query: as the tree of its function, and the measures that it is made of again."""

    tree: Tree
    what: str
    """`sum`, `count`, `average`, `min` or `max`."""
    measures: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Definition:
    text: str
    """For people."""
    bases: tuple[Base, ...]
    where: tuple[Condition, ...]
    keys: tuple[Key, ...]
    grouped: bool
    measures: tuple[Measure, ...]
    functions: tuple[Function, ...]
    settings: Mapping[str, str]
    """Of the session whose words these are: expressions mean something else under others."""

    @property
    def fields(self) -> tuple[tuple[str, str], ...]:
        """Names and types of the content's columns, without lineage."""
        keys = tuple((one.name, one.type) for one in self.keys)
        return (*keys, *((one.name, one.type) for one in self.measures))

    @property
    def trees(self) -> tuple[Tree, ...]:
        held: tuple[Condition | Key | Function, ...] = (*self.where, *self.keys, *self.functions)
        return tuple(one.tree for one in held)

    @property
    def has_local_times(self) -> bool:
        """Tell whether a timestamp stands in it as the local time of a zone that it does not name, as views of release 0.1.0 have
        them."""
        held: tuple[Condition | Key | Measure, ...] = (*self.where, *self.keys, *self.measures)
        return any(is_local_time(parsed(one.sql, len(self.bases), True)) for one in held)

    def reads(self, table: int = 0) -> frozenset[str]:
        """Columns of one of the tables."""
        return frozenset(name for tree in self.trees for number, name in columns_in(tree) if number == table)

    def predicate(self, condition: Condition) -> Predicate | None:
        """What is understood of a condition."""
        if not condition.holds:
            return None
        columns = tuple(
            (column_of(base.uri, one.name), one.type) for base in self.bases for one in base.reading.columns
        )
        return _recalled(condition.holds, columns)

    def to_dict(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "bases": [{"uri": one.uri, "reading": one.reading.to_dict(), "files": one.files} for one in self.bases],
            "where": [{"tree": one.tree, "sql": one.sql, "holds": one.holds} for one in self.where],
            "keys": [{"name": one.name, "tree": one.tree, "sql": one.sql, "type": one.type} for one in self.keys],
            "grouped": self.grouped,
            "measures": [
                {"name": one.name, "merge": one.merge, "sql": one.sql, "type": one.type} for one in self.measures
            ],
            "functions": [
                {"tree": one.tree, "what": one.what, "measures": list(one.measures)} for one in self.functions
            ],
            "settings": dict(self.settings),
        }

    def check(self) -> None:
        """Raise `Refused` for an expression that no view may hold, and `TypeError` or `ValueError` for what is no definition."""
        tables = len(self.bases)
        for text in (*(one.sql for one in self.where), *(one.sql for one in self.keys)):
            parsed(text, tables)
        for one in self.measures:
            parsed(one.sql, tables, True)
            if one.merge not in _MERGES:
                raise ValueError(f"a measure that is merged by {str(one.merge)[:60]!r}")
        texts = (
            self.text,
            *(text for base in self.bases for text in (base.uri, base.files)),
            *(text for name, kind in self.fields for text in (name, kind)),
            *(one.holds for one in self.where),
            *(text for pair in self.settings.items() for text in pair),
        )
        if not all(isinstance(text, str) for text in texts) or not isinstance(self.grouped, bool):
            raise TypeError("what should be text is none")
        if not self.bases or any("://" not in one.uri or canonical_uri(one.uri) != one.uri for one in self.bases):
            raise ValueError("a table without a canonical URI")
        for _, kind in self.fields:
            type_text(type_json(kind))
        names = [name.lower() for name, _ in self.fields]
        measures = {one.name for one in self.measures}
        if len(set(names)) < len(names) or not measures.issuperset(
            name for one in self.functions for name in one.measures
        ):
            raise ValueError("columns that are there twice, or not at all")
        for tree in self.trees:
            check_tree(tree, tables)
            if attempts_in(tree):
                raise Refused("an operation such as try_add or try_sum")

    @classmethod
    def from_dict(cls, index: str, known: Mapping[str, Any]) -> "Definition":
        """Raises `CorruptIndex` for what is no definition, and for expressions that no view may hold: they are never executed."""
        try:
            made = cls(
                text=known["text"],
                bases=tuple(
                    Base(one["uri"], Reading.from_dict(one["reading"]), one["files"]) for one in known["bases"]
                ),
                where=tuple(Condition(one["tree"], one["sql"], one["holds"]) for one in known["where"]),
                keys=tuple(Key(one["name"], one["tree"], one["sql"], one["type"]) for one in known["keys"]),
                grouped=known["grouped"],
                measures=tuple(
                    Measure(one["name"], one["merge"], one["sql"], one["type"]) for one in known["measures"]
                ),
                functions=tuple(
                    Function(one["tree"], one["what"], tuple(one["measures"])) for one in known["functions"]
                ),
                settings=known["settings"],
            )
            made.check()
        except Refused as refused:
            raise CorruptIndex(
                f"what the log says of view {index} holds {refused}, which no view may hold; nothing of it was executed. Delete "
                "the view, and create it anew",
                detail="VIEW_EXPRESSION",
            ) from refused
        except (*FOREIGN, GrebeError) as lacking:
            raise CorruptIndex(
                f"what the log says of view {index} does not fit together ({lacking}); create it anew", detail="SPEC"
            ) from lacking
        return made


@lru_cache(maxsize=256)
def _recalled(text: str, columns: tuple[tuple[str, str], ...]) -> Predicate:
    reading = Reading("parquet", (), tuple(Column(name, kind) for name, kind in columns))
    return where.recalled(text, reading)
