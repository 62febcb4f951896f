"""Statements on indexes: what is read from which text, what is left to Spark, and what is said of wrong ones."""

import time

import pytest

from grebe import Bloom, Covering, Layout, Lookup, MinMax, Sieve, Skipping, ValueList
from grebe.errors import GrebeError, InvalidIndex, InvalidStatement
from grebe.sql.parse import parse_statement, table_of
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

T = TableName(("t",))


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        (
            "CREATE INDEX n ON t USING covering (a, b) INCLUDE (c, d) WHERE p > 1 OPTIONS (buckets = 64)",
            CreateIndex(T, Covering("n", ["a", "b"], ["c", "d"], buckets=64, where="p > 1")),
        ),
        (
            "create index if not exists n on table db.t using LOOKUP (id);",
            CreateIndex(TableName(("db", "t")), Lookup("n", "id"), if_not_exists=True),
        ),
        ("CREATE OR REPLACE INDEX n ON t USING sieve (ts)", CreateIndex(T, Sieve("n", "ts"), replace=True)),
        (
            "CREATE INDEX n ON t USING sieve (ts) OPTIONS ('budget' = 0.05)",
            CreateIndex(T, Sieve("n", "ts", budget=0.05)),
        ),
        (
            "CREATE INDEX n ON t USING skipping (MIN_MAX(a), VALUE_LIST(b), BLOOM(c))",
            CreateIndex(T, Skipping("n", MinMax("a"), ValueList("b"), Bloom("c"))),
        ),
        ("CREATE INDEX n ON t USING skipping (a, b.c)", CreateIndex(T, Skipping("n", on=["a", "b.c"]))),
        ("CREATE INDEX n ON t USING skipping (*)", CreateIndex(T, Skipping("n", on="*"))),
        (
            "CREATE INDEX `my index` ON parquet.`/a b/t` USING covering (`x.y`, s.f)",
            CreateIndex(TableName(("parquet", "/a b/t")), Covering("my index", ["`x.y`", "s.f"])),
        ),
        (
            "CREATE INDEX n ON t -- a comment\n USING /* one more */ covering (a) WHERE s = 'OPTIONS (' AND b IN (1, 2) "
            "OPTIONS (lineage = false, buckets = null)",
            CreateIndex(T, Covering("n", "a", lineage=False, where="s = 'OPTIONS (' AND b IN (1, 2)")),
        ),
        (
            "CREATE INDEX n ON t USING layout INCLUDE (c) WHERE d > 1 OPTIONS (queries = 'a > 1; b = \\'x;y\\'')",
            CreateIndex(T, Layout("n", ["a > 1", "b = 'x;y'"], include="c", where="d > 1")),
        ),
        ("SHOW INDEXES", ShowIndexes(None)),
        ("/* all of */ SHOW INDEXES ON ice.db.t ;", ShowIndexes(TableName(("ice", "db", "t")))),
        ("SHOW INDEXES IN t", ShowIndexes(T)),
        ("SHOW INDEX HISTORY ON t", ShowHistory(T)),
        ("DESCRIBE INDEX n ON t", DescribeIndex(T, "n")),
        ("DESC INDEX n ON t", DescribeIndex(T, "n")),
        ("REFRESH INDEX n ON t", RefreshIndexes(T, ("n",))),
        ("REFRESH INDEX n ON t FULL", RefreshIndexes(T, ("n",), "full")),
        ("REFRESH INDEXES ON t QUICK", RefreshIndexes(T, (), "quick")),
        ("REFRESH INDEXES a, b ON t INCREMENTAL", RefreshIndexes(T, ("a", "b"))),
        ("REFRESH INDEX on ON on", RefreshIndexes(TableName(("on",)), ("on",))),
        ("OPTIMIZE INDEX n ON t FULL", OptimizeIndexes(T, ("n",), "full")),
        ("OPTIMIZE INDEXES ON t", OptimizeIndexes(T)),
        ("DROP INDEX n ON t", DropIndex(T, "n")),
        ("DROP INDEX IF EXISTS n ON t", DropIndex(T, "n", if_exists=True)),
        ("RESTORE INDEX n ON t", RestoreIndex(T, "n")),
        ("VACUUM INDEX n ON t", VacuumIndexes(T, "n")),
        ("VACUUM INDEXES ON t", VacuumIndexes(T)),
        ("VACUUM INDEX n ON t DRY RUN", VacuumIndexes(T, "n", dry_run=True)),
        ("vacuum indexes on t dry run", VacuumIndexes(T, dry_run=True)),
        ("CANCEL INDEX n ON t", CancelIndex(T, "n")),
        ("VERIFY INDEXES ON t DEEP", VerifyIndexes(T, deep=True)),
        ("REPAIR INDEXES ON t", RepairIndexes(T)),
        ("EXPLAIN INDEXES SELECT {} ? FROM t;\n", ExplainIndexes(" SELECT {} ? FROM t")),
        ("EXPLAIN /* why */ INDEXES SELECT '#' -- ;", ExplainIndexes(" SELECT '#' --")),
        ("/* a /* b */ /*+ c */ SHOW INDEXES", ShowIndexes(None)),
        ("-- a \\\n DROP INDEX n ON t\nSHOW INDEXES", ShowIndexes(None)),
        ("SHOW /*/ */ INDEXES /**/ ON t", ShowIndexes(T)),
        ("REFRESH INDEX n ON t; ;\n;", RefreshIndexes(T, ("n",))),
        ("-- why\nexplain indexes verbose SELECT 1", ExplainIndexes(" SELECT 1", verbose=True)),
    ],
)
def test_what_a_statement_says(text: str, statement: Statement) -> None:
    assert parse_statement(text) == statement


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "CREATE TABLE index (id INT)",
        "CREATE TABLE t AS SELECT index FROM i",
        "DROP TABLE index",
        "DESCRIBE index",
        "DESCRIBE TABLE index",
        "DESC index col",
        "DESCRIBE index PARTITION (a = 1)",
        "VACUUM index",
        "VACUUM index RETAIN 168 HOURS",
        "OPTIMIZE index WHERE a = 1 ZORDER BY (b)",
        "RESTORE index TO VERSION AS OF 3",
        "REFRESH index",
        "REFRESH TABLE index",
        "EXPLAIN SELECT * FROM index",
        "EXPLAIN EXTENDED SELECT indexes FROM t",
        "SHOW TABLES LIKE 'index'",
        "ALTER TABLE t ADD INDEX",
        "INSERT INTO index VALUES (1)",
        "SHOW TBLPROPERTIES index('a')",
        "DESCRIBE index $$",
        "EXPLAIN SELECT * FROM t WHERE a = ? -- no index a on t",
        "CREATE OR REPLACE TEMP VIEW v AS SELECT '#' AS a -- index a on b",
        "SELECT ${a}, 'index a on b', @c /* index a on b */",
        "VACUUM index /* index a on b",
        "/* /* */ CREATE INDEX n ON t USING lookup (a)",
    ],
)
def test_what_is_left_to_spark(text: str) -> None:
    assert parse_statement(text) is None


