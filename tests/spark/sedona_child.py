"""Run by `test_sedona` in a process of its own: a Spark with Apache Sedona on its class path, and its questions about a table."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import grebe
from testbed import maven
from testbed.spark import SHORT_LIVED, spark_session

SEDONA = "org.apache.sedona:sedona-spark-shaded-3.5_2.12:1.8.0"
TRIANGLE = "ST_GeomFromText('POLYGON((15 45, 25 45, 20 55, 15 45))')"
QUESTIONS = [
    f"ST_Within(ST_Point(lon, lat), {TRIANGLE})",
    f"ST_Contains({TRIANGLE}, ST_Point(lon, lat)) AND id % 2 = 0",
    "ST_DWithin(ST_Point(lon, lat), ST_Point(20.0, 50.0), 1.5)",
    f"ST_Intersects(ST_GeomFromWKB(geom), {TRIANGLE})",
    f"NOT ST_Within(ST_Point(lon, lat), {TRIANGLE})",
    "ST_DWithin(ST_Point(lon, lat), ST_Point(20.0, 50.0), 150000.0, true)",
]


def write(folder: Path) -> None:
    """A region for each file; the geometry is the point, in WKB."""
    folder.mkdir()
    random = np.random.default_rng(1)
    for number in range(8):
        x, y = random.normal(number * 20 - 80, 2, 1000), random.normal(50, 5, 1000)
        wkb = [b"\1\1\0\0\0" + np.array(point, "<f8").tobytes() for point in zip(x, y, strict=True)]
        rows = {"id": np.arange(1000) + 1000 * number, "lon": x, "lat": y, "geom": pa.array(wkb, pa.binary())}
        pq.write_table(pa.table(rows), folder / f"{number}.parquet")


def main(folder: Path) -> None:
    write(folder / "t")
    jars = [*maven.fetch([SEDONA], transitive=False), *maven.lake_jars()]
    class_path = {"spark.driver.extraClassPath": os.pathsep.join(map(str, jars))}
    with spark_session(folder / "spark", {**SHORT_LIVED, **class_path}) as spark:
        java: Any = spark._jvm
        java.org.apache.sedona.spark.SedonaContext.create(spark._jsparkSession)
        lake = grebe.attach(spark)
        kinds = grebe.Spatial("place", x="lon", y="lat"), grebe.Spatial("shape", on="geom")
        lake.table(str(folder / "t")).create(*kinds)
        spark.read.parquet(str(folder / "t")).createOrReplaceTempView("t")
        told = []
        for question in QUESTIONS:
            answers = []
            for enabled in (True, False):
                lake.enabled = enabled
                found = spark.sql(f"SELECT id FROM t WHERE {question}")
                answers.append(sorted(row.id for row in found.collect()))
            lake.enabled = True
            used = lake.explain(spark.sql(f"SELECT id FROM t WHERE {question}")).to_dict()["used"]
            told.append({"rows": len(answers[1]), "same": answers[0] == answers[1], "used": used})
    (folder / "told.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
