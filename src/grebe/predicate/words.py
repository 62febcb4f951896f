"""The words of Spark SQL that a predicate gives a meaning to."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# These cannot stand for a column, unless quoted.
OPERATORS = _words(
    "and or not in is like ilike rlike regexp between escape when then else end as div distinct any some all"
)
# Spark reads these as functions although no parentheses follow.
BARE_FUNCTIONS = _words(
    "current_catalog current_database current_date current_schema current_time current_timestamp current_user localtimestamp "
    "session_user user"
)
TYPED_LITERALS = _words("date timestamp timestamp_ntz timestamp_ltz")
# These name a column only where nothing follows that gives them another meaning, so they are quoted to be safe.
_AMBIGUOUS = _words(
    "true false null case cast try_cast exists interval time select with values from table where nulls over x r"
)
NEEDS_QUOTES = OPERATORS | BARE_FUNCTIONS | TYPED_LITERALS | _AMBIGUOUS
