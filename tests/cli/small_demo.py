"""The demo with fewer rows, files and turns, for tests that run it."""

import pytest

from grebe.cli.demos import needle, queries


def make_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "SALES", 40_000)
    monkeypatch.setattr(queries, "FILES", 4)
    monkeypatch.setattr(queries, "CUSTOMERS", 9_000)
    monkeypatch.setattr(queries, "TURNS", 1)
    monkeypatch.setattr(needle, "EVENTS", 60_000)
    monkeypatch.setattr(needle, "FILES", 3)
