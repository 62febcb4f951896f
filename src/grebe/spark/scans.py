"""What a scan that Grebe changed is called in plans and in Spark's UI: which indexes, and how much is read."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from grebe.planner.decision import ByKeys, Choice, FromMetadata, Narrow, StandIn
from grebe.planner.query import Relation


def stand_in(choice: StandIn) -> str:
    copy = choice.copy
    if copy.layout.buckets:
        buckets = len(pc.unique(copy.content["bucket"].take(pa.array(choice.content, pa.int64()))))
        much = f"{buckets:,} of {copy.layout.buckets:,} buckets"
    else:
        much = f"{len(choice.content):,} of {len(copy.content):,} files"
    return f"grebe: {_version_of(choice.index, choice.version)}, {much}"


def beside(choice: StandIn, relation: Relation) -> str:
    """Of the files that are read directly, since the index does not cover them."""
    covered = choice.copy.covered - relation.deleted
    files = len(relation.listed - covered) + relation.unregistered_files
    return f"grebe: {files:,} {'file' if files == 1 else 'files'} beside {choice.index}"


def narrowed(choices: Sequence[Choice]) -> str:
    """All that was decided for one relation."""
    names: list[str] = []
    much: list[str] = []
    for choice in choices:
        if isinstance(choice, Narrow):
            names += [_version_of(one, choice.versions.get(one)) for one in (choice.index, *choice.others)]
            much.append(f"{choice.files:,} of {choice.files_of:,} files")
        elif isinstance(choice, ByKeys):
            names.append(_version_of(choice.index, choice.version))
            much.append("those with keys of the join")
    return f"grebe: {' and '.join(dict.fromkeys(names))}, {', '.join(much)}"


def as_of(relation: Relation) -> str:
    files = len(relation.listed)
    beyond = 0 if relation.beyond is None else len(relation.beyond)
    return f"grebe: as of the last refresh, {files:,} of {files + beyond:,} files"


def answered(choice: FromMetadata, relation: Relation) -> str:
    files = len(relation.listed) + relation.unregistered_files
    return f"grebe: {_version_of(choice.index, choice.version)}, 0 of {files:,} files"


def _version_of(index: str, version: int | None) -> str:
    return index if version is None else f"{index} in version {version}"
