"""A lake with indexes, a Spark that uses them, and DuckDB as a witness: their answers to a query are the same."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import grebe
from testbed.answers import Answer, Order, differences, of_duckdb, of_spark, order_of, without_limit
from testbed.spark import configured

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from pyspark.sql import SparkSession

NO_BROADCAST = {"spark.sql.autoBroadcastJoinThreshold": "-1"}
SOME_BROADCAST = {"spark.sql.autoBroadcastJoinThreshold": str(64 << 10)}
"""As much as Spark's default is at a scale of about 1: nation, region and supplier are broadcast, larger tables are not."""
NOT_ADAPTIVE = {"spark.sql.adaptive.enabled": "false"}


@dataclass(frozen=True)
class Workload:
    spark: "SparkSession"
    lake: "grebe.Lake"
    duckdb: "DuckDBPyConnection"
    in_spark: Callable[[str], str] = str
    """How Spark spells a query of DuckDB's."""

    def same_answers(self, sql: str, settings: Iterable[Mapping[str, str]], plain: bool = True) -> None:
        """DuckDB's answer is Spark's under each of the settings with indexes and (under the first of them) `plain`, without."""
        text = self.in_spark(sql)
        expected = of_duckdb(self.duckdb, sql)
        order = order_of(text, expected.columns)
        if order.limit is not None and not order.complete:
            sql, text = without_limit(sql), without_limit(text)
            expected = of_duckdb(self.duckdb, sql)
            order = order_of(text, expected.columns)
        for number, some in enumerate(settings):
            with configured(self.spark, some):
                if plain and number == 0:
                    self.lake.enabled = False
                    unaided = of_spark(self.spark, text)
                    self._must_be(unaided, expected, order, "Spark without indexes")
                self.lake.enabled = True
                self._must_be(
                    of_spark(self.spark, text), unaided if plain else expected, order, f"Spark with indexes, {some}"
                )

    @staticmethod
    def _must_be(answer: Answer, expected: Answer, order: Order, whose: str) -> None:
        if wrong := differences(answer, expected, order):
            raise AssertionError(f"{whose}: " + "\n".join(wrong))

    def used(self, sql: str, settings: Mapping[str, str]) -> list[str]:
        """The indexes that a query uses."""
        self.lake.enabled = True
        with configured(self.spark, settings):
            return list(self.lake.explain(self.spark.sql(self.in_spark(sql))).to_dict()["used"])
