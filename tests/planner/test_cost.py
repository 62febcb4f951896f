"""The cost of single steps: what must cost more does, and cores and partitions share the work."""

from dataclasses import replace

import pytest

from grebe.planner.cost import Meter, Rates, is_columnar
from tests.planner.lake import MB, SETTINGS

METER = Meter(SETTINGS)
ONE_CORE = Meter(replace(SETTINGS, cores=1))
NOT_ADAPTIVE = Meter(replace(SETTINGS, adaptive=False, shuffle_partitions=200))


def scan(meter: Meter = METER, size: float = 100 * MB, rows: float = 1e6, files: int = 8, tasks: int = 8) -> float:
    return meter.scan(size, rows, 3, files, tasks, meter.byte_rate("parquet"), meter.open_rate("file:///t"))


def test_a_scan_costs_its_bytes_rows_files_and_tasks() -> None:
    assert scan() < min(scan(size=200 * MB), scan(rows=2e6), scan(files=800), scan(tasks=800))


def test_two_cores_halve_a_scan_of_many_tasks_and_not_that_of_one() -> None:
    assert scan(ONE_CORE) == pytest.approx(2 * scan())
    work = [
        meter.scan(100 * MB, 0, 0, 0, 1, 1e-8, 0) - meter.scan(0, 0, 0, 0, 1, 1e-8, 0) for meter in (ONE_CORE, METER)
    ]
    assert work[0] == pytest.approx(work[1])


@pytest.mark.parametrize(("partitions", "share"), [(1, 1.0), (2, 0.5), (3, 2 / 3), (4, 0.5), (100, 0.5)])
def test_partitions_are_worked_off_in_waves(partitions: int, share: float) -> None:
    assert METER.spread(partitions) == pytest.approx(share)


def test_text_is_dearer_to_read_than_columns() -> None:
    rates = [METER.byte_rate(name) for name in ("parquet", "avro", "csv", "json")]
    assert rates == sorted(rates)
    assert METER.byte_rate("delta") == METER.byte_rate("orc") == METER.byte_rate("parquet")
    assert is_columnar("iceberg")
    assert not is_columnar("csv")


def test_opening_a_file_of_an_object_store_is_dearer() -> None:
    assert METER.open_rate("s3://lake/t") > METER.open_rate("file:///lake/t") == METER.open_rate("hdfs://a/t")
    assert (
        METER.open_rate("s3://lake/t") > METER.content_open_rate("s3://lake/t") > METER.content_open_rate("file:///t")
    )
    assert METER.content_open_rate("hdfs://a/t") == METER.open_rate("hdfs://a/t")


def test_files_are_packed_into_tasks_as_spark_does() -> None:
    assert METER.scan_tasks(1024 * 1024 * 1024, 1) == 9
    assert METER.scan_tasks(1000, 1) == 1
    assert METER.scan_tasks(0, 0) == 1
    assert METER.scan_tasks(10 * MB, 1_000) > 30


def test_adaptive_execution_joins_small_partitions() -> None:
    assert METER.shuffled_partitions(1 * MB) == 2
    assert METER.shuffled_partitions(10_000 * MB) == SETTINGS.shuffle_partitions
    assert NOT_ADAPTIVE.shuffled_partitions(1 * MB) == 200


def test_wide_rows_are_dearer_to_shuffle() -> None:
    assert METER.shuffle(1e6, 200, 8) > METER.shuffle(1e6, 40, 8) > METER.shuffle(1e5, 40, 8)


def test_merging_sorted_runs_is_cheaper_than_sorting() -> None:
    assert METER.merge(1e6, 8) < METER.sort(1e6, 8) / 2
    assert METER.sort(1e6, 8) < METER.sort(1e6, 2)


def test_many_groups_are_dearer_than_few() -> None:
    assert METER.group(1e6, 10, 8) < METER.group(1e6, 1e6, 8)


def test_a_broadcast_has_a_price_of_its_own_and_one_for_each_byte() -> None:
    assert METER.broadcast(0, 40) > 0
    assert METER.broadcast(1e6, 40) > METER.broadcast(1e3, 40)


def test_every_rate_is_positive_and_can_be_changed() -> None:
    assert all(getattr(Rates(), name) > 0 for name in Rates.__dataclass_fields__)
    slow = Meter(SETTINGS, Rates(columnar_byte=1.0))
    assert scan(slow) > 1000 * scan()
