"""A second reader of the log, written from docs/internals/log.md alone: it shares no code with Grebe.

If it has to change, the page has to change with it. `read_table` gives the newest state of the log in a folder as plain data, under
the names that the page uses; sets of file ids are lists of `[start, end)`.
"""

import gzip
import hashlib
import json
import re
import struct
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

Plain = dict[str, Any]
Ranges = list[list[int]]
TOGETHER = {"delete", "optimize", "refresh", "repair"}
PREDICTION_DEFAULTS = {"scale_bytes": 1.0, "scale_seconds": 1.0}
PURPOSE_DEFAULTS: Plain = {"why": "", "predicted": {}, "most_bytes": None, "budgeted": []}
INDEX_DEFAULTS: Plain = {
    "deleted_at": None,
    "dormant": [],
    "kept": [],
    "measured": None,
    "upkeep_seconds": 0.0,
    "problem": "",
}
KEPT_DEFAULTS: Plain = {"table_version": ""}
SPEC_DEFAULTS: Plain = {"properties": {}}
CONTENT_DEFAULTS: Plain = {"rows": 0, "footer": 0}


class Damaged(Exception):
    """The log is damaged."""


class Newer(Exception):
    """Written in a form that this reader does not know."""


class NoTable(Exception):
    """There is no log."""


def read_table(folder: Path) -> Plain:
    """The newest state, with the `number` and `digest` of the entry after which it is the state, and the `files` by their ids."""
    state = _from_hint(folder) or _from_listing(folder)
    if state["number"] < 0:
        raise NoTable(folder)
    return {**state, "files": read_files(folder, state)}


def read_files(folder: Path, state: Plain) -> dict[int, Plain]:
    return {file["id"]: file for segment in state["segments"] for file in _segment_files(folder, segment)}


def empty_state() -> Plain:
    start = {"number": -1, "digest": "", "table": None, "next_file_id": 0}
    return {**start, "segments": [], "indexes": {}, "operations": {}, "retired": {}, "seen": None}


# Objects of two lines


def unseal(data: bytes) -> tuple[Plain, str]:
    line, _, seal = data.partition(b"\n")
    digest = hashlib.sha256(line).hexdigest()
    if seal != b'{"sha256":"' + digest.encode() + b'"}\n':
        raise Damaged("the seal does not fit")
    body = json.loads(line)
    if body["grebe"] > 1:
        raise Newer(body["grebe"])
    return body, digest


def _entry(folder: Path, number: int) -> tuple[Plain, str] | None:
    path = folder / "log" / f"{number:020d}.json"
    return unseal(path.read_bytes()) if path.exists() else None


def _saved_state(path: Path) -> Plain | None:
    """Of a checkpoint or the hint; None if there is none that can be used."""
    try:
        body, _ = unseal(gzip.decompress(path.read_bytes()))
    except (FileNotFoundError, Damaged, OSError, EOFError, zlib.error):
        return None
    state = {**empty_state(), **body["state"], "number": body["number"], "digest": body["digest"]}
    if state["table"]:
        state["table"] = _table(state["table"])
    state["indexes"] = {name: _index(index) for name, index in state["indexes"].items()}
    state["operations"] = {key: _operation(operation) for key, operation in state["operations"].items()}
    return state


# Opening


def _from_hint(folder: Path) -> Plain | None:
    hint = _saved_state(folder / "log" / "latest.json.gz")
    if hint is None:
        return None
    following = _entry(folder, hint["number"] + 1)
    if following is not None:
        return _read_on(folder, hint) if following[0]["previous"] == hint["digest"] else None
    named = _entry(folder, hint["number"])
    return hint if named is not None and named[1] == hint["digest"] else None


