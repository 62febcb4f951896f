"""The one tree of errors.

Every error that leaves Grebe is a `GrebeError`: its class says what the caller should do, its `code` is stable and begins with
the class's name in upper snake case, and its message names the values and the next step. No message ever holds a credential or a
value of the user's data.
"""

import re


def _upper_snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper()


class GrebeError(Exception):
    """Base of all errors. `detail` refines the code: `Conflict("…", detail="LOST_RACE").code == "CONFLICT_LOST_RACE"`."""

    def __init__(self, message: str, *, detail: str = "", position: int | None = None) -> None:
        # A message may quote what a caller gave. Lone surrogates in it could be written nowhere: not to a terminal, not to a log.
        super().__init__(message.encode("utf-8", "backslashreplace").decode())
        base = _upper_snake(type(self).__name__)
        self.code: str = f"{base}_{detail}" if detail else base
        self.position = position
        """Where in a text of SQL, in characters from 0, if it is about one."""

    def __str__(self) -> str:
        return f"[{self.code}] {super().__str__()}"

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross process boundaries (worker pools, Spark); the default reduce would lose the code.
        return (_rebuild, (type(self), self.args[0], self.code))


def _rebuild(kind: type[GrebeError], message: str, code: str) -> GrebeError:
    error = kind(message)
    error.code = code
    return error


class InvalidConfig(GrebeError):
    """A setting has a name or a value that Grebe does not know."""


class InvalidIndex(GrebeError):
    """The description of an index makes no sense for this table."""


class IndexExists(GrebeError):
    """An index of that name is there already."""


class IndexNotFound(GrebeError):
    """No index of that name."""


class TableNotFound(GrebeError):
    """Nothing at that place that could be read as a table."""


class InvalidPredicate(GrebeError):
    """The predicate cannot be parsed, or names what is not there."""


class InvalidStatement(GrebeError):
    """A statement on indexes cannot be parsed."""


class WrongState(GrebeError):
    """The index, or an operation under way on it, does not allow this now."""


class Conflict(GrebeError):
    """Another writer was first. Trying again is safe and usually works."""


class SourceChanged(GrebeError):
    """The data changed or vanished while it was being read."""


class Unsupported(GrebeError):
    """Understood, but Grebe cannot do it."""


class CorruptLog(GrebeError):
    """The operation log is damaged."""


class CorruptIndex(GrebeError):
    """The bytes of an index are damaged or missing."""


class UnreadableFile(GrebeError):
    """A data file cannot be read."""


class StoreRefused(GrebeError):
    """The store will not do what is asked: no permission, read-only, or no put-if-absent."""


class StoreUnreachable(GrebeError):
    """The store did not answer in time. What was asked of it may or may not have happened; trying again is safe."""
