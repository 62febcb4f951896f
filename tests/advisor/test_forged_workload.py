"""Forged workload blocks: no text of theirs reaches Spark's parser, and no table is opened that the log may not name."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import grebe
from grebe.advisor.workload import blocks
from grebe.advisor.workload.observed import Observed, Scan, to_table
from grebe.clock import SYSTEM
from grebe.errors import GrebeError, InvalidStatement
from grebe.files import canonical_uri
from grebe.log.location import beside
from grebe.session.advice import may_name, named_tables
from grebe.session.lake import Lake
from grebe.store.opening import open_store
from tests.spark.served import Served, serving, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core]
CALL = "java_method('java.lang.System', 'setProperty', 'grebe.canary', 'yes')"


@pytest.fixture
def served(spark: "SparkSession") -> Iterator[Served]:
    with serving(spark, grebe.Config(record_workload=True)) as made:
        yield made


@pytest.fixture
def sales(tmp_path: Path) -> str:
    write(tmp_path / "hr", {"c": [4711]})
    return write(tmp_path / "lake" / "sales", {"c": list(range(1000))})


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is opened for advice."""
    found: list[str] = []
    real = Lake._opened_for_advice

    def spy(lake: Lake, name: str) -> object:
        found.append(name)
        return real(lake, name)

    monkeypatch.setattr(Lake, "_opened_for_advice", spy)
    return found


def _forge(table: str, *named: str) -> None:
    """A block in the log of a table, with a query of others."""
    query = Observed(
        query="q",
        at_ms=1_700_000_000_000,
        client="c",
        origin="spark",
        call="query",
        shape="s",
        digest="d",
        tables=named,
        indexes=(),
        milliseconds=5.0,
        limit=None,
        hashed=False,
        scans=(),
    )
    queries = [
        replace(query, query=f"q{n}", digest=f"d{n}", scans=(Scan(table=one, columns=("c",), predicate="", tree=None),))
        for n, one in enumerate(named)
    ]
    blocks.write(open_store(beside(canonical_uri(table))), to_table(queries), SYSTEM)


def test_a_forged_block_runs_nothing_and_opens_nothing_elsewhere(
    served: Served, sales: str, tmp_path: Path, opened: list[str]
) -> None:
    evil = f"{sales}` UNION ALL SELECT {CALL} FROM VALUES (1) --"
    shutil.copytree(sales, evil)
    system = served.spark._jvm.java.lang.System  # type: ignore[union-attr] # there is one
    system.clearProperty("grebe.canary")
    hr = canonical_uri(str(tmp_path / "hr"))
    _forge(
        sales,
        canonical_uri(evil),
        hr,
        f"{canonical_uri(sales)}/{{../..,y}}/hr",
        f"{canonical_uri(sales)}/../../hr",
        "t",
    )
    served.lake.met(sales)
    with pytest.raises(InvalidStatement, match="there is no query in it"):
        served.lake.recommend()
    served.lake.table(sales).auto()
    assert system.getProperty("grebe.canary") is None
    assert opened == []


def test_queries_of_the_logs_own_table_and_of_tables_that_were_met_are_advised_on(
    served: Served, sales: str, tmp_path: Path, opened: list[str]
) -> None:
    hr = str(tmp_path / "hr")
    _forge(sales, canonical_uri(sales), canonical_uri(hr))
    served.lake.met(sales)
    served.lake.recommend()
    assert canonical_uri(sales) in opened
    assert canonical_uri(hr) not in opened
    served.lake.met(hr)
    served.lake.recommend()
    assert canonical_uri(hr) in opened


def test_a_root_that_is_allowed_may_be_named(
    spark: "SparkSession", sales: str, tmp_path: Path, opened: list[str]
) -> None:
    hr = canonical_uri(str(tmp_path / "hr"))
    _forge(sales, hr)
    with serving(spark, grebe.Config(record_workload=True, allowed_roots=(str(tmp_path),))) as served:
        served.lake.met(sales)
        served.lake.recommend()
    assert hr in opened


@pytest.mark.parametrize("odd", [f"` UNION ALL SELECT {CALL} FROM VALUES (1) --", "-${system:user.name}", "-[a-z]*"])
def test_a_path_that_cannot_be_quoted_stands_in_no_text(served: Served, sales: str, odd: str) -> None:
    source = served.lake.table(sales).newest
    with named_tables(served.spark, lambda uri: replace(source, uri=uri)) as named:
        called = named(source.uri + odd)
        assert called is not None
        assert called.startswith("grebe_advice_")
        assert served.spark.sql(f"SELECT c FROM {called}").count() == 1000
        assert named(source.uri) == f"parquet.`{source.uri}`"
    assert not [one for one in served.spark.sql("SHOW VIEWS").collect() if one.viewName.startswith("grebe_advice")]


def test_a_log_of_an_object_store_may_name_its_bucket_and_no_other() -> None:
    own = ("s3://lake/sales",)
    assert may_name("s3://lake/shops", own, (), ())
    assert may_name("s3://other/hr", own, ("s3://other/hr",), ())
    assert may_name("s3://other/hr", own, (), ("s3://other",))
    for table in (
        "s3://other/hr",
        "file:///etc",
        "s3a://lake/shops",
        "s3://lake/*",
        "s3://lake/a/../b",
        "hr.salaries",
        "",
    ):
        assert not may_name(table, own, (), ()), table
    assert not may_name("s3://lake/shops", (), (), ())


def test_a_table_that_is_gone_is_left_out(served: Served) -> None:
    def gone(uri: str) -> object:
        raise GrebeError(uri)

    with named_tables(served.spark, gone) as named:  # type: ignore[arg-type]
        assert named("s3://lake/t") is None
