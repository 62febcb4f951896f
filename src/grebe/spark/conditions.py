"""What Spark calls its errors."""

from typing import Any


def condition_of(problem: Any) -> str:
    """The error condition (its name changed from "error class" in Spark 4), or the name of the exception's class."""
    for name in ("getCondition", "getErrorClass"):
        getter = getattr(problem, name, None)
        if getter is not None and (found := getter()):
            return str(found)
    return type(problem).__name__
