"""A case as a static DataFrame: windows, all rows at once, the history of a front; and what Spark's own window() says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from typing import Any, Final, get_args
from unittest import mock

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from tests.differential import objects
from tests.differential.case import ID, TIME, Aggregate, Case, Continuous, Function, IntArray, TopK
from tests.differential.compare import difference, updates_differ, values_differ
from tests.differential.definition import aggregate, chosen
from tests.differential.definition.aggregate import Near
from tests.differential.definition.continuous import in_order
from tests.differential.definition.values import key, lines
from tests.differential.definition.windows import usable
from tests.differential.expected import Updates, Values, expected
from tests.differential.spark import files
from tests.differential.spark.runs import Run

import skypane as sp
from skypane.control.static_way import StaticWay
from skypane.operators.fronts import ContinuousSkyline
from skypane.runtime.spark import batch
from skypane.types import Length

_SPARKS: Final = {
    "count": sf.count,
    "min": sf.min,
    "max": sf.max,
    "sum": sf.sum,
    "count_distinct": sf.count_distinct,
    "bool_and": sf.bool_and,
    "bool_or": sf.bool_or,
}
"""Aggregates that mean the same in Spark, of floats those that do not depend on an order of adding."""

_ASKING: Final = Lock()
"""Held while a way is imposed: cases run side by side in one process."""


def differences(spark: SparkSession, run: Run, folder: Path) -> Iterator[str | None]:
    """Yield how each way differs from the definition; None where it does not."""
    case = run.case
    wanted = expected(case)
    rows = files.static(spark, folder / "static", case.rows, run.files)
    if isinstance(wanted, Updates):
        yield _difference_text("the history", updates_differ(wanted.changes, _history(rows, case)))
        return
    plan = objects.plan(case)
    schema = plan.output_schema(case.rows.schema)
    for output in (None, folder / "windows"):
        frame = sp.ask(rows, plan.query, time=TIME, window=plan.windows, invalid="drop", output=output)
        how = difference(case, wanted, in_windows(files.in_schema(frame.toArrow(), schema)))
        yield _difference_text("ask() of windows" if output is None else "ask() of windows into a folder", how)
    yield from _differences_of_all(spark, run, folder / "all")
    if isinstance(wanted, Values):
        yield _difference_text("Spark's window()", _window_differs(rows, case, wanted))


def in_windows(answers: pa.Table) -> pa.Table:
    """Return answers in the order of their windows, those of a window in their order."""
    starts = answers.column("window_start").cast(pa.int64()).to_numpy()
    return answers.take(pa.array(np.argsort(starts, kind="stable")))


def _difference_text(way: str, how: str | None) -> str | None:
    return None if how is None else f"{way}: {how}"


def _history(rows: DataFrame, case: Case) -> IntArray:
    query = objects.query(case.spec, case.rows.schema)
    assert isinstance(query, ContinuousSkyline)
    preference, window = query.preference, Length(query.window)
    history = sp.skyline_history(rows, preference, by=query.by, time=TIME, window=window, invalid="drop").toArrow()
    ids = history.column(ID).to_numpy()
    spans = {name: history.column(name).cast(pa.int64()).to_numpy() for name in ("front_from", "front_to")}
    updates = [
        np.column_stack([spans[name], np.full(len(ids), action), ids])
        for name, action in (("front_from", 1), ("front_to", -1))
    ]
    return in_order(np.concatenate(updates).astype(np.int64))


def _differences_of_all(spark: SparkSession, run: Run, folder: Path) -> Iterator[str | None]:
    """Yield how the answer over all rows that are usable differs, in each way that a query over them is run."""
    case = run.case
    rows = case.rows.take(pa.array(usable(case.rows, case.spec)))
    if not rows.num_rows:
        return
    wanted = _answer_of_all(case, rows)
    read = files.static(spark, folder, rows, run.files)
    query: Any = objects.query(case.spec, case.rows.schema)
    for way in get_args(StaticWay):
        with _ASKING, mock.patch.object(batch, "static_way", return_value=way):  # rows are too few for all ways but one
            frame = sp.ask(read, query, invalid="drop")
        answer = frame.toArrow()
        yield _difference_text(f"ask() of all rows, {way}", None if wanted is None else _differs(case, wanted, answer))


def _answer_of_all(case: Case, rows: pa.Table) -> list[Any] | None:
    """Return the definition's answer over rows: the rows of an aggregate, else ids; None for sums that are too large."""
    every = np.arange(rows.num_rows)
    if isinstance(case.spec, Aggregate):
        try:
            return aggregate.answers(rows, case.spec, every)
        except aggregate.TooLargeError:
            return None
    assert not isinstance(case.spec, Continuous)
    chosen_rows = pa.array(list(chosen.choice_of(rows, case.spec)(every)), pa.int64())
    return list(rows.column(ID).take(chosen_rows).to_pylist())


def _differs(case: Case, wanted: list[Any], answer: pa.Table) -> str | None:
    if isinstance(case.spec, Aggregate):
        every, found = [(0, row) for row in wanted], [(0, row) for row in lines(answer)]
        return values_differ(case.spec.by, case.spec.functions, every, found)
    found = answer.column(ID).to_pylist()
    if not isinstance(case.spec, TopK):
        wanted, found = sorted(wanted), sorted(found)
    return None if wanted == found else f"ids {found}, wanted {wanted}"


def _window_differs(rows: DataFrame, case: Case, wanted: Values) -> str | None:
    """Return how Spark's own windows differ from the definition."""
    spec = case.spec
    assert isinstance(spec, Aggregate)
    functions = [one for one in spec.functions if _is_sparks(one, case.rows.schema)]
    if spec.required or spec.at_least is not None or spec.top is not None or not functions:
        return None
    windows = case.windows
    window = sf.window(
        TIME, *(f"{span} microseconds" for span in (windows.length, windows.slide, windows.offset % windows.slide))
    )
    counted = rows.groupBy(window.alias("w"), *spec.by).agg(
        *(_SPARKS[one.word](*(one.columns or ("*",))).alias(one.name) for one in functions)
    )
    start = sf.unix_micros(sf.col("w.start").cast("timestamp"))
    table = counted.select(start.alias("start"), *spec.by, *(one.name for one in functions)).toArrow()
    found = [(row["start"], row) for row in lines(table)]
    return values_differ(spec.by, functions, wanted.rows, found, _agree)


def _is_sparks(function: Function, schema: pa.Schema) -> bool:
    if function.where is not None or function.word not in _SPARKS:
        return False
    kinds = [schema.field(name).type for name in function.columns]
    return function.word != "sum" or all(pa.types.is_integer(kind) for kind in kinds)


def _agree(wanted: Any, found: Any) -> bool:
    return wanted.admits(found) if isinstance(wanted, Near) else key(wanted) == key(found)
