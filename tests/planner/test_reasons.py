"""Reasons are data, and their sentences say what to do."""

import json
import re
from typing import Any

import pytest

from grebe.planner.reasons import RANK, SENTENCES, Code, Reason

ESTIMATES = {"with_ms": 1234.4, "without_ms": 987.0}
# What each code comes with; those without an entry need no arguments.
ARGUMENTS: dict[Code, dict[str, Any]] = {
    Code.UNSUPPORTED_RELATION: {"what": "a JDBC source"},
    Code.NOT_ACTIVE: {"state": "DELETED"},
    Code.SET_ASIDE: {"why": "data/by_ship/3.gix is missing"},
    Code.NOT_REFRESHABLE: {"why": "column l_shipdate is not there"},
    Code.NO_STAND_IN: {"kind": "lookup"},
    Code.EXCLUDED: {"by": "lake.only or a hint"},
    Code.READ_DIFFERENTLY: {"differs": ["options header", "time zones"]},
    Code.COL_SCHEMA_MISMATCH: {"columns": ["l_tax"]},
    Code.NOT_ANSWERED: {"what": "column l_tax"},
    Code.BASE_CHANGED: {"table": "orders"},
    Code.MISSING_REQUIRED_COL: {"columns": ["l_tax", "l_comment"]},
    Code.PARTIAL_NOT_IMPLIED: {"columns": ["l_shipdate"]},
    Code.HYBRID_OFF: {"appended": 3, "deleted": 1},
    Code.TOO_MUCH_APPENDED: {"share": 0.4512, "limit": 0.3},
    Code.TOO_MUCH_DELETED: {"share": 0.25, "limit": 0.2},
    Code.NO_LINEAGE: {"files": 2},
    Code.NO_FIRST_INDEXED_COL_COND: {"column": "l_partkey"},
    Code.NOT_ELIGIBLE_JOIN: {"column": "l_partkey"},
    Code.MISSING_INDEXED_COL: {"columns": ["l_suppkey"]},
    Code.NO_AVAIL_JOIN_INDEX_PAIR: {"other": "orders", "column": "o_orderkey", **ESTIMATES},
    Code.NO_COMPATIBLE_JOIN_INDEX_PAIR: {"buckets": 8, "pair": "by_order", "other": "orders", "pair_buckets": 7},
    Code.NO_PRUNER: {"kind": "covering"},
    Code.TOO_MANY_KEYS: {"rows": 123_456, "column": "l_partkey"},
    Code.TOO_MANY_ROWS: {"rows": 1_234_567},
    Code.NOT_CHEAPER: ESTIMATES,
    Code.ANOTHER_INDEX_APPLIED: {"applied": "by_part"},
}


@pytest.mark.parametrize("code", Code)
def test_every_code_has_a_sentence_that_names_what_it_is_about(code: Code) -> None:
    sentence = Reason(code, "by_ship", ARGUMENTS.get(code, {}), "lineitem").sentence
    assert "by_ship" in sentence or "lineitem" in sentence
    assert not re.search(r"[{}]", sentence)


def test_codes_sentences_and_ranks_are_the_same_set() -> None:
    assert set(SENTENCES) == set(Code) == set(RANK)


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (
            Code.MISSING_REQUIRED_COL,
            "index by_ship does not cover l_tax, l_comment: include that in the index, or leave it out of the query",
        ),
        (
            Code.TOO_MUCH_APPENDED,
            "index by_ship does not cover 45.1% of the bytes of lineitem, more than hybrid_max_appended = 0.3: refresh it, or "
            "raise that setting",
        ),
        (
            Code.NOT_CHEAPER,
            "index by_ship does not pay: the plan would take about 1,234 ms with it and 987 ms without",
        ),
        (
            Code.READ_DIFFERENTLY,
            "index by_ship was made from another reading of lineitem (options header, time zones differ): read it in the same "
            "way, or create an index from the reading that the query uses",
        ),
    ],
)
def test_a_sentence_reads(code: Code, sentence: str) -> None:
    assert Reason(code, "by_ship", ARGUMENTS[code], "lineitem").sentence == sentence


def test_a_reason_is_plain_json() -> None:
    reason = Reason(Code.NO_LINEAGE, "by_ship", {"files": 2}, "lineitem")
    assert json.loads(json.dumps(reason.to_dict())) == {
        "code": "NO_LINEAGE",
        "index": "by_ship",
        "relation": "lineitem",
        "arguments": {"files": 2},
        "sentence": reason.sentence,
    }


def test_being_beaten_by_another_index_is_closer_to_use_than_not_covering_a_column() -> None:
    assert RANK[Code.ANOTHER_INDEX_APPLIED] > RANK[Code.MISSING_REQUIRED_COL] > RANK[Code.NOT_ACTIVE]
