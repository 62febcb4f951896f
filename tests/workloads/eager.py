"""A lake whose indexes always seem worth it: the tables of tests are too small for the planner to find them so by itself."""

import contextlib
import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import grebe
from grebe.planner.choose import choose
from grebe.planner.cost import Rates

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NO_OPENING = {"local_open": 0.0, "remote_open": 0.0, "remote_content_open": 0.0}
EAGER = Rates(**_NO_OPENING, task=0.0, stand_in=0.0, doubt=-0.9, margin=-1e9, pruned_unit_rows=1.0)
"""What an index costs is next to nothing."""


@contextlib.contextmanager
def eager_lake(session: "SparkSession") -> Iterator[grebe.Lake]:
    """Attached, and detached afterwards."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("grebe.spark.planning.choose", functools.partial(choose, rates=EAGER))
        lake = grebe.attach(session, grebe.Config(hybrid_max_appended=1.0, hybrid_max_deleted=1.0))
        try:
            yield lake
        finally:
            lake.enabled = True
            lake.detach()
