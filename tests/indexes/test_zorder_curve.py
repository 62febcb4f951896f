"""The curves: every cell is passed once, and along Hilbert's one step leads to a cell that touches."""

import numpy as np
import pytest

from grebe.indexes.zorder.curve import CURVES, Numbers, along, spread

GRIDS = [(1, 6), (2, 3), (2, 7), (3, 4), (4, 3), (5, 2), (6, 2)]


def grid(columns: int, levels: int) -> Numbers:
    """The coordinates of all cells, one row each."""
    side = np.arange(1 << levels)
    return np.stack(np.meshgrid(*[side] * columns, indexing="ij"), -1).reshape(-1, columns)


def numbers_of(curve: str, cells: Numbers, levels: int) -> Numbers:
    columns = cells.shape[1]
    address = np.zeros(len(cells), np.int64)
    for column in range(columns):
        address |= spread(cells[:, column], column, columns, levels)
    return along(curve, address, columns, levels)


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize(("columns", "levels"), GRIDS)
def test_every_cell_has_a_number_of_its_own(curve: str, columns: int, levels: int) -> None:
    numbers = numbers_of(curve, grid(columns, levels), levels)
    assert len(np.unique(numbers)) == 1 << columns * levels
    assert numbers.min() == 0


@pytest.mark.parametrize(("columns", "levels"), GRIDS)
def test_cells_that_follow_each_other_on_hilberts_curve_touch(columns: int, levels: int) -> None:
    cells = grid(columns, levels)
    passed = cells[np.argsort(numbers_of("hilbert", cells, levels))]
    assert (np.abs(np.diff(passed, axis=0)).sum(axis=1) == 1).all()


@pytest.mark.parametrize("curve", CURVES)
def test_any_part_of_a_power_of_two_is_a_box(curve: str) -> None:
    """So that bounds of files tell something: of 2^6 x 2^6 cells, each 64th part has sides of 8."""
    cells = grid(2, 6)
    passed = cells[np.argsort(numbers_of(curve, cells, 6))].reshape(64, 64, 2)
    assert (np.ptp(passed, axis=1) == 7).all()


def test_a_grid_is_the_first_corner_of_a_larger_one() -> None:
    """Which levels are looked up together does not matter then."""
    cells = grid(2, 4)
    small, large = numbers_of("hilbert", cells, 4), numbers_of("hilbert", cells, 9)
    assert (np.abs(np.diff(cells[np.argsort(large)], axis=0)).sum(axis=1) == 1).all()
    assert set(small.tolist()) == set(large.tolist()) == set(range(256))


def test_a_box_is_met_by_fewer_pieces_of_hilberts_curve_than_of_the_z_curve() -> None:
    cells = grid(2, 6)
    pieces = {}
    for curve in CURVES:
        numbers = numbers_of(curve, cells, 6).reshape(64, 64)
        inside = [np.sort(numbers[x : x + 9, y : y + 9], axis=None) for x in range(55) for y in range(55)]
        pieces[curve] = sum(int((np.diff(one) > 1).sum()) + 1 for one in inside)
    assert pieces["hilbert"] < 0.75 * pieces["z"]
