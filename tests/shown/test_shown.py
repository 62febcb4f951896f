"""What notebooks show: well-formed, escaped, and with the numbers in it."""

import datetime
import xml.etree.ElementTree as ET
from dataclasses import dataclass, replace

import numpy as np
import pytest

from grebe.files import FileIds
from grebe.indexes.faults import Fault, Report
from grebe.log.describe import HistoryEntry, IndexInfo
from grebe.lookup.answer import Answer, FileAnswer
from grebe.lookup.explain import LookupExplanation
from grebe.planner.decision import ByKeys, Decision, Estimate, Narrow
from grebe.planner.explain import Explanation
from grebe.planner.explain_text import Actual
from grebe.planner.prices import Prices, money
from grebe.planner.reasons import Code, Reason
from grebe.shown import html, picture
from grebe.shown.picture import Share
from grebe.shown.records import Records
from tests.planner.test_explain import DECISION

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
INFO = IndexInfo(
    "by_<b>", "covering", ("a", "b"), "ACTIVE", 3, 12_000, 0, 5, 1_000_000, NOW, NOW, "7", {"include": ["c"]}, ()
)


def parsed(text: str) -> ET.Element:
    """It is well-formed, so that no text of the user's was taken for markup."""
    return ET.fromstring(f"<page>{text}</page>".replace("&nbsp;", " "))


def words(text: str) -> str:
    return " ".join("".join(parsed(text).itertext()).split())


def squares(text: str, colour: str) -> int:
    """Without the one of the legend."""
    drawn = [one for one in parsed(text).iter("{http://www.w3.org/2000/svg}rect") if one.get("fill") == colour]
    return len(drawn) - 1


def test_each_file_is_a_square_while_they_are_few() -> None:
    drawn = picture.files([Share("read", 3, picture.READ), Share("left out", 97, picture.SPARED)])
    assert (squares(drawn, picture.READ), squares(drawn, picture.SPARED)) == (3, 97)
    assert words(drawn) == "3 read97 left out"


def test_many_files_are_a_bar_in_which_a_single_one_is_still_seen() -> None:
    drawn = picture.files([Share("read", 1, picture.READ), Share("left out", 1_000_000, picture.SPARED)])
    bar = next(parsed(drawn).iter("{http://www.w3.org/2000/svg}rect"))
    assert (bar.get("fill"), bar.get("width")) == (picture.READ, "1.0")
    assert "1,000,000 left out" in words(drawn)


@pytest.mark.parametrize("shares", [[], [Share("read", 0, picture.READ)], [Share("x<y", 0.25, picture.READ)]])
def test_a_picture_of_little_is_a_picture(shares: list[Share]) -> None:
    parsed(picture.files(shares))
    parsed(picture.amounts([(share.name, share.count, "") for share in shares]))


def test_values_are_said_as_people_read_them() -> None:
    said = [html.said(value) for value in (None, True, 1_234_567, 0.00042, 12.6, NOW, ("a", 2), "x" * 400)]
    assert said[:-1] == ["", "yes", "1,234,567", "0.00042", "13", "2026-01-02 03:04:05+00:00", "a, 2"]
    assert len(said[-1]) == 301


def test_lists_show_as_tables_and_stay_lists() -> None:
    entries = [HistoryEntry(0, NOW, "create <table>", "me", ("made",))]
    listed = Records(entries, ["number", "at", "action", "writer", "changes"], "nothing")
    assert listed == entries
    assert "create <table>" in words(listed._repr_html_())
    assert words(Records[HistoryEntry]([], ["number"], "Nothing yet.")._repr_html_()) == "Nothing yet."
    # A column that is empty in every row is left out.
    assert "operations" not in words(Records([INFO], ["name", "operations"], "")._repr_html_())


def test_an_index_and_a_report() -> None:
    shown = words(INFO._repr_html_())
    assert "by_<b>" in shown
    assert "12,000" in shown
    assert "include" in shown
    assert "no faults were found" in words(Report()._repr_html_())
    assert "too short" in words(Report((Fault("i", "data/x", "CORRUPT_INDEX", "too short"),))._repr_html_())


def test_an_explanation_with_its_plans_side_by_side() -> None:
    explanation = Explanation(DECISION, "Sort <x>\n+- FileScan\n", "FileScan\n", Actual(9, 1_345_678, 101.7), False)
    assert "Plan" not in str(explanation)
    shown = words(explanation._repr_html_())
    for part in (
        "by_customer",
        "3 index files read",
        "10.4% directly",
        "MISSING_REQUIRED_COL",
        "Sort <x>",
        "102 ms",
        "$",
    ):
        assert part in shown
    assert "none" in words(Explanation(Decision((), ()))._repr_html_())


def test_files_that_are_left_out_are_counted() -> None:
    narrow = Narrow(0, "by_id", "file:///t", FileIds.of(np.arange(96)), 4, 100, 1, "t")
    by_keys = ByKeys(0, "by_id", "file:///t", True, 1, 1, ("id",), '"long"', False, 10)
    shown = Explanation(Decision((narrow, by_keys), (Reason(Code.SCAN_IS_CHEAP, "x", {}, "t"),)))._repr_html_()
    assert (squares(shown, picture.DIRECT), squares(shown, picture.READ)) == (1, 3 + 1)
    assert "96 left out" in words(shown)


def test_an_answer_and_how_it_was_found() -> None:
    files = (FileAnswer("file:///t/a", (1, 2)), *(FileAnswer(f"file:///t/{n}", None) for n in range(30)))
    answer = Answer(files, 90, 10, 69, 5, 1_000, "by_id", ("by_id",), {"by_id": 69}, None, 3)
    shown = words(answer._repr_html_())
    for part in ("31 files", "1 read for single rows", "30 read as a whole", "69 left out", "1, 2", "11 more"):
        assert part in shown
    reasons = (Reason(Code.NO_FIRST_INDEXED_COL_COND, "other", {"column": "x"}),)
    told = LookupExplanation(answer, ("by_id",), reasons, prices=Prices(1.0, 1000.0))
    assert "5 requests, 1,000 bytes of the index ($0.006)" in words(told._repr_html_())
    assert told.to_dict()["money"] == pytest.approx(0.006)
    assert "none" in words(replace(told, used=(), reasons=())._repr_html_())


def test_money_has_the_digits_that_tell_something() -> None:
    assert [money(amount) for amount in (0, 0.0000168, 0.25, 1234.5)] == ["$0", "$1.7e-05", "$0.25", "$1,234.50"]
    assert Prices(0.0004, 0.02).of(1_000, 10**9) == pytest.approx(0.0204)


@dataclass(frozen=True)
class Odd:
    name: str


def test_estimates_are_data_with_what_they_cost() -> None:
    decision = Decision((), (), Estimate(requests=2_000), Estimate(requests=10))
    data = Explanation(decision, prices=Prices(0.5)).to_dict()
    assert (data["before"]["money"], data["after"]["money"]) == (1.0, 0.005)
    assert words(html.table(["name"], [vars(Odd("<&>"))])) == "name<&>"
