"""SQL text becomes the tree that Spark's own grammar gives it."""

import pickle
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grebe.errors import InvalidPredicate
from grebe.predicate.parse import parse
from grebe.predicate.text import to_sql
from grebe.predicate.tree import (
    FALSE,
    NULL,
    TRUE,
    And,
    Arithmetic,
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
    Negative,
    Not,
    Opaque,
    Or,
    Predicate,
    StartsWith,
    Term,
    TruthOf,
)
from grebe.predicate.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    VOID,
    decimal,
)

A, B, C = Column(("a",)), Column(("b",)), Column(("c",))
ONE, TWO = Literal(1, INT), Literal(2, INT)
YES, NO, NOTHING = Literal(True, BOOLEAN), Literal(False, BOOLEAN), Literal(None, VOID)


def equals(right: Term) -> Predicate:
    return Compare("=", A, right)


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("1", ONE),
        ("-1", Literal(-1, INT)),
        ("- 1", Literal(-1, INT)),
        ("2147483647", Literal(2**31 - 1, INT)),
        ("2147483648", Literal(2**31, BIGINT)),
        ("-2147483648", Literal(-(2**31), INT)),
        ("-9223372036854775808", Literal(-(2**63), BIGINT)),
        ("9223372036854775808", Literal(Decimal(2**63), decimal(19, 0))),
        ("1L", Literal(1, BIGINT)),
        ("1l", Literal(1, BIGINT)),
        ("1S", Literal(1, SMALLINT)),
        ("-128Y", Literal(-128, TINYINT)),
        ("1.5", Literal(Decimal("1.5"), decimal(2, 1))),
        ("1.50", Literal(Decimal("1.50"), decimal(3, 2))),
        (".5", Literal(Decimal("0.5"), decimal(1, 1))),
        ("5.", Literal(Decimal(5), decimal(1, 0))),
        ("00.10", Literal(Decimal("0.10"), decimal(2, 2))),
        ("1.5BD", Literal(Decimal("1.5"), decimal(2, 1))),
        ("1e3BD", Literal(Decimal(1000), decimal(4, 0))),
        (
            "12345678901234567890123456789012345678BD",
            Literal(Decimal("12345678901234567890123456789012345678"), decimal(38, 0)),
        ),
        ("1e3", Literal(1000.0, DOUBLE)),
        ("1.5D", Literal(1.5, DOUBLE)),
        ("1e-3d", Literal(0.001, DOUBLE)),
        ("0.1F", Literal(0.10000000149011612, FLOAT)),
        ("'x'", Literal("x", STRING)),
        ('"x"', Literal("x", STRING)),
        ("'a''b'", Literal("a'b", STRING)),
        ("'a' 'b'", Literal("ab", STRING)),
        (r"'a\'b'", Literal("a'b", STRING)),
        (r"'\n\t\\\0\Z\x'", Literal("\n\t\\\0\x1ax", STRING)),
        (r"'\u00e4\U0001F426\101'", Literal("ä\U0001f426A", STRING)),
        (r"'\%\_'", Literal(r"\%\_", STRING)),
        (r"r'a\nb'", Literal(r"a\nb", STRING)),
        ("X'1F'", Literal(b"\x1f", BINARY)),
        ("x'1f2'", Literal(b"\x01\xf2", BINARY)),
        ("TRUE", YES),
        ("null", NOTHING),
        ("DATE '1970-01-02'", Literal(1, DATE)),
        ("date'1969-12'", Literal(-31, DATE)),
        ("DATE '+12345-01-01'", Literal(3_789_391, DATE)),
        ("TIMESTAMP '1970-01-01 00:00:01Z'", Literal(1_000_000, TIMESTAMP)),
        ("TIMESTAMP '1970-01-01 00:00:00+01:00'", Literal(-3_600_000_000, TIMESTAMP)),
        ("TIMESTAMP '1970-01-01'", Cast(Literal("1970-01-01", STRING), TIMESTAMP)),
        ("TIMESTAMP_LTZ '1970-01-01'", Cast(Literal("1970-01-01", STRING), TIMESTAMP)),
        ("TIMESTAMP_NTZ '1970-01-01 00:00:00.5'", Literal(500_000, TIMESTAMP_NTZ)),
    ],
)
def test_literals_have_spark_s_values_and_types(text: str, literal: Term) -> None:
    assert parse(f"a = {text}") == equals(literal)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a = 1", equals(ONE)),
        ("a == 1", equals(ONE)),
        ("a <> 1", Compare("<>", A, ONE)),
        ("a != 1", Compare("<>", A, ONE)),
        ("a <=> NULL", Compare("<=>", A, NOTHING)),
        ("a < b", Compare("<", A, B)),
        ("1 >= a", Compare(">=", ONE, A)),
        ("A = 1", Compare("=", Column(("A",)), ONE)),
        ("a.b.c = 1", Compare("=", Column(("a", "b", "c")), ONE)),
        ("`a.b`.`c``d` = 1", Compare("=", Column(("a.b", "c`d")), ONE)),
        ("1st = 1", Compare("=", Column(("1st",)), ONE)),
        ("größe = 1", Compare("=", Column(("größe",)), ONE)),
        ("date = 1", Compare("=", Column(("date",)), ONE)),
        ("(values = 1)", Compare("=", Column(("values",)), ONE)),
        ("a IN (1)", In(A, (ONE,))),
        ("a NOT IN (1, NULL, b)", Not(In(A, (ONE, NOTHING, B)))),
        ("a BETWEEN 1 AND 2", And((Compare(">=", A, ONE), Compare("<=", A, TWO)))),
        ("a NOT BETWEEN 1 AND 2", Not(And((Compare(">=", A, ONE), Compare("<=", A, TWO))))),
        ("a LIKE 'x%'", Like(A, "x%")),
        ("a NOT LIKE 'x%' ESCAPE '!'", Not(Like(A, "x%", "!"))),
        (r"a LIKE '\%'", Like(A, r"\%")),
        ("a LIKE NULL", NULL),
        ("a IS NULL", IsNull(A)),
        ("a IS NOT NULL", IsNotNull(A)),
        ("a IS TRUE", Compare("<=>", A, YES)),
        ("a IS NOT FALSE", Not(Compare("<=>", A, NO))),
        ("a IS UNKNOWN", IsNull(A)),
        ("a IS DISTINCT FROM 1", Not(Compare("<=>", A, ONE))),
        ("a IS NOT DISTINCT FROM 1", Compare("<=>", A, ONE)),
        ("a", Holds(A)),
        ("NOT a", Not(Holds(A))),
        ("! a = 1", Not(equals(ONE))),
        ("TRUE", TRUE),
        ("false OR null", Or((FALSE, NULL))),
        ("startswith(a, 'x')", StartsWith(A, "x")),
        ("EndsWith(a, 'x')", EndsWith(A, "x")),
        ("contains(a, 'x')", Contains(A, "x")),
        ("isnull(a)", IsNull(A)),
        ("isnotnull(a)", IsNotNull(A)),
        ("isnan(a)", Compare("<=>", A, Cast(Literal("NaN", STRING), DOUBLE))),
        ("CAST(a AS int) = 1", Compare("=", Cast(A, INT), ONE)),
        ("a::decimal(10, 2) = 1", Compare("=", Cast(A, decimal(10, 2)), ONE)),
        ("TRY_CAST(a AS long) = 1", Compare("=", Cast(A, BIGINT, "try"), ONE)),
        ("int(a) = double('1')", Compare("=", Cast(A, INT), Cast(Literal("1", STRING), DOUBLE))),
        ("a = 1 + 2 * -3", equals(Arithmetic("+", ONE, Arithmetic("*", TWO, Literal(-3, INT))))),
        ("a = -(1)", equals(Negative(ONE))),
        ("a = 7 DIV 2 % 2", equals(Arithmetic("%", Arithmetic("div", Literal(7, INT), TWO), TWO))),
        ("a = 1 -- the first\n /* and only */", equals(ONE)),
    ],
)
def test_each_form_has_its_tree(text: str, tree: Predicate) -> None:
    assert parse(text) == tree


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        ("a = 1 OR b = 1 AND c = 1", "a = 1 OR (b = 1 AND c = 1)"),
        ("NOT a = 1 AND b = 1", "(NOT (a = 1)) AND b = 1"),
        ("a = b IS NULL", "(a = b) IS NULL"),
        ("a = b < c", "(a = b) < c"),
        ("a = 1 IN (TRUE)", "(a = 1) IN (TRUE)"),
        ("a = 1 + 1", "a = (1 + 1)"),
        ("NOT a BETWEEN 1 AND 2 OR b", "(NOT (a BETWEEN 1 AND 2)) OR b"),
        ("a = -1::bigint", "a = CAST(-1 AS bigint)"),
        ("((a)) = ((1))", "a = 1"),
    ],
)
def test_operators_bind_as_in_spark(text: str, grouped: str) -> None:
    assert parse(text) == parse(grouped)


