"""Lake tables on a real S3 server: listed and read without Spark, indexed and queried in Spark."""

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import grebe
from grebe.clock import SYSTEM
from testbed.s3 import S3Server
from testbed.spark import configured, use_s3
from tests.lakes.formats import HERE
from tests.spark.served import Served

if TYPE_CHECKING:
    pass

pytestmark = [
    pytest.mark.spark,
    pytest.mark.xdist_group("lakes delta"),
    pytest.mark.skipif("delta" not in HERE, reason="Delta Lake and Iceberg have no runtime for this Spark"),
]


def test_a_delta_table(served: Served, s3_server: S3Server) -> None:
    from deltalake import DeltaTable, write_deltalake

    use_s3(served.spark, s3_server)
    uri, options = s3_server.uri(f"lake {SYSTEM.new_id()[:8]}/orders"), s3_server.storage_options
    place = uri.replace(" ", "%20")
    for start in (0, 100, 200):
        ids = pa.array(range(start, start + 100), pa.int64())
        write_deltalake(place, pa.table({"id": ids, "x": ids}), mode="append", storage_options=options)
    served.lake.table(uri, format="delta").create(
        grebe.Lookup("l", on="id"), grebe.Covering("c", on="x", include=["id"])
    )
    DeltaTable(place, storage_options=options).delete("id = 7")
    for version, rows in ((None, 0), (2, 1)):
        table = grebe.open(uri, format="delta", version=version, storage_options=options)
        assert table.get("id", 7).num_rows == rows
        assert table.get("id", 207).to_pylist() == [{"id": 207, "x": 207}]
        assert table.files("id = 207").index == "l"
    assert grebe.open(uri, storage_options=options).count() == 299
    seen = served.same_rows(f"SELECT x, count(*) FROM delta.`{uri.replace('s3://', 's3a://')}` GROUP BY x")
    assert seen.used == ["c"]


def test_an_iceberg_table(served: Served, s3_server: S3Server) -> None:
    use_s3(served.spark, s3_server)
    uri = s3_server.uri(f"ice{SYSTEM.new_id()[:8]}")
    catalog = "spark.sql.catalog.far"
    settings = {
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "hadoop",
        f"{catalog}.warehouse": uri.replace("s3://", "s3a://"),
    }
    with configured(served.spark, settings):
        served.spark.sql("CREATE TABLE far.db.t (id BIGINT, x BIGINT) USING iceberg")
        for start in (0, 100, 200):
            served.spark.sql(f"INSERT INTO far.db.t SELECT id, id FROM range({start}, {start + 100})")
        served.lake.table("far.db.t").create(grebe.Lookup("l", on="id"), grebe.Covering("c", on="x", include=["id"]))
        served.spark.sql("DELETE FROM far.db.t WHERE id = 7")
        assert served.same_rows("SELECT x, count(*) FROM far.db.t GROUP BY x").used == ["c"]
    table = grebe.open(f"{uri}/db/t", storage_options=s3_server.storage_options)
    assert (table.get("id", 7).num_rows, table.get("id", 207).num_rows) == (0, 1)
    assert table.files("id = 207").index == "l"
