"""One table with a lookup index on every type of key, made once for all tests of lookups."""

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from grebe.indexes.lookup.spec import Lookup
from grebe.session.lake_table import LakeTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 30_000
FILES = 3
KINDS: dict[str, pa.Array] = {
    "id": pa.array(np.random.default_rng(1).permutation(ROWS * 7)[:ROWS], pa.int64()),
    "small": pa.array((np.arange(ROWS) * 31 % 30_011 - 15_000).astype("int32")),
    "tiny": pa.array((np.arange(ROWS) % 251 - 120).astype("int8")),
    "text": pa.array([f"key {n * 7919 % ROWS:x} é" for n in range(ROWS)]),
    "bytes": pa.array([bytes([n % 256, n // 256 % 256, n % 7]) for n in range(ROWS)], pa.binary()),
    "amount": pa.array([Decimal(n * 17 % ROWS - 9_000).scaleb(-2) for n in range(ROWS)], pa.decimal128(12, 2)),
    "large": pa.array([Decimal(n * 17 % ROWS) * 10**20 for n in range(ROWS)], pa.decimal128(38, 4)),
    "ratio": pa.array([(n * 13 % ROWS - 500) / 8 for n in range(ROWS)]),
    "day": pa.array(np.arange(ROWS, dtype="int32") % 9000, pa.date32()),
    "at": pa.array(np.arange(ROWS) * 1_000_003, pa.timestamp("us", "UTC")),
    "local": pa.array(np.arange(ROWS) * 1_000_003 % 10**9, pa.timestamp("us")),
    "skewed": pa.array([7 if n % 2 else n for n in range(ROWS)], pa.int64()),
    "flag": pa.array([n % 3 == 0 for n in range(ROWS)]),
}
ODD_NUMBERS = {0: float("nan"), 1: -0.0, 2: 0.0, 3: float("inf"), 4: float("-inf")}


@pytest.fixture(scope="session")
def table() -> pa.Table:
    """Some NULLs everywhere, and the odd ones among numbers."""
    holes = np.arange(ROWS) % 97 == 5
    ratios = [ODD_NUMBERS.get(n % 1000, value) for n, value in enumerate(KINDS["ratio"].to_pylist())]
    columns = {**KINDS, "ratio": pa.array(ratios), "single": pa.array(ratios, pa.float32())}
    nulled = {name: pa.array(values.to_pylist(), values.type, mask=holes) for name, values in columns.items()}
    inner = pa.StructArray.from_arrays([nulled["id"], nulled["text"]], ["id", "word"])
    return pa.table({**nulled, "nested": inner, "number": pa.array(range(ROWS))})


KEYS = [*KINDS, "single", "nested.word"]


@pytest.fixture(scope="session")
def lake(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory, table: pa.Table) -> Path:
    """The folder of the table `t`."""
    folder = tmp_path_factory.mktemp("lookups")
    (folder / "t").mkdir()
    part = ROWS // FILES
    for number in range(FILES):
        pq.write_table(table.slice(number * part, part), folder / "t" / f"{number}.parquet", row_group_size=3_000)
    kinds = [Lookup(f"by_{name.replace('.', '_')}", on=name) for name in KEYS]
    pair = Lookup("by_pair", on=["skewed", "text"], include="number")
    LakeTable(spark, str(folder / "t")).create(*kinds, pair)
    return folder
