"""Frames of SQL texts that are queries. A command is refused, and nothing of it is carried out."""

from typing import TYPE_CHECKING

from grebe.errors import InvalidStatement
from grebe.spark.shim import load

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def frame_of_query(session: "SparkSession", text: str) -> "DataFrame":
    """Return the frame of a query, as `session.sql` does. Raises `InvalidStatement` for a command, before anything of it runs;
    Spark itself would run it."""
    from pyspark.sql import DataFrame

    made = load(session).bridge.query(session._jsparkSession, text)
    if isinstance(made, str):
        raise _not_a_query(made)
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
