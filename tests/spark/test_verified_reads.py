"""The setting `verify_index_data`."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import grebe
from tests.spark.flips import Flip, files_of, forget, outcome, rows
from tests.spark.served import LENIENT, serving, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.core, pytest.mark.xdist_group("spark verified reads")]


@pytest.mark.parametrize("verified", [True, False])
def test_only_the_setting_leaves_out_the_comparison(spark: "SparkSession", tmp_path: Path, verified: bool) -> None:
    """The flipped bit is in the name of the program that wrote the file, which nobody reads."""
    write(tmp_path / "t", rows(0))
    config = replace(LENIENT, verify_index_data=verified)
    with serving(spark, config) as lake:
        lake.lake.table(str(tmp_path / "t")).create(grebe.Covering("by_k", on="k", include=["v"], buckets=1))
        lake.view("t", tmp_path / "t")
        query = "SELECT k, sum(v) FROM t GROUP BY k"
        expected = lake.same(query, "by_k").rows
        (file,) = [one for one in files_of(tmp_path, "by_k") if one.name.startswith("part-")]
        place = file.read_bytes().rindex(b"parquet-mr")
        forget(lake)
        with Flip("by_k", file, "footer", place, 0).done():
            assert outcome(lake, query, expected, "by_k") == ("error" if verified else "right")
