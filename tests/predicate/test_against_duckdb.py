"""A second opinion on evaluation: DuckDB, wherever it means the same as Spark.

Where the two differ Spark decides. The generator stays within one type a comparison, gives LIKE its escape, uses no casts, and
leaves out literals that DuckDB's parser does not take (`\\0` in strings, dates outside the years 1 to 9999). DIFFERENCES lists what
is known to differ, and is itself tested.
"""

from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from grebe.errors import InvalidPredicate, Unsupported
from grebe.predicate.bind import bind
from grebe.predicate.evaluate import evaluate
from grebe.predicate.parse import parse
from grebe.predicate.text import to_sql
from grebe.predicate.tree import (
    And,
    Cast,
    Column,
    Compare,
    Contains,
    EndsWith,
    Holds,
    In,
    IsNotNull,
    IsNull,
    Like,
    Literal,
    Not,
    Operator,
    Or,
    Predicate,
    StartsWith,
    Term,
)
from grebe.predicate.types import DATE, STRING, VOID
from tests.predicate.generators import FIELDS, Field, literal, tables

# In a row with i NULL, d 1.5, f 0.1, s 'a%', t ' yes ' and day 2020-01-01: ours, which is Spark's, and DuckDB's.
DIFFERENCES = [
    (r"s LIKE 'a\\%'", r"s LIKE 'a\%'", True, False),  # no escape character unless ESCAPE names one
    ("f = 0.1", "f = 0.1", False, True),  # a float beside a decimal is compared as a float
    ("CAST(d AS int) = 1", "CAST(d AS int) = 1", True, False),  # rounds where Spark truncates
    ("i < 1e30BD", "i < 1e30::DECIMAL(31,0)", True, None),  # Spark does not look at the integer
    ("CAST(t AS boolean)", "CAST(t AS boolean)", True, "error"),
    ("day = '2020'", "day = '2020'", True, "error"),
    ("1 IN ('1.0')", "1 IN ('1.0')", "error", True),
    ("TRUE = 1", "TRUE = 1", "error", True),
    ("d = 1 / 0", "d = 1 / 0", "error", False),
]
COLUMNS = [field for field in FIELDS if len(field.path) == 1 and not field.kind.name.startswith("timestamp")]
_SQL_NAMES = {"float": "REAL", "binary": "BLOB", "string": "VARCHAR"}


def duckdb_sql(node: Predicate | Term) -> str:
    """Predicates of the kinds generated here, in DuckDB's dialect."""
    match node:
        case And(below):
            return "(" + " AND ".join(map(duckdb_sql, below)) + ")"
        case Or(below):
            return "(" + " OR ".join(map(duckdb_sql, below)) + ")"
        case Not(inner):
            return f"(NOT {duckdb_sql(inner)})"
        case Holds(term):
            return duckdb_sql(term)
        case IsNull(term):
            return f"({duckdb_sql(term)} IS NULL)"
        case IsNotNull(term):
            return f"({duckdb_sql(term)} IS NOT NULL)"
        case Compare(operator, left, right):
            return (
                f"({duckdb_sql(left)} {'IS NOT DISTINCT FROM' if operator == '<=>' else operator} {duckdb_sql(right)})"
            )
        case In(term, values):
            return f"({duckdb_sql(term)} IN ({', '.join(map(duckdb_sql, values))}))"
        case Like(term, pattern, escape):
            return f"({duckdb_sql(term)} LIKE {_quoted(pattern)} ESCAPE {_quoted(escape)})"
        case StartsWith(term, text):
            return f"starts_with({duckdb_sql(term)}, {_quoted(text)})"
        case EndsWith(term, text):
            return f"ends_with({duckdb_sql(term)}, {_quoted(text)})"
        case Contains(term, text):
            return f"contains({duckdb_sql(term)}, {_quoted(text)})"
        case Column(path):
            return f'"{path[0]}"'
        case Cast(Literal(value), to):
            return f"CAST({_quoted(str(value))} AS {_SQL_NAMES.get(to.name, to)})"
        case Literal(None):
            return "NULL"
        case Literal(str(value), _):
            return _quoted(value)
        case Literal(bytes(value), _):
            return "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'::BLOB"
        case Literal(int(days), kind) if kind == DATE:
            return f"(DATE '1970-01-01' + {days})"
        case Literal(Decimal() as number, kind):
            return f"CAST('{number:f}' AS {kind})"
        case Literal(bool() | int() | float() as number, kind):
            return f"CAST('{number}' AS {_SQL_NAMES.get(kind.name, kind)})"
    raise TypeError(type(node).__name__)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _takes(term: Term) -> bool:
    match term:
        case Literal(str(text)):
            return "\0" not in text
        case Literal(int(days), kind) if kind == DATE:
            return -719_162 <= days < 2_932_896
    return True


