"""Copies along a curve: files are left out by every column of it, and the planner knows what a box of several columns reads."""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from grebe.indexes.kind import Layout, bound_names
from grebe.planner.decision import Decision, StandIn
from grebe.planner.tables import KnownIndex
from tests.planner.lake import MB, Ask, Source, covering, picked

TABLE = Source("points", {"x": "long", "y": "long", "n": "long", "s": "string"}, 20_000_000, 800 * MB)
SIDE = 1_000_000


def curve(name: str = "curve", files: int = 16, known: bool = True) -> KnownIndex:
    """Files that are squares of x and y; of y only x is known unless `known`."""
    made = covering(TABLE, name, ["x", "y"], ["n"], buckets=0, between=(0, SIDE))
    copy, side = made.copy, round(files**0.5)
    assert copy is not None
    ends = np.arange(side + 1) * (SIDE // side)
    x, y = np.divmod(np.arange(files), side)
    content = copy.content
    for place, at in enumerate((x, y)):
        low, high, nulls = bound_names(place)
        bounds = (pa.array(ends[at]), pa.array(ends[at + 1] - 1), pa.array([0] * files))
        for column, values in zip((low, high, nulls), bounds, strict=True):
            content = content.drop_columns([column]) if column in content.column_names else content
            content = content.append_column(column, values if known or place == 0 else pa.nulls(files, pa.int64()))
    layout = Layout(0, (), (), ("x", "y"))
    return replace(made, kind="zorder", copy=replace(copy, layout=layout, content=content, bounded=("x", "y")))


def asked(where: str, *indexes: KnownIndex) -> Decision:
    ask = Ask()
    return ask.decide(ask.scan(TABLE.having(*indexes), ["x", "y", "n"], where).node)


def read(decision: Decision) -> int:
    (choice,) = (one for one in decision.choices if isinstance(one, StandIn))
    return len(choice.content)


def test_files_are_left_out_by_each_column_and_by_all_together() -> None:
    assert read(asked("x < 100", curve())) == 4
    assert read(asked("y BETWEEN 300000 AND 400000", curve())) == 4
    assert read(asked("x < 100 AND y BETWEEN 300000 AND 400000", curve())) == 1
    assert read(asked("x < 100 OR y < 100", curve())) == 7
    assert read(asked("NOT (x >= 100 OR y >= 100)", curve())) == 1


def test_bounds_that_an_older_release_did_not_write_leave_nothing_out() -> None:
    assert read(asked("x < 100 AND y < 100", curve(known=False))) == 4


def test_a_box_takes_the_curve_and_a_range_the_order_of_its_column() -> None:
    by_x = covering(TABLE, "by_x", ["x"], ["y", "n"], buckets=0, between=(0, SIDE))
    by_y = covering(TABLE, "by_y", ["y"], ["x", "n"], buckets=0, between=(0, SIDE))
    box = "x BETWEEN 300000 AND 400000 AND y BETWEEN 300000 AND 400000"
    assert picked(asked(box, curve(), by_x, by_y)) == {"points#0": "curve/0"}
    assert picked(asked("x BETWEEN 300000 AND 310000", curve(), by_x, by_y)) == {"points#0": "by_x/0"}
    assert picked(asked("y BETWEEN 300000 AND 310000", curve(), by_x, by_y)) == {"points#0": "by_y/0"}


def test_less_is_read_the_more_columns_are_asked_for() -> None:
    one, both = (asked(where, curve()).after.bytes for where in ("x < 50000", "x < 50000 AND y < 50000"))
    assert both < 0.3 * one


def test_how_wide_pages_are_may_be_known_of_each_column() -> None:
    def sided(x: float, y: float) -> KnownIndex:
        made = curve()
        assert made.copy is not None
        return replace(made, copy=replace(made.copy, layout=replace(made.copy.layout, sides=(x, y))))

    narrow, wide = (asked("x < 20000", sided(side, 1.0)).after.bytes for side in (0.01, 0.9))
    assert narrow < 0.5 * wide
    assert asked("x < 20000", sided(0.01, 0.2)).after.bytes == narrow, "y is not asked for"


def test_why_not_names_all_columns_of_the_curve() -> None:
    (reason,) = asked("n = 7", curve()).reasons
    assert reason.code == "NO_FIRST_INDEXED_COL_COND"
    assert reason.arguments["column"] == "`x` or y"
