"""Columns of Spark from expressions of a view, piece by piece through Spark's functions: no text of a view is parsed by Spark."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from grebe.indexes.classic import functions
from grebe.indexes.content.by_range import quoted
from grebe.indexes.view.nodes import Call, Case, Cast, Column, Constant, Expression, Operation, Part

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn


_SIGNS: Mapping[str, Callable[[Any, Any], Any]] = {
    "or": lambda one, other: one | other,
    "and": lambda one, other: one & other,
    "=": lambda one, other: one == other,
    "==": lambda one, other: one == other,
    "<=>": lambda one, other: one.eqNullSafe(other),
    "<>": lambda one, other: one != other,
    "!=": lambda one, other: one != other,
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
    "|": lambda one, other: one.bitwiseOR(other),
    "^": lambda one, other: one.bitwiseXOR(other),
    "&": lambda one, other: one.bitwiseAND(other),
    "+": lambda one, other: one + other,
    "-": lambda one, other: one - other,
    "*": lambda one, other: one * other,
    "/": lambda one, other: one / other,
    "%": lambda one, other: one % other,
    "||": lambda one, other: functions.concat(one, other),
    "div": lambda one, other: functions.call_function("div", one, other),
    "negative": lambda one, _: -one,
    "~": lambda one, _: functions.bitwise_not(one),
    "not": lambda one, _: ~one,
    "is null": lambda one, _: one.isNull(),
}


def spark_column(expression: Expression) -> "SparkColumn":
    """The expression over tables that have the aliases `t0`, `t1`, …"""
    match expression:
        case Column(table, path):
            return functions.col(quoted(f"t{table}", *path))
        case Constant():
            return _constant(expression)
        case Cast(term, kind, attempt):
            column = spark_column(term)
            return _try_cast(column, kind) if attempt else column.cast(kind)
        case Operation("in", terms):
            first, *others = map(spark_column, terms)
            return first.isin(*others)
        case Operation(sign, terms):
            first, *others = map(spark_column, terms)
            made: SparkColumn = _SIGNS[sign](first, others[0] if others else None)
            return made
        case Call("like" | "ilike" as name, terms):
            # By their names Spark 3.5 finds those without an escape only.
            matched: SparkColumn = getattr(functions, name)(*map(spark_column, terms))
            return matched
        case Call(name, terms):
            return functions.call_function(name, *map(spark_column, terms))
        case Case():
            return _case(expression)
        case Part(term, key):
            column = spark_column(term)
            return column.getField(key) if isinstance(key, str) else column.getItem(key)


def _try_cast(column: Any, kind: str) -> "SparkColumn":
    if hasattr(type(column), "try_cast"):
        done: SparkColumn = column.try_cast(kind)
        return done
    # Spark 3.5 has it in SQL texts only.
    from pyspark import SparkContext
    from pyspark.sql import Column as ClassicColumn

    context: Any = SparkContext._active_spark_context
    sql = context._jvm.org.apache.spark.sql
    expressions = sql.catalyst.expressions
    attempt = expressions.EvalMode.TRY()
    made = expressions.Cast(
        column._jc.expr(), sql.types.DataType.fromDDL(kind), context._jvm.scala.Option.empty(), attempt
    )
    return ClassicColumn(sql.Column(made))


def _case(case: Case) -> "SparkColumn":
    (condition, value), *others = case.branches
    made = functions.when(spark_column(condition), spark_column(value))
    for condition, value in others:
        made = made.when(spark_column(condition), spark_column(value))
    return made if case.otherwise is None else made.otherwise(spark_column(case.otherwise))


def _constant(constant: Constant) -> "SparkColumn":
    value, kind = constant.value, constant.type
    if isinstance(value, Decimal):
        digits = value.as_tuple()
        scale = max(0, -int(digits.exponent))
        precision = max(scale, len(digits.digits) + max(0, int(digits.exponent)))
        return functions.lit(value).cast(f"decimal({precision},{scale})")
    if isinstance(value, int) and not isinstance(value, bool) and not kind:
        # As it stands: beside a decimal Spark looks at the digits of a constant, but not of a cast.
        return functions.lit(value) if -(2**63) <= value < 2**63 else _constant(Constant(Decimal(value)))
    made = functions.lit(value)
    return made.cast(kind) if kind else made