def values(field: Field) -> st.SearchStrategy[Term]:
    known = [literal(field.kind, value) for value in field.pool]
    return st.sampled_from([Literal(None, VOID), *filter(_takes, known)])


_OPERATORS: list[Operator] = ["=", "<=>", "<>", "<", "<=", ">", ">="]
_PATTERNS = st.text("ab%_ä\n!", max_size=3).map(lambda text: text.replace("!", "!!"))
_PARTS = st.text("abä\n", max_size=2)


@st.composite
def simple(draw: st.DrawFn) -> Predicate:
    field = draw(st.sampled_from(COLUMNS))
    column = Column(field.path)
    kinds = ["compare", "compare", "in", "null", *(["like", "part"] if field.kind == STRING else [])]
    match draw(st.sampled_from(kinds)):
        case "compare":
            return Compare(draw(st.sampled_from(_OPERATORS)), column, draw(values(field)))
        case "in":
            return In(column, tuple(draw(st.lists(values(field), min_size=1, max_size=5))))
        case "like":
            return Like(column, draw(_PATTERNS), "!")
        case "part":
            return draw(st.sampled_from([StartsWith, EndsWith, Contains]))(column, draw(_PARTS))
    return draw(st.sampled_from([IsNull, IsNotNull]))(column)


def questions() -> st.SearchStrategy[Predicate]:
    def deeper(below: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
        several = st.lists(below, min_size=2, max_size=3).map(tuple)
        return st.one_of(several.map(And), several.map(Or), below.map(Not))

    return st.recursive(simple(), deeper, max_leaves=5)


def test_every_row_is_answered_as_by_duckdb() -> None:
    differences: list[str] = []
    asked_in_all = 0

    @seed(1)
    @settings(
        max_examples=20, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @given(tables(), st.lists(questions(), min_size=50, max_size=50, unique=True))
    def run(table: pa.Table, asked: list[Predicate]) -> None:
        nonlocal asked_in_all
        asked_in_all += len(asked)
        connection = duckdb.connect()
        connection.register("rows", table.append_column("row_number", pa.array(range(table.num_rows))))
        columns = ", ".join(duckdb_sql(predicate) for predicate in asked)
        theirs = connection.sql(f"SELECT {columns} FROM rows ORDER BY row_number").fetchall()
        for index, predicate in enumerate(asked):
            ours = evaluate(table, bind(predicate, table.schema)).to_pylist()
            if ours != [row[index] for row in theirs]:
                differences.append(to_sql(predicate))

    run()
    assert not differences
    assert asked_in_all >= 900


@pytest.mark.parametrize(("ours", "theirs", "our_answer", "their_answer"), DIFFERENCES)
def test_the_known_differences_are_what_they_are(
    ours: str, theirs: str, our_answer: object, their_answer: object
) -> None:
    table = pa.table(
        {
            "i": pa.array([None], pa.int32()),
            "d": [1.5],
            "f": pa.array([0.1], pa.float32()),
            "s": ["a%"],
            "t": [" yes "],
            "day": pa.array([18_262], pa.int32()).view(pa.date32()),
        }
    )
    try:
        answer = evaluate(table, bind(parse(ours), table.schema))[0].as_py()
    except (InvalidPredicate, Unsupported):
        answer = "error"
    assert answer == our_answer
    connection = duckdb.connect()
    connection.register("rows", table)
    try:
        [[other]] = connection.sql(f"SELECT {theirs} FROM rows").fetchall()
    except duckdb.Error:
        other = "error"
    assert other == their_answer
