"""A decision as the text that the Java part carries out."""

import json
from collections.abc import Mapping
from typing import Any

from grebe.files import FileIds
from grebe.indexes.kind import FILE_COLUMN
from grebe.log.entry import NO_FILES
from grebe.planner.decision import ByKeys, Decision, FromMetadata, FromView, Narrow, StandIn
from grebe.planner.parts import Parts
from grebe.planner.query import Query, Relation
from grebe.spark import scans


def to_text(decision: Decision, query: Query, snapshots: Mapping[str, str]) -> str:
    """Empty if nothing is to be done. `snapshots`: table -> its registered files in the JVM."""
    restricted = [relation for relation in query.relations if relation.beyond is not None]
    if not decision.choices and not restricted:
        return ""
    stand_ins, answers, views = [], [], []
    narrowed: dict[int, dict[str, Any]] = {}
    for choice in decision.choices:
        if isinstance(choice, FromMetadata):
            answers.append(_answer(choice, query.relations[choice.relation], snapshots))
        elif isinstance(choice, FromView):
            views.append(_view(choice, query.relations[choice.relation], snapshots[choice.table]))
        elif isinstance(choice, Narrow):
            narrowed.setdefault(choice.relation, _whole(choice, query, snapshots)).update(
                without=_ranges(choice.without), served=_ranges(choice.without), ranges=choice.parts
            )
        elif isinstance(choice, ByKeys):
            narrowed.setdefault(choice.relation, _whole(choice, query, snapshots)).update(
                keys=_keys(choice, snapshots[choice.table])
            )
        else:
            stand_ins.append(_stand_in(choice, query.relations[choice.relation], snapshots[choice.table]))
    for number, entry in narrowed.items():
        entry["shown"] = scans.narrowed([one for one in decision.choices if one.relation == number])
    elsewhere = {one["relation"] for one in (*stand_ins, *answers, *views)}
    for relation in restricted:
        if relation.number not in elsewhere:
            entry = narrowed.setdefault(relation.number, _as_of(relation, snapshots))
            entry.update(without=_joined(entry["without"], relation), others=False)
    return json.dumps(
        {
            "used": _used(decision),
            "stand_ins": stand_ins,
            "narrowed": list(narrowed.values()),
            "answers": answers,
            "views": views,
        }
    )


def _used(decision: Decision) -> dict[str, Any]:
    """Handed on as it is to whoever hears of the query when it has run."""
    return {
        "indexes": decision.used,
        "without": decision.before.milliseconds,
        "with": decision.after.milliseconds,
    }


def _as_of(relation: Relation, snapshots: Mapping[str, str]) -> dict[str, Any]:
    """No index, but only the files of a snapshot."""
    snapshot = snapshots[relation.table or ""]
    return {
        "relation": relation.number,
        "shown": scans.as_of(relation),
        "listed": _ranges(relation.listed),
        "without": "",
        "served": "",
        "others": False,
        "ranges": {},
        "keys": None,
        "snapshot": snapshot,
    }


def _joined(ranges: str, relation: Relation) -> str:
    more = _ranges(relation.beyond or NO_FILES)
    return f"{ranges},{more}" if ranges and more else ranges or more


def _answer(choice: FromMetadata, relation: Relation, snapshots: Mapping[str, str]) -> dict[str, Any]:
    return {
        "relation": choice.relation,
        "values": [None if value is None else str(value) for value in choice.values],
        "shown": scans.answered(choice, relation),
        "listed": _ranges(relation.listed),
        "served": _ranges(relation.listed - (relation.beyond or NO_FILES)),
        "snapshot": snapshots[relation.table or ""],
    }


def _whole(choice: Narrow | ByKeys, query: Query, snapshots: Mapping[str, str]) -> dict[str, Any]:
    return {
        "relation": choice.relation,
        "listed": _ranges(query.relations[choice.relation].listed),
        "without": "",
        "served": "",
        "others": True,
        "ranges": {},
        "keys": None,
        "snapshot": snapshots[choice.table],
    }


def _keys(choice: ByKeys, snapshot: str) -> dict[str, Any]:
    lookup = {
        "table": choice.table,
        "snapshot": snapshot,
        "index": choice.index,
        "replaced_at": choice.replaced_at,
        "path": choice.path,
        "type": choice.type,
    }
    return {
        "side": "left" if choice.left else "right",
        "key": choice.key,
        "column": choice.column,
        "broadcast": choice.broadcast,
        "most": choice.most,
        "lookup": json.dumps(lookup),
    }


def restriction_text(without: FileIds, parts: Parts) -> str:
    """What is left of a scan that runs already."""
    return json.dumps({"without": _ranges(without), "ranges": parts})


def _stand_in(choice: StandIn, relation: Relation, snapshot: str) -> dict[str, Any]:
    copy, layout = choice.copy, choice.copy.layout
    kept = set(choice.content)
    runs = [[place for place in run.files if place in kept] for run in copy.runs]
    return {
        "relation": choice.relation,
        "content": copy.key,
        "schema": copy.schema,
        "columns": _columns(choice, relation),
        "runs": [run for run in runs if run] or [[]],
        "buckets": choice.buckets,
        "written": layout.buckets,
        "bucket_by": layout.bucket_by,
        "order": layout.sort_by if choice.ordered else (),
        "bounded": copy.bounded,
        "drop": _ranges(choice.drop),
        "lineage": FILE_COLUMN,
        "direct": choice.direct,
        "listed": _ranges(relation.listed),
        # Read from the index, or not at all.
        "covered": _ranges((copy.covered - relation.deleted) | (relation.beyond or NO_FILES)),
        "served": _ranges((copy.covered - relation.deleted) & relation.listed),
        "others": relation.beyond is None,
        "covered_share": 1.0 - choice.appended,
        "shown": scans.stand_in(choice),
        "shown_rest": scans.beside(choice, relation),
        "snapshot": snapshot,
    }


def _view(choice: FromView, relation: Relation, snapshot: str) -> dict[str, Any]:
    """As a stand-in, none of whose columns is one of the relation's."""
    assert choice.match is not None
    match = choice.match
    return {
        **_stand_in(choice, relation, snapshot),
        "columns": [],
        "block": choice.block,
        "outputs": match.outputs,
        "groups": match.groups,
        "filters": match.filters,
        "beside": match.beside,
    }


def _columns(choice: StandIn, relation: Relation) -> list[list[Any]]:
    """[[attribute, field…], column of the content]."""
    numbers = {attribute.path[0]: attribute.id for attribute in relation.attributes if attribute.id >= 0}
    return [[[numbers[path[0]], *path[1:]], name] for path, name in choice.copy.columns.items() if path[0] in numbers]


def _ranges(files: FileIds) -> str:
    return ",".join(f"{start}-{stop - 1}" for start, stop in files.ranges)
