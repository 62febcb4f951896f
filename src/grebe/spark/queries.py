"""Frames of SQL texts that are queries. A command is refused, and nothing of it is carried out."""

from typing import TYPE_CHECKING

from grebe.errors import InvalidStatement
from grebe.spark.shim import load

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_CALL = "()"


def frame_of_query(session: "SparkSession", text: str) -> "DataFrame":
    """Return the frame of a query, as `session.sql` does. Raises `InvalidStatement` for a command, and for a call of a Java method
    by its name, before anything of it runs; Spark itself would run both, the call while it plans the query."""
    from pyspark.sql import DataFrame

    made = load(session).bridge.query(session._jsparkSession, text)
    if isinstance(made, str):
        raise _calls_method(made) if made.endswith(_CALL) else _not_a_query(made)
    return DataFrame(made, session)


def require_query(session: "SparkSession", frame: "DataFrame") -> None:
    """Raise `InvalidStatement` for a frame that is the result of a command."""
    command = str(load(session).bridge.command(frame._jdf))
    if command:
        raise _not_a_query(command)


def _not_a_query(command: str) -> InvalidStatement:
    return InvalidStatement(
        f"this is a command ({command}), and only queries are planned here; nothing of it was run. Give the SELECT that it holds, "
        "or run the command with spark.sql",
        detail="NOT_A_QUERY",
    )


def _calls_method(function: str) -> InvalidStatement:
    return InvalidStatement(
        f"this calls a Java method by its name ({function}), and Spark may carry such a call out while it plans a query; nothing "
        "of it was run. Leave the call out of the query, or run the query with spark.sql",
        detail="METHOD_CALL",
    )
