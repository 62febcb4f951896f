"""Where things lie below a table's `_grebe` folder."""

import re
from functools import lru_cache

MARKER = "grebe.json"
LOG = "log"
HINT = "log/latest.json.gz"
# Digits are those of ASCII everywhere: no writer writes others, and `int` reads them as the same numbers.
_ENTRY = re.compile(r"log/([0-9]{20})\.json")
_CHECKPOINT = re.compile(r"log/checkpoint-([0-9]{20})\.json\.gz")


def entry_path(number: int) -> str:
    return f"log/{number:020d}.json"


def checkpoint_path(number: int) -> str:
    return f"log/checkpoint-{number:020d}.json.gz"


def entry_number(path: str) -> int | None:
    found = _ENTRY.fullmatch(path)
    return int(found[1]) if found else None


def checkpoint_number(path: str) -> int | None:
    found = _CHECKPOINT.fullmatch(path)
    return int(found[1]) if found else None


def is_of_log(path: str) -> bool:
    """An entry, or a checkpoint."""
    return entry_number(path) is not None or checkpoint_number(path) is not None


def segment_path(first_id: int, count: int, unique: str) -> str:
    return f"files/{first_id:010d}-{count}-{unique}.files"


def version_folder(index: str, version: int, operation: str) -> str:
    return f"data/{index}/{version}-{operation}"


def heartbeat_path(operation: str) -> str:
    return f"alive/{operation}"


def judge_path(unique: str) -> str:
    return f"alive/judge-{unique}"


_ID = "[0-9a-f]{32}"
_NAME = r"\w[\w.-]{0,99}"
"""Of an index: letters and digits of any script."""
_FOLDER = rf"data/{_NAME}/(?P<version>[0-9]+)-(?P<operation>{_ID})"
_INDEX_NAME = re.compile(_NAME)
# No part is hidden, leads upwards, is escaped, or has a sign by which Hadoop would look for other files.
_PART = r"\w[\w.=+,@~ -]{0,254}"
_IN_FOLDER = re.compile(_PART)
_OF_CONTENT = re.compile(rf"data/{_NAME}(?:/{_PART}){{0,7}}")
_SEGMENT = re.compile(rf"files/([0-9]{{10}})-([0-9]{{1,10}})-{_ID}\.files")
_OPERATION_ID = re.compile(r"[0-9A-Za-z]{1,64}")
_REMOVABLE = re.compile(
    rf"{_FOLDER}/(?:[^/]+\.gix|\.[^/]+\.gix\.crc|_temporary/.+)"
    rf"|files/[0-9]{{10}}-[0-9]{{1,10}}-{_ID}\.files|alive/(?:judge-)?{_ID}|probe-{_ID}"
)
_DRAFT = re.compile(rf"(?:[^/]+/)*\.{_ID}\.grebe-draft|\.grebe-drafts/{_ID}")
_CONTENT_FOLDER = re.compile(rf"data/{_NAME}|{_FOLDER}(?:/_temporary(?:/.+)?)?")
_WORKLOAD = re.compile(rf"workload/(?:[0-9]{{15}}-[0-9]{{15}}-{_ID}(?:-merged)?\.gix|statistics\.gix|key)")


def is_removable(path: str) -> bool:
    """Tell whether a path has exactly the shape of an object that Grebe writes and vacuum may remove."""
    return _REMOVABLE.fullmatch(path) is not None


def is_draft(path: str) -> bool:
    """Tell whether a path has exactly the shape of a draft, from which a store makes an object in one step."""
    return _DRAFT.fullmatch(path) is not None


def owner_of_folder(path: str) -> str | None:
    """Return the operation that a folder for content belongs to, empty for that of an index, or None for other folders."""
    found = _CONTENT_FOLDER.fullmatch(path)
    return (found["operation"] or "") if found else None


def is_ours(path: str) -> bool:
    """Tell whether a path has exactly the shape of an object that Grebe writes."""
    return path in (MARKER, HINT) or is_of_log(path) or is_removable(path) or _WORKLOAD.fullmatch(path) is not None


def operation_of(path: str) -> tuple[int, str] | None:
    """Return the version and the id of the operation that wrote an object of an index, or None for other objects."""
    found = _REMOVABLE.fullmatch(path)
    return (int(found["version"]), found["operation"]) if found and found["operation"] else None


def is_index_name(name: str) -> bool:
    """Tell whether an index may have this name, which becomes the name of a folder."""
    return _INDEX_NAME.fullmatch(name) is not None


def is_content(path: str) -> bool:
    """Tell whether a path can only name an object below the folder of an index."""
    folder, _, name = path.rpartition("/")
    return _IN_FOLDER.fullmatch(name) is not None and _is_content_folder(folder)


@lru_cache(maxsize=1024)
def _is_content_folder(folder: str) -> bool:
    """An index has many objects in few folders."""
    return _OF_CONTENT.fullmatch(folder) is not None


def is_segment(path: str) -> bool:
    """Tell whether a path has the shape of a list of files."""
    return _SEGMENT.fullmatch(path) is not None


def is_segment_of(path: str, first_id: int, count: int) -> bool:
    """Tell whether a path is that of the list of exactly these files."""
    found = _SEGMENT.fullmatch(path)
    return found is not None and (int(found[1]), int(found[2])) == (first_id, count)


def is_operation_id(text: str) -> bool:
    """Tell whether a text can be the id of an operation, which becomes the name of its heartbeat."""
    return _OPERATION_ID.fullmatch(text) is not None
