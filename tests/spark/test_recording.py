"""Which queries are recorded: those of tables, and never those that Grebe asks of its own files."""

import pytest

from grebe.planner.observing import Seat
from grebe.spark.recording import ran

FOLDER = "file:/lake/_grebe/t/data/sift/1-f0f06c4672524a1586560401ac9f8d01"
FILES = "org.apache.spark.sql.execution.datasources.InMemoryFileIndex"


@pytest.mark.parametrize(
    ("files_class", "roots"),
    [(FILES, [f"{FOLDER}/part-00000_00000.gix"]), ("grebe.spark.Content", ["file:/lake/t"])],
    ids=["index data read as plain files", "a relation of ours"],
)
def test_reads_of_index_data_are_no_queries_of_a_table(files_class: str, roots: list[str]) -> None:
    def nobody_is_asked(roots: object) -> Seat:
        pytest.fail(f"a table was looked for at {roots}")

    told = {"asked": {"relations": [{"files_class": files_class, "roots": roots}]}}
    assert ran(told, nobody_is_asked, 2) is None
