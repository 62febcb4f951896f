"""Line items that were indexed when a hundred files were there: then files came, and others went."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import grebe
from bench.harness import Scale
from testbed import tpch
from testbed.ageing import numbered

INDEXED = 100
"""Files, so that one of them is a percent."""
APPENDED, DELETED = (0, 1, 10, 30), (0, 1, 10)
KINDS = (
    grebe.Covering(
        "by_order", on="l_orderkey", include=["l_partkey", "l_quantity", "l_extendedprice", "l_discount", "l_shipdate"]
    ),
    grebe.Lookup("by_part", on="l_partkey"),
)


@dataclass(frozen=True)
class State:
    """Both in percent of what was indexed."""

    appended: int
    deleted: int

    def __str__(self) -> str:
        return f"+{self.appended}% -{self.deleted}%"

    @property
    def changed(self) -> bool:
        return self.appended + self.deleted > 0

    def files(self, all_files: list[Path]) -> list[Path]:
        """What is deleted lies all over the table, what is appended follows its last key."""
        gone = range(5, INDEXED, INDEXED // self.deleted) if self.deleted else range(0)
        return [file for number, file in enumerate(all_files[: INDEXED + self.appended]) if number not in gone]


def states() -> Iterator[State]:
    for deleted in DELETED:
        for appended in APPENDED:
            yield State(appended, deleted)


def data(scale: Scale) -> Path:
    return tpch.generate(scale.pick(0.01, 1), parts=INDEXED + max(APPENDED), tables=["lineitem", "orders"])


def line_items(scale: Scale) -> list[Path]:
    return numbered(data(scale) / "lineitem")
