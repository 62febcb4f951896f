"""Bound predicates as JSON and back, exactly: every node by its class and its fields, in their order.

SQL text would not do: binding has put types, zones and modes of casts into a tree, and what Spark does not tell is opaque in it.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import fields
from decimal import Decimal
from typing import Any

from grebe.errors import InvalidPredicate
from grebe.predicate import tree
from grebe.predicate.tree import Predicate
from grebe.predicate.types import MAX_PRECISION, Field, Type

_NODES: Mapping[str, Any] = {
    one.__name__: one
    for one in (
        *(tree.Column, tree.Literal, tree.Cast, tree.Arithmetic, tree.Negative, tree.Function, tree.TruthOf),
        *(tree.Opaque, tree.Call, tree.PointOf, tree.Related),
        *(tree.Constant, tree.Holds, tree.Compare, tree.In, tree.Like, tree.StartsWith, tree.EndsWith, tree.Contains),
        *(tree.IsNull, tree.IsNotNull, tree.Not, tree.And, tree.Or),
        *(Type, Field),
    )
}


def to_json(predicate: Predicate) -> str:
    return json.dumps(_encoded(predicate), separators=(",", ":"))


def from_json(text: str) -> Predicate:
    """Raises `InvalidPredicate` where the text was not made by `to_json`, or by a later version that knows more."""
    try:
        made = _decoded(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError):
        made = None
    if not isinstance(made, Predicate):
        raise InvalidPredicate(
            "this is no predicate as it is recorded; it may be of a later version", detail="RECORDED"
        )
    return made


def _encoded(value: object) -> Any:
    name = type(value).__name__
    if name in _NODES and type(value) is _NODES[name]:
        # Leaving out fields with their defaults at the end would save bytes, which compression saves as well.
        return [name, *(_encoded(getattr(value, one.name)) for one in fields(_NODES[name]))]
    if isinstance(value, tuple):
        return ["", *map(_encoded, value)]
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    return {"float": value.hex()} if isinstance(value, float) else value


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        name, *parts = value
        inner = [_decoded(part) for part in parts]
        if not name:
            return tuple(inner)
        node = _NODES[name]
        return node(**{one.name: part for one, part in zip(fields(node), inner, strict=True)})
    if not isinstance(value, dict):
        return value
    ((kind, text),) = value.items()
    if kind == "bytes":
        return base64.b64decode(text)
    return _decimal(text) if kind == "decimal" else float.fromhex(text)


def _decimal(text: str) -> Decimal:
    value = Decimal(text)
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or max(abs(exponent), abs(value.adjusted())) > 2 * MAX_PRECISION:
        raise ValueError("no decimal of Spark's")
    return value