def _from_listing(folder: Path) -> Plain:
    listed = sorted(path.name for path in (folder / "log").glob("*"))
    entries = [int(name[:20]) for name in listed if re.fullmatch(r"\d{20}\.json", name)]
    checkpoints = [name for name in listed if re.fullmatch(r"checkpoint-\d{20}\.json\.gz", name)]
    start = empty_state()
    for name in reversed(checkpoints):
        saved = _saved_state(folder / "log" / name)
        named = _entry(folder, saved["number"]) if saved else None
        if saved and named and named[1] == saved["digest"]:
            start = saved
            break
    state = _read_on(folder, start)
    if entries and entries[-1] > state["number"]:
        raise Damaged(f"entry {state['number'] + 1} is missing")
    return state


def _read_on(folder: Path, state: Plain) -> Plain:
    while (found := _entry(folder, state["number"] + 1)) is not None:
        entry, digest = found
        if entry["number"] != state["number"] + 1 or entry["previous"] != state["digest"]:
            raise Damaged(f"entry {entry['number']} does not follow entry {state['number']}")
        for change in entry["changes"]:
            if change["change"] not in CHANGES:
                raise Newer(change["change"])
            state = CHANGES[change["change"]](state, change, entry)
        state = {**state, "number": entry["number"], "digest": digest}
    return state


# What each change does


def _table_created(state: Plain, change: Plain, entry: Plain) -> Plain:
    _possible(state["table"] is None)
    return {**state, "table": _table(change["table"])}


def _files_registered(state: Plain, change: Plain, entry: Plain) -> Plain:
    segment = change["segment"]
    _possible(segment["first_id"] == state["next_file_id"] and segment["count"] > 0)
    next_file_id = segment["first_id"] + segment["count"]
    return {**state, "next_file_id": next_file_id, "segments": [*state["segments"], segment]}


def _segments_merged(state: Plain, change: Plain, entry: Plain) -> Plain:
    old, replaced, segment = state["segments"], change["replaced"], change["segment"]
    paths = [each["path"] for each in old]
    _possible(bool(replaced) and replaced[0] in paths)
    start = paths.index(replaced[0])
    end = start + len(replaced)
    _possible(paths[start:end] == replaced)
    _possible(segment["first_id"] == old[start]["first_id"])
    _possible(segment["count"] == sum(each["count"] for each in old[start:end]))
    return {**_retire(state, replaced, entry["number"]), "segments": [*old[:start], segment, *old[end:]]}


def _operation_begun(state: Plain, change: Plain, entry: Plain) -> Plain:
    _possible(change["id"] not in state["operations"])
    for other in state["operations"].values():
        same_index = set(other["indexes"]) & set(change["indexes"])
        verbs = {other["verb"], change["verb"]}
        _possible(not same_index or len(verbs) == 1 or verbs <= TOGETHER)
    fields = {key: value for key, value in change.items() if key != "change"}
    operation = _operation({**fields, "number": entry["number"], "at_ms": entry["at_ms"]})
    return {**state, "operations": {**state["operations"], change["id"]: operation}}


def _operation_ended(state: Plain, change: Plain, entry: Plain) -> Plain:
    _possible(change["id"] in state["operations"])
    return {**state, "operations": _without(state["operations"], {change["id"]})}


def _index_created(state: Plain, change: Plain, entry: Plain) -> Plain:
    _possible(change["name"].casefold() not in {name.casefold() for name in state["indexes"]})
    _possible_as_new(state, change["content"])
    index = {
        "name": change["name"],
        "spec": change["spec"],
        "state": "ACTIVE",
        "version": change["version"],
        "content": change["content"],
        "covered": change["covered"],
        "table_version": change.get("table_version", ""),
        "created_ms": entry["at_ms"],
        "refreshed_ms": entry["at_ms"],
        "measured": change.get("measured"),
    }
    return _with_index(state, _index(index))


