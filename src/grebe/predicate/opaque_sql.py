"""What Grebe does not understand of a predicate: checked, and its columns found, by sqlglot."""

from grebe.predicate.lexer import syntax_error
from grebe.predicate.tree import Path


def columns(text: str, position: int) -> tuple[Path, ...]:
    """The columns that a piece of Spark SQL mentions, each once. `position` is where it starts in the whole."""
    import sqlglot
    from sqlglot import errors, expressions

    try:
        tree = sqlglot.parse_one(text, dialect="spark")
    except errors.SqlglotError as cause:
        raise syntax_error(position, "this is no expression of Spark SQL") from cause
    return tuple(sorted({tuple(part.name for part in column.parts) for column in tree.find_all(expressions.Column)}))
