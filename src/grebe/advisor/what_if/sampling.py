"""Some rows of a table in Spark, for imagining indexes: of Parquet a row group of a few files, of others their first rows."""

from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from grebe.errors import GrebeError
from grebe.files import FileList
from grebe.formats import DataFile, Reading
from grebe.formats.parquet_file import open_parquet
from grebe.indexes.kind import FILE_COLUMN
from grebe.indexes.supposed import Groups, Sample
from grebe.indexes.view.build import rows_of
from grebe.indexes.view.definition import Definition
from grebe.maintenance.facts import data_files, facts_of, spread_over
from grebe.maintenance.failures import spark_errors
from grebe.spark.frames import arrow_of_frame
from grebe.spark.source import SparkSource
from grebe.spark.stores import table_store_for
from grebe.spark.views import frame_of_base

_FILES, _ROWS = 24, 48_000
_SPARK_FILES = 4
_AT_ONCE = 8
_SEED = 42


def sample_of(source: SparkSource, files: FileList, ids: npt.NDArray[np.uint32], columns: Collection[str]) -> Sample:
    """Of these files of the table, with these columns."""
    store = table_store_for(source.session, source.uri)
    facts = facts_of(files, source.reading, store)
    places = spread_over(len(files), _FILES) if len(files) else np.empty(0, np.int64)
    names = [column.name for column in source.reading.columns if column.name in columns]
    rows, drawn_from = _empty(source.reading, names), 0
    if len(places):
        try:
            rows, drawn_from = _from_parquet(source, data_files(files.take(places), store), ids[places], names)
        except (GrebeError, pa.ArrowException, KeyError):  # not Parquet, or such as only Spark reads
            rows = _from_spark(source, files, ids, names)
            drawn_from = rows.num_rows
    return Sample(rows, facts, len(files), _groups_in(source, files, ids, facts.rows), drawn_from)


def _empty(reading: Reading, names: list[str]) -> pa.Table:
    fields = [column.arrow for column in reading.columns if column.name in names]
    return pa.schema([*fields, pa.field(FILE_COLUMN, pa.int64())]).empty_table()


def _from_parquet(
    source: SparkSource, some: list[DataFile], ids: npt.NDArray[np.uint32], names: list[str]
) -> tuple[pa.Table, int]:
    """And how many rows they were drawn from."""
    whole = _empty(source.reading, names)
    if source.reading.format != "parquet" or source.reading.partition_columns:
        raise KeyError(source.reading.format)
    most = _ROWS // len(some)

    def read(number: int) -> tuple[pa.Table, int]:
        chance = np.random.default_rng(_SEED + number)
        opened = open_parquet(some[number])
        with opened.errors():
            groups = opened.metadata.num_row_groups
            if not groups:
                return whole, 0
            found = opened.parquet.read_row_group(int(chance.integers(groups)), columns=names)
        read_as = pa.schema([field for field in whole.schema if field.name != FILE_COLUMN])
        # Cast first: of some types that a file may say it has nothing can be taken.
        kept = found.select(names).cast(read_as).take(np.sort(chance.permutation(found.num_rows)[:most]))
        file = pa.array(np.full(kept.num_rows, ids[number], np.int64))
        return kept.append_column(whole.schema.field(FILE_COLUMN), file), found.num_rows

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        read_ones = list(pool.map(read, range(len(some))))
    rows = pa.concat_tables([whole, *(table for table, _ in read_ones)]).combine_chunks()
    return rows, sum(count for _, count in read_ones)


def _from_spark(source: SparkSource, files: FileList, ids: npt.NDArray[np.uint32], names: list[str]) -> pa.Table:
    quoted = ["`" + name.replace("`", "``") + "`" for name in names]
    tables = []
    with spark_errors("reading some rows", source.uri):
        for place in spread_over(len(files), _SPARK_FILES):
            one = source.frame(files.take(np.array([place])), ids[place : place + 1])
            tables.append(arrow_of_frame(one.select(*quoted, FILE_COLUMN).limit(_ROWS // _SPARK_FILES)))
    whole = _empty(source.reading, names)
    return pa.concat_tables([whole, *(table.cast(whole.schema) for table in tables)]).combine_chunks()


def _groups_in(
    source: SparkSource, files: FileList, ids: npt.NDArray[np.uint32], rows_of_all: int
) -> Callable[[Definition], Groups]:
    """Counted by Spark in the first rows of a few files, for only Spark knows what a view's query means."""

    def count(definition: Definition) -> Groups:
        from pyspark.sql import functions

        places = spread_over(len(files), _SPARK_FILES)
        if not len(places):
            return Groups(0, 0, 0, 0)
        taken = files.take(places)
        some = source.frame(taken, ids[places]).limit(_ROWS)
        rows = functions.sum("count_of_rows") if definition.grouped else functions.count(functions.lit(1))
        keys = [functions.col("`" + key.name.replace("`", "``") + "`") for key in definition.keys]
        distinct = functions.approx_count_distinct(functions.xxhash64(*keys)) if keys else functions.lit(1)
        with spark_errors("counting some groups", source.uri):
            derived = rows_of(definition, some, [frame_of_base(source.session, one) for one in definition.bases[1:]])
            (found,) = derived.agg(distinct, rows).collect()
        groups, grouped = int(found[0] or 0), int(found[1] or 0)
        # How many groups were met once is not known; that it is their share of the rows is the cautious guess.
        once = min(groups, round(groups * groups / max(1, grouped)))
        sampled = min(_ROWS, round(rows_of_all * taken.total_bytes / max(1, files.total_bytes)))
        return Groups(groups, once, grouped, sampled)

    return count
