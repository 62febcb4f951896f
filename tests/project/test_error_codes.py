"""Every error has a test: each code of the reference stands by its name in some test."""

import re

from tests.project.tree import ROOT
from tools.reference import raised_codes

NAMES = re.compile(r"[A-Z][A-Z0-9_]+")


def test_every_error_code_stands_in_a_test() -> None:
    told = {name for path in (ROOT / "tests").rglob("*.py") for name in NAMES.findall(path.read_text(encoding="utf-8"))}
    untold = sorted(code for codes in raised_codes().values() for code in codes if code not in told)
    assert untold == [], "provoke each in a test of its area and assert its `.code`"