@pytest.mark.parametrize(
    ("text", "at", "says"),
    [
        ("CREATE INDEX ON t USING lookup (a)", "t USING", "expected ON"),
        ("CREATE INDEX n t USING lookup (a)", "t USING", "expected ON"),
        ("CREATE INDEX n ON t (a)", "(a)", "expected USING"),
        ("CREATE INDEX n ON t USING lookup (a", None, "too early"),
        ("CREATE INDEX n ON t USING lookup (a,)", ")", "expected a column"),
        ("CREATE INDEX n ON t USING lookup (a) nonsense", "nonsense", "too much"),
        ("CREATE INDEX n ON t USING covering (a) WHERE OPTIONS (buckets = 3)", "OPTIONS", "expected a condition"),
        ("CREATE INDEX n ON t USING covering (a) OPTIONS (bukets = 3)", "bukets", "there are: on, include, buckets"),
        ("CREATE INDEX n ON t USING covering (a) OPTIONS (buckets = many)", "many", "expected a number"),
        ("CREATE INDEX n ON t USING lookup ('a)", "'a)", "not closed"),
        ("CREATE INDEX n ON t USING covering (a) WHERE b = ?", "?", "means nothing"),
        ("DROP INDEX n ON t /* /* */", "/* /*", "a comment is opened"),
        ("REFRESH INDEX n", None, "expected ON"),
        ("REFRESH INDEX n;", ";", "expected ON"),
        ("REFRESH INDEX n ON t SLOWLY", "SLOWLY", "too much"),
        ("VACUUM INDEXES a, b ON t", None, "one index, or all"),
        ("SHOW INDEX n ON t", "n ON", "expected HISTORY"),
        ("EXPLAIN INDEXES ;", None, "expected a query"),
        ("DROP INDEX IF n ON t", "n ON", "expected EXISTS"),
    ],
)
def test_a_wrong_statement_is_told_where(text: str, at: str | None, says: str) -> None:
    with pytest.raises(InvalidStatement, match=says) as told:
        parse_statement(text)
    assert told.value.code == "INVALID_STATEMENT_SYNTAX"
    assert told.value.position == (len(text) if at is None else text.index(at))


