"""What is found wrong with the files of indexes."""

from dataclasses import dataclass

from grebe.errors import GrebeError


@dataclass(frozen=True, slots=True)
class Fault:
    index: str
    path: str
    """The file, below the log's folder."""
    code: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Report:
    """What is wrong with the indexes of a table. No fault makes an answer wrong: an index that has one is not used."""

    findings: tuple[Fault, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.findings

    def __str__(self) -> str:
        return "\n".join(f"{one.index}: {one.sentence} [{one.code}]" for one in self.findings) or "no faults were found"


def fault(index: str, path: str, problem: GrebeError) -> Fault:
    return Fault(index, path, problem.code, str(problem.args[0]))
