"""Queries as they might have been observed."""

from grebe.advisor.workload.observed import Joined, Observed, Scan

START_MS = 1_600_000_000_000


def observed(number: int, at_ms: int | None = None, shape: str = "SELECT a FROM t WHERE a = ?") -> Observed:
    scan = Scan(
        table="memory://t",
        columns=("a", "`b c`"),
        predicate=f"a = {number}",
        tree=None,
        joins=(Joined("a", "memory://u", "x"),),
        groups=("a",),
        aggregates=("sum(a)",),
        orders=("a",),
        files=number,
        files_of=100,
        bytes=number * 10,
        bytes_of=1000,
        rows_read=None,
        rows=number,
    )
    return Observed(
        query=f"{number:032x}",
        at_ms=START_MS + number if at_ms is None else at_ms,
        client="me",
        origin="lookup",
        call="scan",
        shape=shape,
        digest="0" * 16,
        tables=("memory://t",),
        indexes=("by_a",),
        milliseconds=1.5,
        limit=None,
        hashed=False,
        scans=(scan,),
    )
