"""The text of an explanation, word by word, and its data."""

import json

from grebe.files import FileIds
from grebe.planner.decision import Decision, Estimate, FromMetadata, StandIn
from grebe.planner.explain import Explanation
from grebe.planner.explain_text import Actual
from grebe.planner.reasons import Code, Reason
from tests.planner.lake import MB, Source, covering

ORDERS = Source("orders", {"key": "long", "customer": "long", "day": "date"}, 1_500_000, 58 * MB)
BEFORE = Estimate(21, 64_821_326, 42, 4, 252_834_375, 3, 4, 6_231.9)
AFTER = Estimate(8, 912_345, 16, 1, 18_000, 0, 4, 86.36)


def stand_in(**changes: object) -> StandIn:
    copy = covering(ORDERS, "by_customer", ["customer"], ["key"]).copy
    assert copy is not None
    facts = {
        "relation": 0,
        "index": "by_customer",
        "table": ORDERS.uri,
        "copy": copy,
        "content": (1, 2, 5),
        "buckets": 8,
        "ordered": True,
        "drop": FileIds.of([]),
        "direct": False,
        "name": "orders",
    }
    return StandIn(**{**facts, **changes})  # type: ignore[arg-type]  # fields of their types, given by name


DECISION = Decision(
    choices=(
        stand_in(),
        stand_in(
            relation=1, buckets=0, ordered=False, drop=FileIds.of([3, 4]), direct=True, appended=0.104, deleted=0.05
        ),
        FromMetadata(2, "by_day", "file:///lake/events", (77,), "lake.events"),
    ),
    reasons=(
        Reason(Code.CACHED, "", {}, "db.people"),
        Reason(Code.MISSING_REQUIRED_COL, "by_ship", {"columns": ["l_tax"]}, "lineitem"),
        Reason(Code.NOT_CHEAPER, "by_part", {"with_ms": 120.4, "without_ms": 86.0}, "lineitem"),
    ),
    before=BEFORE,
    after=AFTER,
)

FULL = """\
Indexes used
  orders: by_customer, 3 of 8 index files, as 8 hash partitions in order
  orders: by_customer, 3 of 8 index files
    10.4% of the table's bytes are not covered and read directly
    rows of 2 files that the query does not read are left out by lineage
  lake.events: by_day, answered from what is known of its files, without reading them

Indexes not used
  db.people [CACHED]
    db.people is cached, so Spark reads it from memory: uncache it to let its indexes serve it
  lineitem: by_ship [MISSING_REQUIRED_COL]
    index by_ship does not cover l_tax: include that in the index, or leave it out of the query
  lineitem: by_part [NOT_CHEAPER]
    index by_part does not pay: the plan would take about 120 ms with it and 86 ms without

Estimates
                    before     after  actual
  files                 21         8       9
  bytes read       64.8 MB    912 kB  1.3 MB
  requests              42        16
  paid for them   $1.7e-05  $6.4e-06
  shuffles               4         1
  bytes shuffled    253 MB   18.0 kB
  sorts                  3         0
  broadcasts             4         4
  milliseconds       6,232        86     102

Plan without indexes
  Sort
  +- Exchange
     +- FileScan

Plan with indexes
  FileScan"""

NOTHING = """\
Indexes used
  none

Estimates
                  before  after
  files                0      0
  bytes read         0 B    0 B
  requests             0      0
  paid for them       $0     $0
  shuffles             0      0
  bytes shuffled     0 B    0 B
  sorts                0      0
  broadcasts           0      0
  milliseconds         0      0"""


def test_an_explanation_for_people() -> None:
    explanation = Explanation(
        DECISION, "Sort\n+- Exchange\n   +- FileScan\n", "FileScan\n", Actual(9, 1_345_678, 101.7)
    )
    assert str(explanation) == FULL


def test_an_explanation_of_nothing() -> None:
    assert str(Explanation(Decision((), ()))) == NOTHING


def test_an_explanation_for_programs() -> None:
    data = json.loads(json.dumps(Explanation(DECISION, "before", "after", Actual(9, 1_345_678, 101.7)).to_dict()))
    assert data["used"] == ["by_customer", "by_day"]
    assert [reason["code"] for reason in data["not_used"]] == ["CACHED", "MISSING_REQUIRED_COL", "NOT_CHEAPER"]
    assert data["not_used"][1]["sentence"].startswith("index by_ship does not cover l_tax")
    assert data["before"]["shuffles"] == 4
    assert data["after"]["milliseconds"] == 86.36
    assert data["actual"] == {"files": 9, "bytes": 1_345_678, "milliseconds": 101.7}
    assert (data["plan_before"], data["plan_after"]) == ("before", "after")
    assert data["choices"] == [
        {
            "relation": "orders",
            "table": ORDERS.uri,
            "index": "by_customer",
            "older_versions": {},
            "how": "stand-in",
            "buckets": 8,
            "ordered": True,
            "content_files": 3,
            "content_files_of": 8,
            "appended": 0.0,
            "deleted": 0.0,
        },
        {
            "relation": "orders",
            "table": ORDERS.uri,
            "index": "by_customer",
            "older_versions": {},
            "how": "stand-in",
            "buckets": 0,
            "ordered": False,
            "content_files": 3,
            "content_files_of": 8,
            "appended": 0.104,
            "deleted": 0.05,
        },
        {
            "relation": "lake.events",
            "table": "file:///lake/events",
            "index": "by_day",
            "older_versions": {},
            "how": "metadata",
        },
    ]


def test_an_answer_from_metadata_is_not_shown() -> None:
    assert "77" not in str(Explanation(DECISION))
    assert 77 not in [value for choice in Explanation(DECISION).to_dict()["choices"] for value in choice.values()]


def test_large_sizes_have_large_units() -> None:
    sizes = Estimate(bytes=12_345_678_901, shuffle_bytes=98_765_432_109_876)
    text = str(Explanation(Decision((), (), sizes, sizes)))
    assert "12.3 GB" in text
    assert "98.8 TB" in text
