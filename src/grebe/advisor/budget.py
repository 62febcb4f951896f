"""Budgets: bytes, text such as `"10GB"`, or a share of the tables such as `"20%"`."""

import re

from grebe.errors import InvalidConfig
from grebe.setting_values import parse_bytes

_SHARE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*")


def budget_bytes(budget: object, whole: int) -> float:
    """`whole`: the bytes that a share is of. None: without end. Raises `InvalidConfig`."""
    if budget is None:
        return float("inf")
    try:
        if isinstance(budget, str) and (share := _SHARE.fullmatch(budget)):
            return float(share[1]) / 100 * whole
        found = float(parse_bytes(budget))
    except ValueError as problem:
        raise InvalidConfig(
            f'budget {budget!r} is {problem}, or a share of the table such as "20%"', detail="BUDGET"
        ) from problem
    return found
