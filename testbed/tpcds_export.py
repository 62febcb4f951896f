"""Run by itself, `python tpcds_export.py PACKAGES SCALE FOLDER`: TPC-DS as Parquet files, and its 99 queries as JSON.

`PACKAGES` is a folder with DuckDB and its extension tpcds, which fits no other version; they come before all other packages.
"""

import json
import sys
from pathlib import Path
from typing import Any

FACTS = {"store_sales", "store_returns", "catalog_sales", "catalog_returns", "web_sales", "web_returns", "inventory"}
FILES_OF_A_FACT, FILES_OF_A_DIMENSION = 6, 2


def main(packages: str, scale: str, target: str) -> None:
    sys.path.insert(0, packages)
    import duckdb

    (extension,) = Path(packages).rglob("tpcds.duckdb_extension")
    connection = duckdb.connect()
    connection.execute(f"LOAD '{extension}'")
    connection.execute(f"CALL dsdgen(sf = {float(scale)})")
    for (table,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
        _export(connection, table, Path(target) / table)
    queries = connection.execute("SELECT query_nr, query FROM tpcds_queries() ORDER BY query_nr").fetchall()
    (Path(target) / "queries.json").write_text(json.dumps(dict(queries)), encoding="utf-8")


def _export(connection: Any, table: str, folder: Path) -> None:
    """Slices by position, so that the same rows lie in the same files every time."""
    folder.mkdir()
    (rows,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    files = min(rows, FILES_OF_A_FACT if table in FACTS else FILES_OF_A_DIMENSION)
    for number in range(files):
        first, end = rows * number // files, rows * (number + 1) // files
        slice_of_rows = f"SELECT * FROM {table} WHERE rowid >= {first} AND rowid < {end} ORDER BY rowid"
        connection.execute(f"COPY ({slice_of_rows}) TO '{folder}/{number}.parquet' (FORMAT parquet)")


if __name__ == "__main__":
    main(*sys.argv[1:])