def test_comparisons_are_values_too() -> None:
    assert parse("(a = 1) IS NULL") == IsNull(TruthOf(equals(ONE)))
    assert parse("(a = 1) <=> b") == Compare("<=>", TruthOf(equals(ONE)), B)


@pytest.mark.parametrize(
    ("text", "opaque", "columns"),
    [
        ("length(a) = 1", "length(a)", [("a",)]),
        ("a + b = 2", "a + b", [("a",), ("b",)]),
        ("a || b = 'x'", "a || b", [("a",), ("b",)]),
        ("CASE WHEN a = 1 THEN b END = 1", "CASE WHEN a = 1 THEN b END", [("a",), ("b",)]),
        ("a RLIKE 'x'", "a RLIKE 'x'", [("a",)]),
        ("a ILIKE 'x%'", "a ILIKE 'x%'", [("a",)]),
        ("a LIKE b", "a LIKE b", [("a",), ("b",)]),
        ("a LIKE ANY ('x%', 'y')", "a LIKE ANY ('x%', 'y')", [("a",)]),
        ("a[0] = 1", "a[0]", [("a",)]),
        ("f(a).x = 1", "f(a).x", [("a",)]),
        ("a.b[1].c = 1", "a.b[1].c", [("a", "b")]),
        ("a IN (SELECT x FROM t)", "a IN (SELECT x FROM t)", [("a",), ("x",)]),
        ("a = (SELECT max(x) FROM t)", "(SELECT max(x) FROM t)", [("x",)]),
        ("a > current_date", "current_date", []),
        ("a > DATE 'today'", "DATE 'today'", []),
        ("a > INTERVAL '1' DAY", "INTERVAL '1' DAY", []),
        ("a = ~1", "~1", []),
        ("a = 1 & 2", "1 & 2", []),
        ("CAST(a AS array<array<int>>) IS NULL", "CAST(a AS array<array<int>>)", [("a",)]),
        ("-f(a) = 1", "-f(a)", [("a",)]),
        ("rand() < 0.5", "rand()", []),
        ("sum(a) OVER (PARTITION BY b) > 1", "sum(a) OVER (PARTITION BY b)", [("a",), ("b",)]),
    ],
)
def test_what_is_not_understood_is_opaque_with_its_text_and_columns(
    text: str, opaque: str, columns: list[tuple[str, ...]]
) -> None:
    assert to_opaque(parse(text)) == Opaque(opaque, tuple(columns))


