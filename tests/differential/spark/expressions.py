"""python -m tests.differential.spark.expressions: what workers make of random conditions and scores, beside Spark's own values.

Each is drawn over a table with a column of each type, both ends of its range in it, with literals that are values of the column or
one step beside them. What is not evaluated by workers is Spark's anyway, and is counted only.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from decimal import Context, Decimal
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from tests.differential.spark.seeds import run

from skypane.operators.aggregates.condition import Condition
from skypane.preference.dense_ranks import column_ranks, row_ranks
from skypane.preference.expression import Expression
from skypane.preference.score import Score
from skypane.preference.written import Written
from skypane.runtime.spark.ignored_collations import compared_alike
from skypane.runtime.spark.spark_schema import arrow_schema, spark_schema
from skypane.types import ConfigError

Rng: TypeAlias = np.random.Generator

_NAN, _INF = float("nan"), float("inf")
_VALUES: Final[dict[str, tuple[pa.DataType, list[Any]]]] = {
    "tiny": (pa.int8(), [-128, -1, 0, 1, 3, 127]),
    "short": (pa.int16(), [-(2**15), 0, 3, 300, 2**15 - 1]),
    "n": (pa.int32(), [-(2**31), -3, 0, 1, 3, 10, 2**31 - 1]),
    "id": (pa.int64(), [-(2**63), -(2**53) - 1, 0, 3, 2**53, 2**53 + 1, 2**60, 2**60 + 1, 2**63 - 1]),
    "x": (pa.float64(), [-_INF, -1e300, -0.1, -0.0, 0.0, 5e-324, 0.1, 0.3, 0.1 + 0.2, 3.0, 2.0**53, 1e16, _INF, _NAN]),
    "y": (pa.float64(), [0.1, 0.3, 1.1, 1e-5, 100.0, 2.0**63, _NAN, 0.35, 35e-17]),
    "f": (pa.float32(), [-_INF, 0.1, 0.3, 3.0, 16777216.0, _INF, _NAN]),
    "cost": (pa.decimal128(10, 2), [Decimal(one) for one in ("-99999999.99", "-0.01", "0.00", "0.10", "0.35", "1.10", "99999999.99")]),
    "money": (pa.decimal128(18, 2), [Decimal(one) for one in ("0.35", "0.36", "90071992547409.93", "9999999999999999.99")]),
    "wide": (pa.decimal128(38, 18), [Decimal(one) for one in ("0.1", "0.100000000000000001", "-99999999999999999999.9", "3")]),
    "whole": (pa.decimal128(38, 0), [Decimal("9" * 38), Decimal(2) ** 53, Decimal(2) ** 53 + 1, Decimal(0), Decimal(3)]),
    "s": (pa.string(), ["", "a", "A", "b", "it", "3", "0.1", "ä", "a ", "true", "\U0001f600", "2026-01-01"]),
    "Name": (pa.string(), ["a", "b", "x"]),
    "flag": (pa.bool_(), [True, False]),
    "day": (pa.date32(), [-719162, 0, 20454, 2932896]),
    "at": (pa.timestamp("us", "UTC"), [-62135596800000000, 0, 1767225600123456, 253402300799999999]),
    "local": (pa.timestamp("us"), [0, 1767225600123456]),
    "raw": (pa.binary(), [b"", b"a"]),
    "_column_0": (pa.int32(), [9, 3, 1]),
    "a b": (pa.int32(), [1, 3, 9]),
    "fi": (pa.int32(), [2, 3, 10]),
    "\ufb01": (pa.float64(), [1.0, 3.0, 9.0]),
    "it's": (pa.float64(), [0.5, 3.0]),
    'b`"c': (pa.string(), ["a", "b", "3"]),
}  # fmt: skip
ROWS: Final = 64
_EXACT: Final = Context(prec=60)
EACH: Final = 500
"""Conditions for a table, which Spark evaluates in one job."""
SETTINGS: Final = {
    "spark.sql.ansi.enabled": (True, False),
    "spark.sql.ansi.doubleQuotedIdentifiers": (False, False, True),
    "spark.sql.caseSensitive": (False, True, False, False, False),
    "spark.sql.session.timeZone": ("UTC", "Pacific/Auckland", "America/New_York", "Asia/Kolkata"),
    "spark.sql.codegen.wholeStage": (False,),
    "spark.sql.codegen.factoryMode": ("NO_CODEGEN",),
    "spark.sql.optimizer.inSetConversionThreshold": (10, 2),
}
_SIGNS: Final = ("=", "==", "<>", "!=", "<", "<=", ">", ">=")
_OPERATIONS: Final = ("+", "-", "*", "/")


def table(seed: int) -> pa.Table:
    """Return rows with values of all columns beside one another, some null."""
    rng = np.random.default_rng(seed)
    columns = {}
    for name, (kind, values) in _VALUES.items():
        picked = [values[at] for at in rng.integers(0, len(values), ROWS)]
        nulls = rng.random(ROWS) < 0.1
        storage = pa.int64() if pa.types.is_timestamp(kind) else pa.int32() if pa.types.is_date(kind) else kind
        columns[name] = pa.array([None if no else one for one, no in zip(picked, nulls, strict=True)], storage).cast(
            kind
        )
    return pa.table(columns)


class Draw:
    """Draws texts."""

    def __init__(self, rng: Rng) -> None:
        self._rng = rng

    def condition(self, depth: int = 0) -> str:
        chance = self._rng.random()
        if depth < 3 and chance < 0.3:
            joined = self._of((" AND ", " or ")).join(
                self.condition(depth + 1) for _ in range(self._rng.integers(2, 4))
            )
            return f"({joined})" if self._rng.random() < 0.7 else joined
        if depth < 3 and chance < 0.4:
            return f"{self._of(('NOT ', 'not '))}{self.condition(depth + 1)}"
        return self._comparison()

    def score(self) -> str:
        if self._rng.random() < 0.3:
            return self._name(self._of(_VALUES))
        return self._arithmetic(0)

    def _arithmetic(self, depth: int) -> str:
        chance = self._rng.random()
        if depth > 2 or chance < 0.3:
            name = self._of(("x", "y", "x", "y", "n", "id", "cost", "\ufb01", "it's"))
            return self._name(name) if chance < 0.2 or depth == 0 else self._number(name)
        if chance < 0.4:
            return f"{self._of(('-', 'abs', 'sqrt'))}({self._arithmetic(depth + 1)})"
        if chance < 0.5:
            return f"{self._of(('min', 'max'))}({self._arithmetic(depth + 1)}, {self._arithmetic(depth + 1)})"
        return f"({self._arithmetic(depth + 1)} {self._of(_OPERATIONS)} {self._arithmetic(depth + 1)})"

    def _comparison(self) -> str:
        name = self._of(_VALUES)
        column, chance = self._name(name), self._rng.random()
        if chance < 0.08:
            return f"{column} {self._of(('IS NULL', 'is not null'))}"
        if chance < 0.18:
            listed = ", ".join(self._literal(name) for _ in range(self._rng.integers(1, 5)))
            return f"{column} {self._of(('IN', 'not in'))} ({listed})"
        if chance < 0.22:
            return column
        sign, blank = self._of(_SIGNS), self._of(("", " "))
        if chance < 0.4:
            other = self._name(self._of(_VALUES))
        elif chance < 0.45:
            other = f"{self._name(self._of(_VALUES))} {self._of(_OPERATIONS)} {self._literal(name)}"
        else:
            other = self._literal(name)
        sides = (column, other) if self._rng.random() < 0.8 else (other, column)
        return (
            blank.join((sides[0], sign, sides[1])) if not sides[1].startswith("-") else f"{sides[0]} {sign} {sides[1]}"
        )

    def _literal(self, name: str) -> str:
        """Return a literal that is a value of the column, one step beside one, or one of another column."""
        if self._rng.random() < 0.1:
            name = self._of(_VALUES)
        kind = _VALUES[name][0]
        if pa.types.is_boolean(kind):
            return str(self._of(("TRUE", "false")))
        if pa.types.is_string(kind):
            text = self._of(_VALUES[name][1])
            return f'"{text}"' if self._rng.random() < 0.1 else f"'{text}{self._of(('', '', '0', ' '))}'"
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            return self._number(name)
        return str(self._of(("'2026-01-01'", "date'2026-01-01'", "0")))

    def _number(self, name: str) -> str:
        value = self._of(_VALUES[name][1])
        if isinstance(value, float):
            steps = (value, np.nextafter(value, _INF), value + 1, float(round(value)) if abs(value) < 1e300 else 0.0)
            value = float(self._of(steps))
            if not np.isfinite(value):
                return "1e308"
            return repr(value) if self._rng.random() < 0.7 else f"{value:.20e}"
        if isinstance(value, int):
            value += int(self._of((0, 1, -1)))
            return f"{value}{self._of(('', '', '.0', '.5', 'L', 'e0'))}"
        return f"{_EXACT.add(value, self._of((Decimal(0), Decimal(1), Decimal('0.01'), Decimal('1e-18')))):f}"

    def _name(self, name: str) -> str:
        chance = self._rng.random()
        if not name.isidentifier() or chance < 0.1:
            return f"`{name.replace('`', '``')}`"
        return name.upper() if chance < 0.13 else name

    def _of(self, values: Any) -> Any:
        listed = [*values]
        return listed[int(self._rng.integers(len(listed)))]


def differing(frame: DataFrame, rows: pa.Table, texts: list[str]) -> Iterator[str]:
    """Yield the conditions for whose rows workers have other truth values than Spark has."""
    schema = compared_alike(arrow_schema(frame), frame.schema)
    kept = [text for text in texts if _by_workers(text, schema)]
    wanted = frame.selectExpr(*(f"coalesce({text}, false) AS c{at}" for at, text in enumerate(kept))).toArrow()
    for at, text in enumerate(kept):
        if Condition(text).holds(rows).tolist() != wanted.column(at).to_pylist():
            yield f"condition {text}"


def differing_scores(frame: DataFrame, rows: pa.Table, texts: list[str]) -> Iterator[str]:
    """Yield the scores by which workers order rows otherwise than by Spark's values."""
    schema = compared_alike(arrow_schema(frame), frame.schema)
    kept = [text for text in texts if _is_ranked(text, schema)]
    wanted = frame.selectExpr(*(f"{Expression(text).sql()} AS s{at}" for at, text in enumerate(kept))).toArrow()
    for at, text in enumerate(kept):
        score = Score.of(text)
        known = np.flatnonzero(np.all([rows[name].is_valid().to_numpy() for name in score.columns], axis=0))
        here, there = rows.take(known), wanted.column(at).take(known)
        if pa.types.is_floating(there.type):
            there = there.fill_null(_NAN)  # a row that lacks a part of min() has no score, as one whose score is NaN
        if (row_ranks([score.keys(here, largest=False)]) != row_ranks([column_ranks(there)])).any():
            yield f"score {text}"