def _index_changed(state: Plain, change: Plain, entry: Plain) -> Plain:
    index = _index_in(state, change, "ACTIVE")
    add, remove = change.get("add", []), change.get("remove", [])
    cover, uncover, revive = (_ids(change.get(key, [])) for key in ("cover", "uncover", "revive"))
    covered, dormant = _ids(index["covered"]), _ids(index["dormant"])
    paths = {content["path"] for content in index["content"]}
    _possible(set(remove) <= paths)
    purge = (dormant | uncover) if set(remove) == paths else set()
    if change.get("purge") is not None:
        purge = _ids(change["purge"])
    _possible(uncover <= covered and revive <= dormant and purge <= dormant | uncover and not purge & revive)
    covered, dormant = (covered - uncover) | revive, (dormant | uncover) - purge - revive
    _possible(not cover & (covered | dormant))
    _possible_as_new(state, add)
    after = {
        **index,
        "version": max(index["version"], change["version"]),
        "content": [content for content in index["content"] if content["path"] not in remove] + add,
        "covered": _ranges(covered | cover),
        "dormant": _ranges(dormant),
        "upkeep_seconds": index["upkeep_seconds"] + change.get("seconds", 0.0),
        "problem": change["problem"] if change.get("problem") is not None else index["problem"],
    }
    if change.get("table_version") is not None:
        after |= {"table_version": change["table_version"], "refreshed_ms": entry["at_ms"]}
    if change.get("properties") is not None:
        properties = {**index["spec"]["properties"], **change["properties"]}
        after["spec"] = {**index["spec"], "properties": properties}
    if change.get("columns") is not None:
        after["spec"] = {**after["spec"], "columns": change["columns"]}
    after = _index({**after, "kept": _kept(index, after, change.get("keep"), entry["number"])})
    return _with_index(_retire(state, _paths(index) - _paths(after), entry["number"]), after)


def _kept(before: Plain, after: Plain, keep: Plain | None, number: int) -> list[Plain]:
    older = list(before["kept"])
    if keep is not None and before["content"]:
        version = {key: before[key] for key in ("version", "spec", "content", "table_version")}
        held = _ranges(_ids(before["covered"]) | _ids(before["dormant"]))
        older.insert(0, {**version, "held": held, "replaced_at": number})
    now = _ids(after["covered"]) | _ids(after["dormant"])
    older = [version for version in older if not _ids(version["held"]) <= now]
    if keep is None:
        return older
    most = keep.get("bytes")
    sizes = [sum(content["size"] for content in version["content"]) for version in older]
    fitting = [most is None or sum(sizes[: place + 1]) <= most for place in range(len(older))]
    return [version for place, version in enumerate(older) if place < keep["versions"] and all(fitting[: place + 1])]


def _paths(index: Plain) -> set[str]:
    return {content["path"] for version in (index, *index["kept"]) for content in version["content"]}


def _index_deleted(state: Plain, change: Plain, entry: Plain) -> Plain:
    index = _index_in(state, change, "ACTIVE")
    return _with_index(state, {**index, "state": "DELETED", "deleted_at": entry["number"]})


def _index_restored(state: Plain, change: Plain, entry: Plain) -> Plain:
    return _with_index(state, {**_index_in(state, change, "DELETED"), "state": "ACTIVE", "deleted_at": None})


def _index_dropped(state: Plain, change: Plain, entry: Plain) -> Plain:
    _possible(change["name"] in state["indexes"])
    index = state["indexes"][change["name"]]
    since = entry["number"] if index["deleted_at"] is None else index["deleted_at"]
    state = _retire(state, _paths(index), since)
    return {**state, "indexes": _without(state["indexes"], {change["name"]})}


def _table_seen(state: Plain, change: Plain, entry: Plain) -> Plain:
    seen = {"files": change["files"], "version": change.get("version", ""), "at_ms": entry["at_ms"]}
    return {**state, "seen": seen}


def _content_forgotten(state: Plain, change: Plain, entry: Plain) -> Plain:
    return {**state, "retired": _without(state["retired"], set(change["paths"]))}


CHANGES: dict[str, Callable[[Plain, Plain, Plain], Plain]] = {
    "TableCreated": _table_created,
    "FilesRegistered": _files_registered,
    "SegmentsMerged": _segments_merged,
    "OperationBegun": _operation_begun,
    "OperationEnded": _operation_ended,
    "IndexCreated": _index_created,
    "IndexChanged": _index_changed,
    "IndexDeleted": _index_deleted,
    "IndexRestored": _index_restored,
    "IndexDropped": _index_dropped,
    "TableSeen": _table_seen,
    "ContentForgotten": _content_forgotten,
}


