"""Only queries are explained and planned for advice: a command is refused before anything of it runs, wherever it is given."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

import grebe
from grebe.cli.main import main
from grebe.errors import GrebeError, InvalidStatement
from tests.spark.served import Served, serving, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core]

COMMANDS = (
    "DROP TABLE victim",
    "DROP TABLE IDENTIFIER('vic' || 'tim')",
    "INSERT INTO victim VALUES (9)",
    "INSERT INTO IDENTIFIER('victim') SELECT 9",
    "INSERT OVERWRITE victim SELECT 9",
    "INSERT OVERWRITE DIRECTORY '{folder}/out' USING parquet SELECT 9 AS a",
    "WITH x AS (SELECT 9) INSERT INTO victim SELECT * FROM x",
    "FROM victim INSERT INTO victim SELECT a INSERT INTO victim SELECT a + 1",
    "TRUNCATE TABLE victim",
    "CREATE TABLE other (a INT) USING parquet",
    "CREATE TABLE other USING parquet AS SELECT 1 AS a",
    "CREATE TEMPORARY VIEW other AS SELECT 1 AS a",
    "CREATE OR REPLACE TEMPORARY VIEW IDENTIFIER('other') AS SELECT 1 AS a",
    "ALTER TABLE victim RENAME TO other",
    "CACHE TABLE other AS SELECT 1 AS a",
    "ANALYZE TABLE victim COMPUTE STATISTICS",
    "SET spark.grebe.tried = yes",
    "SHOW TABLES",
    "EXPLAIN SELECT * FROM victim",
    "DECLARE VARIABLE tried INT DEFAULT 1",
    "EXECUTE IMMEDIATE 'DROP TABLE victim'",
    "EXECUTE IMMEDIATE 'SELECT 1'",
    "BEGIN DROP TABLE victim; END",
    "CREATE INDEX tried ON parquet.`{folder}/t` USING COVERING (id)",
    "DROP INDEX by_id ON parquet.`{folder}/t`",
    "EXPLAIN INDEXES DROP TABLE victim",
    "/* SELECT 1 */ -- a comment\n DROP TABLE victim",
)
SINCE_SPARK_4 = ("DECLARE", "EXECUTE", "BEGIN", "CALL")
FEW = (COMMANDS[0], COMMANDS[3], COMMANDS[6])
QUERIES = (
    "SELECT id FROM parquet.`{folder}/t` WHERE id = 3",
    "SELECT /*+ GREBE(without by_id) */ id FROM parquet.`{folder}/t` WHERE id = 3",
    "WITH x AS (SELECT * FROM parquet.`{folder}/t`) SELECT * FROM x WHERE id IN (SELECT id FROM x)",
    "VALUES (1), (2)",
    "TABLE victim",
    "FROM victim SELECT a",
    "SELECT * FROM IDENTIFIER('victim')",
    "(SELECT a FROM victim) UNION ALL (SELECT 1) ORDER BY 1 LIMIT 3",
    "SELECT * FROM range(3) PIVOT (count(*) FOR id IN (1, 2))",
    "SELECT a, explode(array(1, 2)) FROM victim TABLESAMPLE (50 PERCENT)",
    "SELECT * FROM victim, LATERAL (SELECT a + 1)",
    "SELECT 'DROP TABLE victim', \"INSERT INTO victim\"",
)
CALLS = (
    "SELECT java_method() FROM VALUES (1)",
    "SELECT Reflect() FROM VALUES (1)",
    "SELECT try_reflect() FROM VALUES (1)",
    "SELECT upper(java_method()) AS x FROM VALUES (1)",
    "SELECT * FROM victim WHERE a = (SELECT length(java_method()) FROM VALUES (1))",
    "SELECT * FROM victim WHERE EXISTS (SELECT `reflect`() FROM VALUES (1))",
    "WITH x AS (SELECT java_method() AS c FROM VALUES (1)) SELECT * FROM x",
    "WITH x AS (SELECT java_method() AS c FROM VALUES (1)) SELECT 1",
    "SELECT * FROM victim, LATERAL (SELECT java_method())",
    "SELECT count(*) FROM VALUES (1) GROUP BY java_method()",
    "SELECT 1 UNION ALL SELECT length(java_method()) FROM VALUES (1)",
    "SELECT 1 ORDER BY java_method()",
    "SELECT IDENTIFIER('java_' || 'method')() FROM VALUES (1)",
    "SELECT * FROM victim TIMESTAMP AS OF (SELECT java_method() FROM VALUES (1))",
    "SELECT * FROM victim TIMESTAMP AS OF (SELECT IDENTIFIER('java_' || 'method')() FROM VALUES (1))",
)
PIPED = "FROM victim |> WHERE a > 1 |> SELECT a"


@pytest.fixture(scope="module")
def served(spark: "SparkSession", folder: Path) -> Iterator[Served]:
    write(folder / "t", {"id": list(range(20)), "price": list(range(20))})
    spark.sql("CREATE TABLE victim (a INT) USING parquet")
    spark.sql("INSERT INTO victim VALUES (1), (2)")
    with serving(spark) as made:
        made.lake.table(str(folder / "t")).create(grebe.Covering("by_id", on="id", include=["price"]))
        yield made


def state(served: Served, folder: Path) -> list[Any]:
    """Return what the commands would change."""
    session = served.spark
    return [
        sorted(row.tableName for row in session.sql("SHOW TABLES").collect()),
        sorted(row.a for row in session.table("victim").collect()),
        sorted(path.name for path in folder.iterdir()),
        [info.name for info in served.lake.table(str(folder / "t")).indexes()],
        session.conf.get("spark.grebe.tried", "no"),
        session.catalog.isCached("victim"),
    ]


def asked(served: Served) -> dict[str, Callable[[str], object]]:
    """Return every call that takes the text of a query."""
    lake, table = served.lake, served.lake.table
    return {
        "why_not": lake.why_not,
        "what_if": lambda text: lake.what_if(text, grebe.Lookup("l", on="id")),
        "recommend": lambda text: lake.recommend(["SELECT a FROM victim WHERE a = 1", text]),
        "a view": lambda text: table("victim").create(grebe.View("v", text)),
        "EXPLAIN INDEXES": lambda text: served.spark.sql(f"EXPLAIN INDEXES {text}"),
    }


def test_a_command_is_refused_and_nothing_of_it_runs(served: Served, folder: Path) -> None:
    from pyspark.errors import ParseException

    before = state(served, folder)
    for command in COMMANDS:
        # Spark 3.5 cannot parse some of them.
        newer = command.startswith(SINCE_SPARK_4) and served.spark.version < "4"
        with pytest.raises(
            ParseException if newer else InvalidStatement, match="SYNTAX_ERROR" if newer else "NOT_A_QUERY"
        ):
            served.lake.explain(command.format(folder=folder))
    assert state(served, folder) == before


@pytest.mark.parametrize("name", ["why_not", "what_if", "recommend", "a view", "EXPLAIN INDEXES"])
def test_no_call_that_takes_a_query_runs_a_command(served: Served, folder: Path, name: str) -> None:
    from pyspark.errors import AnalysisException

    ask = asked(served)[name]
    before = state(served, folder)
    for command in FEW:
        with pytest.raises((GrebeError, AnalysisException), match="NOT_A_QUERY"):
            ask(command)
    assert state(served, folder) == before


def test_a_query_with_a_command_behind_it_is_no_query(served: Served, folder: Path) -> None:
    from pyspark.errors import ParseException

    before = state(served, folder)
    with pytest.raises(ParseException):
        served.lake.explain("SELECT 1; DROP TABLE victim")
    assert state(served, folder) == before


@pytest.mark.parametrize("name", ["explain", "why_not", "what_if", "recommend", "a view", "EXPLAIN INDEXES"])
def test_no_text_calls_a_java_method_by_its_name(served: Served, name: str) -> None:
    """Spark's optimizer evaluates projections of constants."""
    from pyspark.errors import AnalysisException

    system = served.spark._jvm.java.lang.System  # type: ignore[union-attr] # there is one
    system.clearProperty("grebe.canary")
    call = "('java.lang.System', 'setProperty', 'grebe.canary', 'yes')"
    for text in CALLS:
        if served.spark.version < "4" and ("try_reflect" in text or "TIMESTAMP AS OF" in text):
            continue  # Spark 3.5 does not know the one, and parses no subquery in the other
        with pytest.raises(
            (GrebeError, AnalysisException), match=r"INVALID_STATEMENT_METHOD_CALL|INVALID_STATEMENT_NOT_A_QUERY"
        ):
            (served.lake.explain if name == "explain" else asked(served)[name])(text.replace("()", call))
        assert system.getProperty("grebe.canary") is None, text


