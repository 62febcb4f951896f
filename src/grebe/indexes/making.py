"""Kinds made from what SQL and the command line give: a name, and values for the fields of the kind's class.

A kind of another package is made the same way.
"""

import dataclasses
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from grebe.errors import InvalidIndex
from grebe.indexes.kind import Kind, KindType


def fields_of(kind: KindType) -> dict[str, Any]:
    """The fields of a kind besides its name, with their types."""
    hints = typing.get_type_hints(kind)
    fields: Sequence[dataclasses.Field[Any]] = dataclasses.fields(kind)  # type: ignore[arg-type]  # every kind is a dataclass
    return {field.name: hints[field.name] for field in fields if field.name != "name"}


def kind_made(kind: KindType, name: str, values: Mapping[str, Any]) -> Kind:
    """Raises `InvalidIndex` for a field that the kind does not have, and for one that it lacks."""
    for field in values.keys() - fields_of(kind).keys():
        raise InvalidIndex(
            f"index {name}: the kind {kind.kind} takes no {field}; it takes: {', '.join(fields_of(kind))}",
            detail="OPTION",
        )
    try:
        made: Kind = kind(name, **values)  # type: ignore[operator]  # the class of a kind
    except TypeError as lacking:
        raise InvalidIndex(f"index {name}: the kind {kind.kind} needs more: {lacking}", detail="OPTION") from lacking
    return made
