"""Where logs lie and are looked for."""

import pytest

from grebe.log.location import below, beside, places


@pytest.mark.parametrize(
    ("table", "log"),
    [
        ("s3://lake/sales/orders", "s3://lake/sales/_grebe/orders"),
        ("s3://lake/orders", "s3://lake/_grebe/orders"),
        ("s3://lake", "s3://lake/_grebe/_grebe"),
        ("file:///orders", "file:///_grebe/orders"),
        ("file:///lake/my orders #1 %20", "file:///lake/_grebe/my orders #1 %20"),
        ("hdfs://host:8020/orders", "hdfs://host:8020/_grebe/orders"),
    ],
)
def test_the_log_lies_beside_the_table_and_inside_only_at_the_root_of_a_store(table: str, log: str) -> None:
    assert beside(table) == log


def test_below_one_folder_for_all_tables_no_two_share_a_name() -> None:
    names = {below("s3://idx", t) for t in ("s3://a/t", "s3://b/t", "s3://b/x/t", "file:///t")}
    assert len(names) == 4
    assert all(name.startswith("s3://idx/t-") for name in names)


def test_a_part_of_a_table_finds_the_log_of_the_whole() -> None:
    assert places("s3://lake/orders/day=1") == [
        "s3://lake/orders/_grebe/day=1",
        "s3://lake/_grebe/orders",
        "s3://lake/_grebe/_grebe",
    ]
    assert places("s3://lake/t", "file:///idx")[:2] == [below("file:///idx", "s3://lake/t"), "s3://lake/_grebe/t"]
