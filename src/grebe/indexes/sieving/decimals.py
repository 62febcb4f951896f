"""Decimals wider than int64: their leading 57 bits with the number of bits after them, like a floating number.

So short numbers in wide columns, which are the rule, keep all their digits: below 2^57 a number is its own code. A negative number
has the complement of its complement's code, which rounds it down as it does the positive ones.
"""

import numpy as np
from numpy.typing import NDArray

from grebe.indexes.sieving.bits import bit_length

_KEPT = 57
_MOST = (1 << 127) - 1


def wide_codes(low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of 128-bit numbers, given as their two words."""
    negative = high >> 63
    top = (high ^ negative).view(np.uint64)
    bottom = (low ^ negative).view(np.uint64)
    bits = np.where(top > 0, 64 + bit_length(top), bit_length(bottom))
    cut = np.maximum(bits - _KEPT, 0).astype(np.uint64)
    word = np.uint64(64)
    within = np.minimum(cut, word - np.uint64(1))
    # A shift by a whole word is undefined; the parts it would make are not taken.
    carried = np.where(within > 0, top << np.minimum(word - within, word - np.uint64(1)), np.uint64(0))
    leading = np.where(cut < word, carried | (bottom >> within), top >> (np.maximum(cut, word) - word))
    codes: NDArray[np.int64] = ((cut << np.uint64(_KEPT - 1)) + leading).view(np.int64) ^ negative
    return codes


def wide_code(number: int) -> int:
    """Of one number; what 128 bits cannot hold gets the code of the last that they can."""
    magnitude = min(number if number >= 0 else ~number, _MOST)
    cut = max(magnitude.bit_length() - _KEPT, 0)
    code = (cut << (_KEPT - 1)) + (magnitude >> cut)
    return code if number >= 0 else ~code
