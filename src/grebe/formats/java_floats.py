"""Numbers of text as Java reads them: rounded once, to the type that is asked for. Hexadecimal ones such as `0x1.8p3` too."""

import math
import re
from fractions import Fraction

import numpy as np

HEXADECIMAL = r"0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+"
_PARTS = re.compile(r"([+-]?)0[xX]([0-9a-fA-F]*)\.?([0-9a-fA-F]*)[pP]([+-]?[0-9]+)")
_BEYOND_SINGLE = Fraction(2) ** 128
"""Where the next number of single precision would lie."""
_FAR = 10_000
"""A power of two that takes any number of few digits beyond what a double holds."""


def from_hexadecimal(text: str, single: bool = False) -> float:
    """Return the nearest double, or the nearest number of single precision; infinity beyond the greatest."""
    found = _PARTS.fullmatch(text)
    if found is None:
        raise ValueError("no hexadecimal number")
    sign, whole, fraction, power = found.groups()
    negative = sign == "-"
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return -0.0 if negative else 0.0
    # The text may have thousands of digits, in its number and in its power.
    exponent = _clamped(power) - 4 * len(fraction)
    highest = exponent + 4 * len(digits)
    if highest > _FAR or highest < -_FAR:
        value = math.inf if highest > 0 else 0.0
        return -value if negative else value
    exact = int(digits, 16) * Fraction(2) ** exponent
    value = nearest_single(exact) if single else _double(exact)
    return -value if negative else value


def _clamped(power: str) -> int:
    digits = power.lstrip("+-").lstrip("0")
    value = int(digits or "0") if len(digits) < 15 else 10**15
    return -value if power.startswith("-") else value


def _double(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf


def nearest_single(exact: Fraction) -> float:
    """Return the nearest number of single precision. Rounded to a double first, a number may come to lie in the middle between two
    of them: what was cut off decides then."""
    if exact < 0:
        return -nearest_single(-exact)
    double = _double(exact)
    with np.errstate(over="ignore"):
        near = np.float32(double)
        other = np.nextafter(near, np.float32(math.inf if double > float(near) else -math.inf))
    if not math.isfinite(double) or exact == Fraction(double):
        return float(near)
    low, high = sorted((near, other))
    beyond = _BEYOND_SINGLE if math.isinf(high) else Fraction(float(high))
    middle = (Fraction(float(low)) + beyond) / 2
    return float(near) if exact == middle else float(low if exact < middle else high)
