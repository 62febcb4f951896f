"""What is found wrong with the files of indexes."""

from dataclasses import asdict, dataclass

from grebe.errors import GrebeError
from grebe.shown.html import block, paragraph, table


@dataclass(frozen=True, slots=True)
class Fault:
    index: str
    """Empty: it is a fault of the log itself."""
    path: str
    """A file of the index or of the log, below the log's folder; or the URI of a data file whose rows the index holds otherwise."""
    code: str
    sentence: str
    file: int | None = None
    """The id of that data file."""


@dataclass(frozen=True, slots=True)
class Report:
    """What is wrong with the indexes of a table. No fault of a file makes an answer wrong: an index that has one is not used."""

    findings: tuple[Fault, ...] = ()
    leftovers: tuple[str, ...] = ()
    """Objects below the log's folder that operations left which died: no faults, `vacuum` removes them."""
    unchecked: tuple[str, ...] = ()
    """Sentences about what could not be derived anew, and so was not compared."""

    @property
    def ok(self) -> bool:
        return not self.findings

    def __str__(self) -> str:
        lines = [f"{one.index or 'the log'}: {one.sentence} [{one.code}]" for one in self.findings]
        lines = lines or ["no faults were found"]
        if self.leftovers:
            lines.append(f"left by operations that died, to be vacuumed: {len(self.leftovers):,} objects")
        return "\n".join([*lines, *self.unchecked])

    def _repr_html_(self) -> str:
        if self.findings:
            return block(table(["index", "path", "code", "sentence"], map(asdict, self.findings)))
        return block(*map(paragraph, str(self).splitlines()))


def fault(index: str, path: str, problem: GrebeError) -> Fault:
    return Fault(index, path, problem.code, str(problem.args[0]))
