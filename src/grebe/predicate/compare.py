"""Comparisons over whole columns, in Spark's order of values.

NaN equals NaN and is greater than every other number, -0.0 equals 0.0, strings and binaries compare by their
bytes, FALSE is less than TRUE. Both sides are in the physical form of one type; either may be a scalar.
"""

from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from grebe.predicate.tree import Operator

Side: TypeAlias = Any  # pa.Array or pa.Scalar: pyarrow has no common base for them

_KERNELS = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def compare(operator: Operator, left: Side, right: Side) -> pa.Array:
    """True, false or NULL in every row."""
    if operator == "<=>":
        both_null = pc.and_(pc.is_null(left), pc.is_null(right))
        return pc.or_(both_null, pc.fill_null(compare("=", left, right), False))
    if pa.types.is_null(left.type):
        return pc.if_else(pc.is_null(left), pa.scalar(None, pa.bool_()), False)
    if pa.types.is_boolean(left.type):
        return _KERNELS[operator](left.cast(pa.int8()), right.cast(pa.int8()))
    plain = _KERNELS[operator](left, right)
    return _with_nan(operator, left, right, plain) if pa.types.is_floating(left.type) else plain


def _with_nan(operator: Operator, left: Side, right: Side, plain: pa.Array) -> pa.Array:
    """The IEEE answer, put right in the rows that hold a NaN."""
    left_nan, right_nan = pc.is_nan(left), pc.is_nan(right)
    match operator:
        case "=":
            return pc.or_(plain, pc.and_(left_nan, right_nan))
        case "<>":
            return pc.and_(plain, pc.invert(pc.and_(left_nan, right_nan)))
        case "<":
            return pc.or_(plain, pc.and_(right_nan, pc.invert(left_nan)))
        case "<=":
            return pc.or_(plain, right_nan)
        case ">":
            return pc.or_(plain, pc.and_(left_nan, pc.invert(right_nan)))
    return pc.or_(plain, left_nan)


def is_among(values: pa.Array, items: pa.Array) -> pa.Array:
    """IN: NULL where the value is NULL, and where it is not found among items that hold a NULL."""
    known = items.drop_null()
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), pa.bool_())
    if pa.types.is_floating(values.type):
        zero = pa.scalar(0.0, values.type)
        # Adding zero turns -0.0 into 0.0; the hash table behind is_in would tell them apart, and NaNs of different bits too.
        found = pc.is_in(pc.add(values, zero), value_set=pc.add(known, zero))
        if len(known) and pc.any(pc.is_nan(known)).as_py():
            found = pc.or_(found, pc.fill_null(pc.is_nan(values), False))
    else:
        found = pc.is_in(values, value_set=known)
    if items.null_count:
        return pc.if_else(found, True, pa.scalar(None, pa.bool_()))
    return pc.if_else(values.is_valid(), found, pa.scalar(None, pa.bool_()))