@pytest.mark.parametrize(
    ("description", "code"),
    [
        ("covring (a)", "INVALID_INDEX_KIND"),
        ("covering", "INVALID_INDEX_OPTION"),
        ("lookup (a) WHERE b = 1", "INVALID_INDEX_OPTION"),
        ("lookup (MIN_MAX(a))", "INVALID_INDEX_OPTION"),
        ("skipping (TREE(a))", "INVALID_INDEX_SKETCH"),
        ("covering (a) OPTIONS (buckets = -1)", "INVALID_INDEX_BUCKETS"),
    ],
)
def test_a_wrong_index_is_told_at_its_kind(description: str, code: str) -> None:
    text = f"CREATE INDEX n ON t USING {description}"
    with pytest.raises(InvalidIndex) as told:
        parse_statement(text)
    assert (told.value.code, told.value.position) == (code, text.index("USING") + len("USING "))


@pytest.mark.parametrize(
    "start",
    [
        "/* line of a header */\n" * 24,
        "/* line of a header */\n" * 20_000,
        "-- line of a header\n" * 20_000,
        " " * 300_000,
        "/*" * 100_000,
        "/*" * 50_000 + "*/" * 50_000,
    ],
    ids=["header", "long header", "lines", "blanks", "open", "nested"],
)
@pytest.mark.parametrize(
    "statement", ["CREATE TEMP VIEW v AS SELECT 1 AS index", "SHOW INDEXES", "EXPLAIN INDEXES SELECT 1"]
)
def test_how_long_a_text_takes_grows_with_its_length_and_no_faster(start: str, statement: str) -> None:
    began = time.process_time()
    for text in (start + statement, statement + start, statement + start + "x"):
        _place_of_error(text)
    assert time.process_time() - began < 3


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("CREATE INDEX n ON h2.people (id)", TableName(("h2", "people"))),
        (
            "CREATE INDEX IF NOT EXISTS n ON TABLE h2.test.people USING btree (id) OPTIONS (a = ?)",
            TableName(("h2", "test", "people")),
        ),
        ("DROP INDEX n ON `h 2`.people ?", TableName(("h 2", "people"))),
        ("DROP INDEX n", None),
        ("SELECT 1 ON t", None),
    ],
)
def test_the_table_of_a_wrong_statement_is_known_as_far_as_it_can_be_read(text: str, table: TableName | None) -> None:
    assert table_of(text) == table


def test_no_text_makes_it_fail_otherwise() -> None:
    start = "CREATE OR REPLACE INDEX IF NOT EXISTS `n` ON parquet.`/x` "
    whole = start + "USING skipping (MIN_MAX(a), b) WHERE c = 'd' OPTIONS (on = 1)"
    words = whole.split(" ")
    cut = [whole[:end] for end in range(len(whole))]
    lacking = [" ".join(words[:at] + words[at + 1 :]) for at in range(len(words))]
    places = {text: _place_of_error(text) for text in (*cut, *lacking)}
    assert [text for text, place in places.items() if place is not None and place > len(text)] == []
    assert sum(place is not None for place in places.values()) > len(whole) // 2


def _place_of_error(text: str) -> int | None:
    try:
        parse_statement(text)
    except GrebeError as error:
        return error.position
    return None
