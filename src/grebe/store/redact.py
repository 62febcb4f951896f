"""Takes credentials out of text that others wrote, before it gets into a message of ours."""

import os
import re
from collections.abc import Iterable, Mapping

_SHOWN = "***"
_TELLING = re.compile(
    r"secret|passw|token|signature|credential|authorization|sas|(?:^|[_.-])(?:sig|key)$|access_?key", re.IGNORECASE
)
_USER_INFO = re.compile(r"(?<=://)[^/\s\"'@]+@(?=[^/\s\"']*)")
_QUERY = re.compile(r"\?[^\s\"'<>)]+")
_ASSIGNED = re.compile(
    r"(?i)\b((?:[\w.-]*(?:secret|passw|token|signature|credential|authorization)[\w.-]*|sig|[\w.-]+[_.-]key)\s*[=:]\s*)"
    r"(\"[^\"]*\"|'[^']*'|[^\s,;&]+)"
)
_LONGEST = 300


def secrets_of(options: Mapping[str, str]) -> list[str]:
    """The values of options whose names say that they are secret."""
    return [value for name, value in options.items() if _TELLING.search(name)]


def redacted(text: str, secrets: Iterable[str] = ()) -> str:
    """The first line of `text` without the given secrets, those of the environment, and whatever looks like one."""
    line = text.strip().partition("\n")[0]
    for secret in sorted({*secrets, *secrets_of(os.environ)}, key=len, reverse=True):
        # Shorter ones are no secrets, but would blot out half of the message.
        if len(secret) >= 4:
            line = line.replace(secret, _SHOWN)
    line = _USER_INFO.sub("", line)
    line = _QUERY.sub("", line)
    line = _ASSIGNED.sub(rf"\1{_SHOWN}", line)
    return line if len(line) <= _LONGEST else line[:_LONGEST] + " …"