def to_opaque(predicate: Predicate) -> Term:
    match predicate:
        case Compare(_, Opaque() as left, _):
            return left
        case Compare(_, _, Opaque() as right):
            return right
        case Holds(term) | IsNull(term):
            return term
    raise AssertionError(f"nothing opaque in {to_sql(predicate)}")


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        ("", 1, "expected a column"),
        ("a =", 4, "expected a column"),
        ("a = 1 b", 7, "expected AND, OR or the end"),
        ("a = 1)", 6, "expected AND, OR or the end"),
        ("(a = 1", 7, "expected )"),
        ("a IN 1", 6, "expected ("),
        ("a IN ()", 7, "expected a column"),
        ("a IS 1", 6, "expected NULL, TRUE"),
        ("a BETWEEN 1 OR 2", 13, "expected AND"),
        ("a = 'x", 5, "not closed"),
        ("a = `x", 5, "not closed"),
        ("a = 1; drop", 6, "means nothing"),
        ("a = 300Y", 5, "no tinyint"),
        ("a = 1.5L", 5, "no bigint"),
        ("a = 1e400D", 5, "beyond the range"),
        ("a = 123456789012345678901234567890123456789", 5, "at most 38 digits"),
        ("a = DATE '2024-02-30'", 10, "no date"),
        ("a = TIMESTAMP 'soon'", 15, "no timestamp"),
        ("a = X'1G'", 5, "hexadecimal"),
        (r"a LIKE 'x\\y'", 8, "escape character"),
        ("a LIKE 'x' ESCAPE '!!'", 19, "one character"),
        ("a = CASE WHEN b", 16, "expected END"),
        ("a = f(1", 8, "expected )"),
        ("a = f(b ==)", 5, "no expression of Spark SQL"),
        ("a = AND", 5, "expected a column"),
        ("a ! = 1", 3, "expected AND, OR or the end"),
        ("CAST(a AS decimal(50)) = 1", None, "precision"),
        ("(" * 3000 + "a" + ")" * 3000, None, "nested too deeply"),
    ],
)
def test_what_cannot_be_parsed_is_refused_with_its_position(text: str, position: int | None, problem: str) -> None:
    with pytest.raises(InvalidPredicate) as refused:
        parse(text)
    assert problem in str(refused.value)
    if position is not None:
        assert refused.value.code == "INVALID_PREDICATE_SYNTAX"
        assert f"at character {position}:" in str(refused.value)


def test_long_chains_need_no_deep_stack() -> None:
    parsed = parse(" OR ".join(f"a = {value}" for value in range(20_000)))
    assert isinstance(parsed, Or)
    assert len(parsed.predicates) == 20_000


PIECES = [
    "a",
    "b",
    ".",
    ",",
    "(",
    ")",
    "=",
    "<",
    ">",
    "!",
    "not",
    "and",
    "or",
    "in",
    "like",
    "between",
    "is",
    "null",
    "1",
    "1.5",
    "'x'",
    "`",
    "case",
    "end",
    "cast",
    "as",
    "int",
    "::",
]


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(max_size=30), st.lists(st.sampled_from(PIECES)).map(" ".join)))
def test_whatever_the_text_it_is_parsed_or_refused(text: str) -> None:
    try:
        parsed = parse(text)
    except InvalidPredicate:
        return
    assert parse(to_sql(parsed)) == parsed


def test_trees_travel_between_processes() -> None:
    tree = parse("a.b = 1.5 AND NOT (c LIKE 'x%' OR f(d) IN (DATE '2020-01-01', NULL))")
    assert pickle.loads(pickle.dumps(tree)) == tree
    assert hash(pickle.loads(pickle.dumps(tree))) == hash(tree)
