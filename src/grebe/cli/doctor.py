"""`grebe doctor`: what this machine has of what Grebe can use, and what to do about the rest."""

import importlib.metadata
import re
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Literal

import click

from grebe.cli.output import Output
from grebe.cli.verb import Verb
from grebe.errors import GrebeError
from grebe.files import canonical_uri, path_given
from grebe.log.location import beside
from grebe.spark.java import find_java
from grebe.store.access import ChecksAccess
from grebe.store.children import children_of
from grebe.store.opening import open_store
from grebe.store.probe import probe

TESTED_SPARKS = ((3, 5), (4, 1), (4, 3))

_REQUIREMENT = re.compile(r"""([\w.-]+)\s*([^;\s]*)\s*(?:;.*extra == ['"](\w+)['"])?""")
_BOUND = re.compile(r"(>=|<)(\d+(?:\.\d+)*)")


@dataclass(frozen=True)
class Finding:
    """`missing` hurts only where `required`; `wrong` is there but does not work."""

    check: str
    result: Literal["ok", "missing", "wrong"]
    found: str
    advice: str = ""
    required: bool = False

    @property
    def is_bad(self) -> bool:
        return self.result == "wrong" or (self.result == "missing" and self.required)


@dataclass(frozen=True)
class Requirement:
    """A package that Grebe, or an extra of it, needs."""

    package: str
    bounds: str

    def admits(self, version: str) -> bool:
        have = _numbers(version)
        return all(
            have >= _numbers(bound) if sign == ">=" else have < _numbers(bound)
            for sign, bound in _BOUND.findall(self.bounds)
        )


@click.command(cls=Verb)
@click.argument("location", required=False)
@click.pass_context
def doctor(context: click.Context, location: str | None) -> None:
    """Check what this machine has of what Grebe can use, and say what to do about the rest.

    With LOCATION, a folder or a URI, also whether indexes can be kept there: a small object is written and removed again. If it is
    a table on a local disk or HDFS, also whether its indexes are open to somebody who may not read the table.
    """
    output: Output = context.obj
    findings = [_python(), *_packages(), *_spark()]
    if location is not None:
        findings.append(_store(location))
        findings.extend(_access(location))
    output.rows(["check", "result", "found", "advice"], [asdict(finding) for finding in findings])
    if any(finding.is_bad for finding in findings):
        context.exit(1)


def _python() -> Finding:
    # Older ones cannot even install Grebe.
    return Finding("Python", "ok", ".".join(map(str, sys.version_info[:3])), required=True)


def requirements() -> dict[str, list[Requirement]]:
    """What Grebe's own metadata asks for: the core under the empty name, then each extra."""
    by_extra: dict[str, list[Requirement]] = {}
    for text in importlib.metadata.requires("grebe") or []:
        if match := _REQUIREMENT.match(text):
            package, bounds, extra = match.groups(default="")
            by_extra.setdefault(extra, []).append(Requirement(package, bounds))
    by_extra.pop("all", None)  # the sum of the others
    return by_extra


def _packages() -> Iterator[Finding]:
    for extra, needed in requirements().items():
        versions = {requirement: _version(requirement.package) for requirement in needed}
        missing = [requirement for requirement, version in versions.items() if version is None]
        wrong = [
            requirement for requirement, version in versions.items() if version and not requirement.admits(version)
        ]
        bad = " ".join(f"{requirement.package}{requirement.bounds}" for requirement in wrong + missing)
        yield Finding(
            check=f"extra {extra}" if extra else "core packages",
            result="wrong" if wrong else "missing" if missing else "ok",
            found=", ".join(f"{requirement.package} {version}" for requirement, version in versions.items() if version),
            advice=f"pip install '{f'grebe[{extra}]' if extra else 'grebe'}' for {bad}" if bad else "",
            required=not extra,
        )


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _spark() -> Iterator[Finding]:
    tested = " or ".join(f"{major}.{minor}" for major, minor in TESTED_SPARKS)
    try:
        import pyspark
    except ImportError:
        yield Finding("Spark", "missing", "", "pip install 'grebe[spark]'; lookups work without it")
        spark_there = False
    else:
        spark_there = True
        known = _numbers(pyspark.__version__)[:2] in TESTED_SPARKS
        yield Finding("Spark", "ok", pyspark.__version__, "" if known else f"Grebe is tested with Spark {tested}")
    try:
        java = find_java()
    except GrebeError as problem:
        # Nobody needs Java but Spark.
        yield Finding("Java", "missing", "", str(problem), required=spark_there)
    else:
        yield Finding("Java", "ok", f"{java.version} ({java.origin}: {java.home})")


def _store(location: str) -> Finding:
    try:
        store = open_store(location)
        # Below a name that other engines skip, in case a table lies there.
        probe(store, "_grebe")
    except GrebeError as problem:
        # The location as it was typed may hold a password; the message names it without.
        return Finding("store", "wrong", "", str(problem), required=True)
    return Finding("store", "ok", f"{store.uri}: writes, and keeps the condition of put-if-absent", required=True)


def _access(location: str) -> Iterator[Finding]:
    """Look at the indexes beside a table."""
    try:
        table = canonical_uri(path_given(location))
        store = open_store(beside(table))
    except GrebeError:
        return  # said above already
    try:
        there = bool(children_of(store))
        check = store.access_check(table) if there and isinstance(store, ChecksAccess) else None
    except GrebeError as problem:
        yield Finding("access", "missing", f"{store.uri} could not be compared with its table", str(problem))
        return
    if check is not None and check.too_open:
        some = f"{len(check.too_open)} folders or files of {check.folder}"
        told = f"{some} are open to others than the table is, such as {check.too_open[0]}"
        yield Finding("access", "wrong", told, f"take it from them: {check.advice}")
    elif check is not None:
        yield Finding("access", "ok", f"{check.folder}: no more open than what was looked at of the table")
    elif there:
        told = f"{store.uri} is not compared with its table: policies of the store decide there"
        yield Finding("access", "missing", told, "give this prefix the read policy of the table")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))
