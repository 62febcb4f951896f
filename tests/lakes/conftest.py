"""One lake a module, with indexes that always seem worth it, as the tests of queries over plain files have it."""

from tests.spark.conftest import folder, served

__all__ = ["folder", "served"]
