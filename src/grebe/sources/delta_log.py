"""What the log of a Delta table says by itself, read through our stores: when versions were committed, and which features it has.

A version is committed at the time of modification of its file or, where `delta.enableInCommitTimestamps` is set, at the time that
the commit itself names. Times of files may run backwards (copied logs, clocks that differ): each commit counts as at least one
millisecond later than the one before, as Delta Lake has it. Only versions that can still be made up from the log are considered:
from version 0 on or, once that is gone, from the first checkpoint on.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grebe.errors import GrebeError, Unsupported
from grebe.files.untrusted import FOREIGN, MOST_BYTES
from grebe.sources.marks import MARKS
from grebe.store.protocol import Store

COMMIT = re.compile(r"(\d{20})\.json", re.ASCII)
CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10})|\.[0-9a-fA-F-]+)?\.(?:parquet|json)", re.ASCII)
_ENABLED = "delta.enableInCommitTimestamps"
_SINCE_VERSION, _SINCE_TIME = "delta.inCommitTimestampEnablementVersion", "delta.inCommitTimestampEnablementTimestamp"
_FIRST_BYTES = 64 * 1024
_MOST_COMMITS = 32
"""Looked into for the protocol, from the newest backwards."""


@dataclass(frozen=True, slots=True)
class Commit:
    version: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class CommitTimes:
    """The commits of a table up to `last`, from the oldest version that can still be made up."""

    store: Store
    by_file: tuple[Commit, ...]
    """By the times of their files, made monotone; without a gap, oldest first."""
    configuration: Mapping[str, str]

    def at(self, asked_ms: int) -> Commit | None:
        """The last commit at or before that time; None if all are later."""
        if self.configuration.get(_ENABLED) != "true":
            return _last_until(self.by_file, asked_ms)
        since_version, since_ms = (int(self.configuration.get(key, "0")) for key in (_SINCE_VERSION, _SINCE_TIME))
        if asked_ms < since_ms:
            return _last_until([one for one in self.by_file if one.version < since_version], asked_ms)
        versions = [one.version for one in self.by_file if one.version >= since_version]
        found: Commit | None = None
        low, high = 0, len(versions)
        while low < high:
            middle = (low + high) // 2
            commit = Commit(versions[middle], self._told(versions[middle]))
            if commit.at_ms <= asked_ms:
                found, low = commit, middle + 1
            else:
                high = middle
        return found

    def _told(self, version: int) -> int:
        """The time that a commit names: its first action does."""
        path = _path(version)
        line, ended, _ = self.store.get_range(path, 0, _FIRST_BYTES).partition(b"\n")
        if not ended:
            line = self.store.get(path, MOST_BYTES).partition(b"\n")[0]
        try:
            told = json.loads(line)["commitInfo"]["inCommitTimestamp"]
        except FOREIGN as lacking:
            raise Unsupported(
                f"{self.store.uri}/{path} does not name its time first, though {_ENABLED} is set; give a version instead",
                detail="DELTA",
            ) from lacking
        return int(told)


def commit_times(store: Store, last: int, configuration: Mapping[str, str]) -> CommitTimes:
    names = {one.path.rpartition("/")[2]: one.modified_ms for one in store.list(MARKS["delta"])}
    files = {int(found[1]): names[name] for name in names if (found := COMMIT.fullmatch(name))}
    made: list[Commit] = []
    version = _oldest(files, names)
    while version in files and version <= last:
        made.append(Commit(version, max(files[version], made[-1].at_ms + 1) if made else files[version]))
        version += 1
    return CommitTimes(store, tuple(made), configuration)


def reader_features(store: Store) -> tuple[str, ...]:
    """What readers of the newest version must know, as far as the newest commits say so; for messages."""
    try:
        found = sorted(
            (name for one in store.list(MARKS["delta"]) if COMMIT.fullmatch(name := one.path.rpartition("/")[2])),
            reverse=True,
        )
        for name in found[:_MOST_COMMITS]:
            for line in store.get(f"{MARKS['delta']}/{name}", MOST_BYTES).splitlines():
                if b'"protocol"' in line and isinstance(action := json.loads(line).get("protocol"), dict):
                    return tuple(str(one) for one in action.get("readerFeatures") or ())
    except (*FOREIGN, GrebeError):
        return ()  # whatever is wrong with the log, another error says so
    return ()


def _oldest(commits: Mapping[int, Any], names: Mapping[str, Any]) -> int:
    """The oldest version that can be made up from the log."""
    if 0 in commits or not commits:
        return 0
    parts: dict[tuple[int, int], int] = {}
    for name in names:
        if found := CHECKPOINT.fullmatch(name):
            key = int(found[1]), int(found[3] or 1)
            parts[key] = parts.get(key, 0) + 1
    first = min(commits)
    whole = [version for (version, count), there in parts.items() if there >= count and version >= first]
    return min(whole, default=first)


def _last_until(commits: "list[Commit] | tuple[Commit, ...]", asked_ms: int) -> Commit | None:
    return next((one for one in reversed(commits) if one.at_ms <= asked_ms), None)


def _path(version: int) -> str:
    return f"{MARKS['delta']}/{version:020}.json"
