"""Why an index is not used, as data: a code, arguments, and a sentence that says what to do about it.

The codes stand in the order of the checks: a later one means that the index came closer to being used. Arguments are plain JSON
data, and neither they nor the sentences hold a value of the query or of the data.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any


class Code(StrEnum):
    # About a scan as a whole: whatever indexes there are, none can serve it.
    STREAMING = "STREAMING"
    WRITE_TARGET = "WRITE_TARGET"
    CACHED = "CACHED"
    UNSUPPORTED_RELATION = "UNSUPPORTED_RELATION"
    USES_FILE_METADATA = "USES_FILE_METADATA"
    # About an index, whatever the query asks.
    NOT_ACTIVE = "NOT_ACTIVE"
    SET_ASIDE = "SET_ASIDE"
    NO_STAND_IN = "NO_STAND_IN"
    NO_PRUNER = "NO_PRUNER"
    EXCLUDED = "EXCLUDED"
    # About an index and a scan.
    READ_DIFFERENTLY = "READ_DIFFERENTLY"
    COL_SCHEMA_MISMATCH = "COL_SCHEMA_MISMATCH"
    NOT_ANSWERED = "NOT_ANSWERED"
    BASE_CHANGED = "BASE_CHANGED"
    MISSING_REQUIRED_COL = "MISSING_REQUIRED_COL"
    PARTIAL_NOT_IMPLIED = "PARTIAL_NOT_IMPLIED"
    NO_COMMON_FILES = "NO_COMMON_FILES"
    HYBRID_OFF = "HYBRID_OFF"
    TOO_MUCH_APPENDED = "TOO_MUCH_APPENDED"
    TOO_MUCH_DELETED = "TOO_MUCH_DELETED"
    NO_LINEAGE = "NO_LINEAGE"
    # It could serve, but would not help.
    NO_FIRST_INDEXED_COL_COND = "NO_FIRST_INDEXED_COL_COND"
    NOT_ELIGIBLE_JOIN = "NOT_ELIGIBLE_JOIN"
    MISSING_INDEXED_COL = "MISSING_INDEXED_COL"
    BUCKETING_OFF = "BUCKETING_OFF"
    BROADCAST_INSTEAD = "BROADCAST_INSTEAD"
    NO_AVAIL_JOIN_INDEX_PAIR = "NO_AVAIL_JOIN_INDEX_PAIR"
    NO_COMPATIBLE_JOIN_INDEX_PAIR = "NO_COMPATIBLE_JOIN_INDEX_PAIR"
    SCAN_IS_CHEAP = "SCAN_IS_CHEAP"
    TOO_MANY_KEYS = "TOO_MANY_KEYS"
    TOO_MANY_ROWS = "TOO_MANY_ROWS"
    NOTHING_LEFT_OUT = "NOTHING_LEFT_OUT"
    NOT_CHEAPER = "NOT_CHEAPER"
    ANOTHER_INDEX_APPLIED = "ANOTHER_INDEX_APPLIED"
    # Instead of any other reason: nothing else helps.
    NOT_REFRESHABLE = "NOT_REFRESHABLE"


RANK: Mapping[str, int] = {code: rank for rank, code in enumerate(Code)}
"""How close to being used an index came."""

_ESTIMATES = "the plan would take about {with_ms:,.0f} ms with it and {without_ms:,.0f} ms without"

SENTENCES: Mapping[str, str] = {
    Code.STREAMING: "{relation} is read by a streaming query, and those are left alone",
    Code.WRITE_TARGET: "{relation} is what the command writes to: indexes serve only what a command reads",
    Code.CACHED: "{relation} is cached, so Spark reads it from memory: uncache it to let its indexes serve it",
    Code.UNSUPPORTED_RELATION: "{relation} is read in a way that no index can serve ({what}): read it as plain files, "
    "or as a table of a format that Grebe knows",
    Code.USES_FILE_METADATA: "the query asks in which file the rows of {relation} lie (input_file_name or _metadata), "
    "which only the files themselves can tell: leave that out",
    Code.NOT_ACTIVE: "index {index} is {state}, and only an ACTIVE one is used: wait for its creation to end, or restore it",
    Code.SET_ASIDE: "index {index} is set aside in this session ({why}): refresh it with mode='full' to write it anew",
    Code.NO_STAND_IN: "index {index} has nothing that could be read instead of {relation} (its kind is {kind})",
    Code.NO_PRUNER: "index {index} does not say where rows lie (its kind is {kind}), so that only Spark uses it",
    Code.EXCLUDED: "index {index} is ruled out by {by}: leave that away to let it be considered",
    Code.READ_DIFFERENTLY: "index {index} was made from another reading of {relation} ({differs} differ): read it in the same "
    "way, or create an index from the reading that the query uses",
    Code.COL_SCHEMA_MISMATCH: "index {index} knows {columns} with another type or field id than the query reads: "
    "refresh it with mode='full'",
    Code.NOT_ANSWERED: "view {index} does not answer the query, which asks for {what}: add that to the view, or leave it away",
    Code.BASE_CHANGED: "{table}, which view {index} joins, is not as it was: refresh the view",
    Code.MISSING_REQUIRED_COL: "index {index} does not cover {columns}: include that in the index, or leave it out of the query",
    Code.PARTIAL_NOT_IMPLIED: "index {index} holds only the rows that its WHERE on {columns} lets through, and the query's own "
    "conditions do not imply it: repeat that condition in the query, or create an index without it",
    Code.NO_COMMON_FILES: "index {index} covers none of the files that the query reads of {relation}: refresh it (files of CSV and "
    "JSON with records that no index can answer for stay uncovered: docs/guides/fresh.md says which)",
    Code.HYBRID_OFF: "index {index} does not match the files of {relation} ({appended} not covered, {deleted} gone) and the "
    "setting hybrid is off: refresh it, or set hybrid to true",
    Code.TOO_MUCH_APPENDED: "index {index} does not cover {share:.1%} of the bytes of {relation}, more than hybrid_max_appended "
    "= {limit:g}: refresh it, or raise that setting",
    Code.TOO_MUCH_DELETED: "{share:.1%} of the bytes behind index {index} belong to files that the query does not read, more than "
    "hybrid_max_deleted = {limit:g}: refresh it, or raise that setting",
    Code.NO_LINEAGE: "index {index} was made without lineage, so that rows of {files} files which are gone cannot be left out: "
    "refresh it with mode='full', or create it with lineage=True",
    Code.NO_FIRST_INDEXED_COL_COND: "the query neither filters, joins nor groups by {column}, which index {index} is laid out by",
    Code.NOT_ELIGIBLE_JOIN: "{column} of index {index} is only compared inside expressions, or not for equality: join and group "
    "by the plain column",
    Code.MISSING_INDEXED_COL: "index {index} is hashed by {columns} too, which the query does not join or group by: index "
    "fewer columns",
    Code.BUCKETING_OFF: "index {index} could save a shuffle, but Spark's setting spark.sql.sources.bucketing.enabled is false: "
    "set it to true",
    Code.BROADCAST_INSTEAD: "Spark joins {relation} by broadcasting the smaller side, so that there is no shuffle that index "
    "{index} could save: that is fine, or lower spark.sql.autoBroadcastJoinThreshold",
    Code.NO_AVAIL_JOIN_INDEX_PAIR: "no index of {other} serves its side of the join on {column}, and index {index} alone does not "
    "pay (" + _ESTIMATES + "): create one there",
    Code.NO_COMPATIBLE_JOIN_INDEX_PAIR: "index {index} has {buckets} buckets and index {pair} of {other} has {pair_buckets}, which "
    "no number above 1 divides: create both with the same number",
    Code.SCAN_IS_CHEAP: "reading {relation} takes hardly longer than asking index {index} where its rows lie",
    Code.TOO_MANY_KEYS: "the other side of the join on {column} is taken to have {rows:,} rows, and looking up so many keys in "
    "index {index} does not pay: filter that side, or collect statistics of its table",
    Code.TOO_MANY_ROWS: "index {index} may find {rows:,} rows of {relation}, and looking up so many takes longer "
    "than reading all files",
    Code.NOTHING_LEFT_OUT: "rows that index {index} finds lie in every file of {relation} that it knows, so that none "
    "can be left out",
    Code.NOT_CHEAPER: "index {index} does not pay: " + _ESTIMATES,
    Code.ANOTHER_INDEX_APPLIED: "index {applied} serves {relation} better than index {index}",
    Code.NOT_REFRESHABLE: "index {index} can no longer be refreshed ({why}): delete it, or create it anew with replace=True",
}


@dataclass(frozen=True, slots=True)
class Reason:
    code: str
    index: str
    """Empty if it is about a relation as a whole, whatever indexes there are."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    relation: str = ""
    """The table, as the query names it."""

    @property
    def sentence(self) -> str:
        shown = {name: _shown(value) for name, value in self.arguments.items()}
        names = {"index": self.index, "relation": self.relation or "the table"}
        return SENTENCES[self.code].format_map({**shown, **names})

    def to_dict(self) -> dict[str, Any]:
        return {
            "code": str(self.code),
            "index": self.index,
            "relation": self.relation,
            "arguments": dict(self.arguments),
            "sentence": self.sentence,
        }


def unless_not_refreshable(reason: Reason, problem: str) -> Reason:
    """Return the reason or, for an index that can no longer be refreshed (`problem`), that instead."""
    return replace(reason, code=Code.NOT_REFRESHABLE, arguments={"why": problem}) if problem else reason


def _shown(value: Any) -> Any:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else value
