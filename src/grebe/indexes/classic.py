"""Spark's functions for columns of a classic session, also in a process that speaks Spark Connect: there Spark's own would make
columns of the client, which the server's frames do not take."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column


class _Functions:
    """`functions.hex(column)` as in `pyspark.sql.functions`."""

    def __getattr__(self, name: str) -> "Callable[..., Column]":
        from pyspark.sql import functions

        # What decides between the two is a decorator.
        function: Any = getattr(functions, name)
        made: Callable[..., Column] = getattr(function, "__wrapped__", function)
        return made


functions = _Functions()
