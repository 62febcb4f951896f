"""Readings as older versions of Grebe recorded them, without what does not belong into a log."""

from collections.abc import Mapping
from typing import Any

from grebe.errors import GrebeError
from grebe.formats.options import is_of_store
from grebe.formats.registry import format_named

_INNER = ("reading", "definition", "bases")
"""Where the properties of an index hold readings."""


def without_secrets(reading: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the plain data of a reading with its options as they are recorded today; the same object if nothing changes."""
    options, name = reading.get("options"), reading.get("format")
    if not isinstance(options, Mapping) or not isinstance(name, str):
        return reading
    if not all(isinstance(value, str) for value in options.values()):
        return reading  # whoever decodes the reading says so
    recorded = _recorded(name, options)
    return reading if recorded == options else {**reading, "options": recorded}


def _recorded(name: str, options: Mapping[str, str]) -> dict[str, str]:
    try:
        return format_named(name).options.recorded(options)
    except GrebeError:  # a format of a package that is not here: its own options are not known
        return {option: value for option, value in options.items() if not is_of_store(option)}


def properties_without_secrets(properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the properties of an index with each reading in them as it is recorded today."""
    changed = {name: _inner(properties[name]) for name in _INNER if name in properties}
    if all(properties[name] is value for name, value in changed.items()):
        return properties
    return {**properties, **changed}


def _inner(value: Any) -> Any:
    if isinstance(value, Mapping):
        return without_secrets(value) if "options" in value else properties_without_secrets(value)
    if isinstance(value, (list, tuple)):
        made = [_inner(one) for one in value]
        return value if all(new is old for new, old in zip(made, value, strict=True)) else made
    return value