def test_what_only_sounds_like_a_call_is_explained(served: Served) -> None:
    for text in ("SELECT 1 AS reflect", "SELECT 'java_method(a)'", "SELECT reflect FROM VALUES (1) AS t(reflect)"):
        served.lake.explain(text)


def test_a_query_is_explained_in_whatever_form(served: Served, folder: Path) -> None:
    for query in (*QUERIES, *([] if served.spark.version < "4" else [PIPED])):
        served.lake.explain(query.format(folder=folder))
    told = served.spark.sql(f"EXPLAIN INDEXES {QUERIES[0].format(folder=folder)}").first()
    assert told is not None
    assert "by_id" in told.plan


def test_the_result_of_a_command_is_not_explained(served: Served) -> None:
    shown = served.spark.sql("SHOW TABLES")
    with pytest.raises(InvalidStatement, match="NOT_A_QUERY"):
        served.lake.explain(shown)
    with pytest.raises(InvalidStatement, match="NOT_A_QUERY"):
        served.lake.what_if(shown, grebe.Lookup("l", on="a"))
    served.lake.explain(shown.filter("isTemporary"))


def test_the_command_line_runs_no_command_either(served: Served, folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "queries.sql"
    file.write_text("SELECT a FROM victim;\nINSERT INTO victim VALUES (7)")
    before = state(served, folder)
    for arguments in (
        ["explain", "DROP TABLE victim"],
        ["why-not", "DROP TABLE victim"],
        ["what-if", "DROP TABLE victim", "--kind", "lookup", "--on", "a"],
        ["recommend", "--queries", str(file)],
    ):
        told = CliRunner().invoke(main, arguments)
        assert told.exit_code == 1, told.output
        assert "INVALID_STATEMENT_NOT_A_QUERY" in told.output
    assert state(served, folder) == before
