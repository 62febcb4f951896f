"""Where things lie below a table's `_grebe` folder."""

import re

LOG = "log"
HINT = "log/latest.json.gz"
_ENTRY = re.compile(r"log/(\d{20})\.json")
_CHECKPOINT = re.compile(r"log/checkpoint-(\d{20})\.json\.gz")


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