def _by_workers(text: str, schema: pa.Schema) -> bool:
    try:
        return Condition(text).fits(schema)
    except ConfigError:
        return False


def _is_ranked(text: str, schema: pa.Schema) -> bool:
    """Return whether workers compute a score."""
    try:
        score = Score.of(text)
    except ConfigError:
        return False
    return not isinstance(score.text, Written) and score.for_types(schema) is score


def tried(spark: SparkSession, seed: int, count: int = EACH) -> tuple[list[str], int]:
    """Draw so many conditions, and a fifth as many scores; return those that differ, and how many workers evaluate."""
    rng = np.random.default_rng([seed, 1])
    rows, draw = table(seed), Draw(rng)
    for name, setting in SETTINGS.items():
        spark.conf.set(name, text.lower() if (text := str(setting[seed % len(setting)])) in {"True", "False"} else text)
    frame = spark.createDataFrame(rows, spark_schema(rows.schema))
    schema = compared_alike(arrow_schema(frame), frame.schema)
    conditions = [draw.condition() for _ in range(count)]
    scores = [draw.score() for _ in range(count // 5)]
    found = [*differing(frame, rows, conditions), *differing_scores(frame, rows, scores)]
    by_workers = sum(_by_workers(one, schema) for one in conditions) + sum(_is_ranked(one, schema) for one in scores)
    return found, by_workers


def main() -> int:
    """Run what the arguments say; return the exit code."""
    return run("expressions", tried)


if __name__ == "__main__":
    sys.exit(main())
