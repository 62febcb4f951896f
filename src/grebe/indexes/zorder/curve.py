"""Curves through a grid of 2^levels cells a side, in any number of dimensions: a cell's number along the curve.

A cell is given as its *address*: the bits of its coordinates interleaved, the highest first, coordinate 0 above the others in
each level. Along the Z curve the address is the number. The Hilbert curve turns and mirrors each box of 2^dimensions cells so that
cells that follow each other touch; how a box is turned is a *state*, and what a state does to an address is a table. Some levels at
a time are looked up, so that a number takes a few look-ups: in Spark they are plain expressions.

The Hilbert curve follows the algorithm of Butz in the terms of Hamilton: a box is entered at one corner (`entry`) and left along
one axis (`axis`), and the cells of a box are passed in the order of a Gray code.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

CURVES = ("hilbert", "z")
_TABLE_ENTRIES = 1_024
"""About so many of a table: it becomes part of a plan, which should be made quickly."""

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class Turns:
    """`table[state << bits | address]` is `next state << bits | number`, for `levels` levels of an address at a time."""

    levels: int
    bits: int
    table: Numbers

    def steps(self, levels: int) -> int:
        """How many look-ups an address of so many levels takes. A grid is the first corner of any larger one."""
        return -(-levels // self.levels)


def spread(cells: Numbers, column: int, columns: int, levels: int) -> Numbers:
    """What the coordinates of one column bring to an address: their bits, apart from each other."""
    found = np.zeros_like(cells)
    for level in range(levels):
        found |= (cells >> level & 1) << (level * columns + columns - 1 - column)
    return found


def along(curve: str, addresses: Numbers, columns: int, levels: int) -> Numbers:
    """The numbers of the cells."""
    if curve == "z" or columns == 1:
        return addresses
    known = turns(columns)
    mask = (1 << known.bits) - 1
    state, numbers = np.zeros_like(addresses), np.zeros_like(addresses)
    for step in reversed(range(known.steps(levels))):
        found = known.table[state << known.bits | addresses >> (step * known.bits) & mask]
        state, numbers = found >> known.bits, numbers << known.bits | found & mask
    return numbers


@lru_cache
def turns(columns: int) -> Turns:
    """How Hilbert's curve goes in so many dimensions."""
    states = _states(columns)
    steps = [[_step(state, address, columns) for address in range(1 << columns)] for state in states]
    one = np.array([[number for number, _, _ in row] for row in steps])
    then = np.array([[states[entry, axis] for _, entry, axis in row] for row in steps])
    numbers, following, levels = one, then, 1
    while numbers.size << columns <= _TABLE_ENTRIES:
        # One more level: the boxes of the last one are turned as it says.
        numbers = (numbers[:, :, None] << columns | one[following]).reshape(len(states), -1)
        following = then[following].reshape(len(states), -1)
        levels += 1
    bits = levels * columns
    return Turns(levels, bits, (following << bits | numbers).reshape(-1))


def _states(columns: int) -> dict[tuple[int, int], int]:
    """All ways in which a box can be turned, the one to start with first."""
    found = {(0, 0): 0}
    waiting = [(0, 0)]
    while waiting:
        state = waiting.pop()
        for address in range(1 << columns):
            _, entry, axis = _step(state, address, columns)
            if (entry, axis) not in found:
                found[entry, axis] = len(found)
                waiting.append((entry, axis))
    return found


def _step(state: tuple[int, int], address: int, columns: int) -> tuple[int, int, int]:
    """Of a cell of a box that is entered and left in this way: its number in the box, and how it is entered and left itself."""
    entry, axis = state
    number = _position_in_gray_code(_rotated(address ^ entry, -(axis + 1), columns), columns)
    first = entry ^ _rotated(_entry(number), axis + 1, columns)
    return number, first, (axis + _axis(number, columns) + 1) % columns


def _rotated(bits: int, by: int, columns: int) -> int:
    by %= columns
    return (bits << by | bits >> (columns - by)) & ((1 << columns) - 1)


def _gray(number: int) -> int:
    return number ^ number >> 1


def _position_in_gray_code(code: int, columns: int) -> int:
    for shift in range(columns.bit_length() + 1):
        code ^= code >> (1 << shift)
    return code


def _entry(number: int) -> int:
    """Where the cell of this number is entered, in a box that has not been turned."""
    return 0 if number == 0 else _gray((number - 1) // 2 * 2)


def _axis(number: int, columns: int) -> int:
    """Along which axis the cell of this number is left."""
    if number == 0:
        return 0
    odd = number if number % 2 else number - 1
    return _trailing_ones(odd) % columns


def _trailing_ones(number: int) -> int:
    return (~number & number + 1).bit_length() - 1