def _possible(holds: bool) -> None:
    if not holds:
        raise Damaged("an impossible change")


def _possible_as_new(state: Plain, content: list[Plain]) -> None:
    paths = [each["path"] for each in content]
    used = {path for index in state["indexes"].values() for path in _paths(index)}
    _possible(len(set(paths)) == len(paths) and not set(paths) & (used | state["retired"].keys()))


def _index_in(state: Plain, change: Plain, wanted: str) -> Plain:
    _possible(change["name"] in state["indexes"])
    index: Plain = state["indexes"][change["name"]]
    _possible(index["state"] == wanted)
    return index


def _with_index(state: Plain, index: Plain) -> Plain:
    return {**state, "indexes": {**state["indexes"], index["name"]: index}}


def _retire(state: Plain, paths: Iterable[str], since: int) -> Plain:
    return {**state, "retired": {**state["retired"], **dict.fromkeys(paths, since)}}


def _without(mapping: Plain, keys: set[str]) -> Plain:
    return {key: value for key, value in mapping.items() if key not in keys}


def _ids(ranges: Ranges) -> set[int]:
    return {number for start, end in ranges for number in range(start, end)}


def _ranges(ids: set[int]) -> Ranges:
    ranges: Ranges = []
    for number in sorted(ids):
        if ranges and ranges[-1][1] == number:
            ranges[-1][1] += 1
        else:
            ranges.append([number, number + 1])
    return ranges


# Defaults of fields that were left out


def _table(table: Plain) -> Plain:
    return {"reading": {}, **table}


def _index(index: Plain) -> Plain:
    kept = [_version({**KEPT_DEFAULTS, **version}) for version in index.get("kept", [])]
    measured = index.get("measured")
    if measured is not None:
        measured = {**measured, "predicted": {**PREDICTION_DEFAULTS, **measured["predicted"]}}
    return {**INDEX_DEFAULTS, **_version(index), "kept": kept, "measured": measured}


def _version(version: Plain) -> Plain:
    spec = {**SPEC_DEFAULTS, **version["spec"]}
    return {**version, "spec": spec, "content": [{**CONTENT_DEFAULTS, **each} for each in version["content"]]}


def _operation(operation: Plain) -> Plain:
    specs = {name: {**SPEC_DEFAULTS, **spec} for name, spec in operation.get("specs", {}).items()}
    purpose = {**PURPOSE_DEFAULTS, **operation.get("purpose", {})}
    predicted = {name: {**PREDICTION_DEFAULTS, **one} for name, one in purpose["predicted"].items()}
    return {**operation, "specs": specs, "purpose": {**purpose, "predicted": predicted}}


# The file list


def _segment_files(folder: Path, segment: Plain) -> list[Plain]:
    data = (folder / segment["path"]).read_bytes()
    if len(data) < 32 or data[:4] != b"GRBF":
        raise Damaged(f"{segment['path']} is no list of files")
    (length,) = struct.unpack_from("<Q", data, 8)
    payload = data[32:]
    digest = hashlib.blake2b(data[:16] + payload, digest_size=16).digest()
    if len(payload) != length or digest != data[16:32]:
        raise Damaged(f"{segment['path']} does not match its digest")
    if data[4] > 1:
        raise Newer(data[4])
    table = pa.ipc.open_stream(payload).read_all()
    root = table.schema.metadata[b"grebe.root"].decode()
    files: list[Plain] = table.to_pylist()
    first = segment["first_id"]
    if [file["id"] for file in files] != list(range(first, first + segment["count"])):
        raise Damaged(f"{segment['path']} holds other ids than the log says")
    return [{"end": None, **file, "uri": _uri(root, file["directory"], file["name"])} for file in files]


def _uri(root: str, directory: str, name: str) -> str:
    if "://" in directory:
        return f"{directory}/{name}"
    return "/".join(part for part in (root, directory, name) if part)
