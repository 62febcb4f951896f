"""What must hold in every state: small named functions, run before every write, on every state that is read from a checkpoint or
the hint, and by the simulation after every step. Of an entry that is read, only what it touches is looked at: what it leaves alone
held before.

Each gives the problems it finds, none if all is well.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

from grebe.log.entry import (
    Entry,
    FilesRegistered,
    IndexChanged,
    IndexCreated,
    OperationBegun,
    SegmentsMerged,
    TableSeen,
    Verb,
)
from grebe.log.states import DELETED, TableState, may_run_together


def ids_were_given_once(state: TableState) -> Iterator[str]:
    expected = 0
    for segment in state.segments:
        if segment.first_id != expected:
            yield f"segment {segment.path} starts at file id {segment.first_id}, not {expected}"
        expected = segment.first_id + segment.count
    if expected != state.next_file_id:
        yield f"the next file id is {state.next_file_id}, but the segments end at {expected}"


def held_files_are_registered(state: TableState) -> Iterator[str]:
    for index in state.indexes.values():
        for held in (index.held, *(version.held for version in index.kept)):
            if held.ranges and held.ranges[-1][1] > state.next_file_id:
                yield f"index {index.name} holds rows of a file id that was never given"


def no_file_is_both_covered_and_dormant(state: TableState) -> Iterator[str]:
    for index in state.indexes.values():
        if not index.covered.isdisjoint(index.dormant):
            yield f"index {index.name} covers files whose rows it holds as dormant"


def content_has_one_owner(state: TableState) -> Iterator[str]:
    owner: dict[str, str] = {}
    for index in state.indexes.values():
        for path in index.paths:
            if path in owner:
                yield f"{path} belongs to {owner[path]} and to {index.name}"
            owner[path] = index.name
        if len({content.path for content in index.content}) < len(index.content):
            yield f"index {index.name} names an object twice"


def content_lies_in_its_index_folder(state: TableState) -> Iterator[str]:
    for index in state.indexes.values():
        for path in index.paths:
            if not path.startswith(f"data/{index.name}/"):
                yield f"{path} lies outside the folder of index {index.name}"


def kept_versions_hold_what_the_content_does_not(state: TableState) -> Iterator[str]:
    for index in state.indexes.values():
        for version in index.kept:
            if version.held <= index.held:
                yield f"index {index.name} keeps version {version.version}, which holds nothing more than its content"


def seen_files_are_registered(state: TableState) -> Iterator[str]:
    if state.seen is not None and state.seen.files.ranges and state.seen.files.ranges[-1][1] > state.next_file_id:
        yield "the table was seen with a file id that was never given"


def segments_have_names_of_their_own(state: TableState) -> Iterator[str]:
    if len({segment.path for segment in state.segments}) < len(state.segments):
        yield "a list of files is there twice"


def nothing_in_use_is_retired(state: TableState) -> Iterator[str]:
    in_use = {s.path for s in state.segments} | state.content_paths
    for path in in_use & state.retired.keys():
        yield f"{path} is in use and retired"


def running_operations_may_run_together(state: TableState) -> Iterator[str]:
    verbs: dict[str, set[Verb]] = {}
    for operation in state.operations.values():
        for name in operation.indexes:
            verbs.setdefault(name, set()).add(operation.verb)
    for name, running in verbs.items():
        for one, other in itertools.combinations(sorted(running), 2):
            if not may_run_together(one, other):
                yield f"{one} and {other} run side by side on index {name}"


def deleted_indexes_say_since_when(state: TableState) -> Iterator[str]:
    for index in state.indexes.values():
        if (index.state == DELETED) != (index.deleted_at is not None):
            yield f"index {index.name} is {index.state}, deleted at {index.deleted_at}"


def created_indexes_were_announced(state: TableState) -> Iterator[str]:
    for operation in state.operations.values():
        if operation.verb is Verb.CREATE and set(operation.specs) != set(operation.indexes):
            yield f"create {operation.id} does not say what it makes"


_Invariant = Callable[[TableState], Iterator[str]]
ALL: tuple[_Invariant, ...] = (
    ids_were_given_once,
    held_files_are_registered,
    no_file_is_both_covered_and_dormant,
    content_has_one_owner,
    content_lies_in_its_index_folder,
    kept_versions_hold_what_the_content_does_not,
    seen_files_are_registered,
    segments_have_names_of_their_own,
    nothing_in_use_is_retired,
    running_operations_may_run_together,
    deleted_indexes_say_since_when,
    created_indexes_were_announced,
)


def broken(state: TableState) -> list[str]:
    """Every invariant that does not hold, in words."""
    return [problem for invariant in ALL for problem in invariant(state)]


_OF_SEGMENTS = (ids_were_given_once, segments_have_names_of_their_own, nothing_in_use_is_retired)
_OF_INDEXES = (held_files_are_registered, content_lies_in_its_index_folder)
_OF_OPERATIONS = (created_indexes_were_announced,)


def broken_by(entry: Entry, state: TableState) -> list[str]:
    """What an entry that was read has broken of the state after it, in words. All else holds by the way changes are applied."""
    names = {change.name for change in entry.changes if isinstance(change, IndexCreated | IndexChanged)}
    looked_at: list[tuple[TableState, tuple[_Invariant, ...]]] = []
    if names:
        touched = {name: index for name, index in state.indexes.items() if name in names}
        looked_at.append((replace(state, indexes=touched), _OF_INDEXES))
    if any(isinstance(change, FilesRegistered | SegmentsMerged) for change in entry.changes):
        looked_at.append((state, _OF_SEGMENTS))
    if any(isinstance(change, OperationBegun) for change in entry.changes):
        looked_at.append((state, _OF_OPERATIONS))
    if any(isinstance(change, TableSeen) for change in entry.changes):
        looked_at.append((state, (seen_files_are_registered,)))
    return [problem for part, some in looked_at for invariant in some for problem in invariant(part)]
