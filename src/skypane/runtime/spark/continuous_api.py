"""The public API of the continuous skyline: live updates of a streaming DataFrame, or the history of a static one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import overload

from pyspark.sql import DataFrame

from skypane.control.splitting import Splitting
from skypane.operators.fronts import ContinuousSkyline
from skypane.plan import ContinuousPlan
from skypane.preference import ColumnLike, Columns, Preference, column_name
from skypane.progress import ProgressPolicy
from skypane.runtime.spark import front_history
from skypane.runtime.spark.arguments import check_needed, policy_of, rows_schema
from skypane.runtime.spark.assembly import Output, setting_of, workers_of
from skypane.runtime.spark.job import Job
from skypane.types import ConfigError, Duration, Length, micros
from skypane.windows import Windows

_SECOND = 1_000_000


@overload
def continuous_skyline(
    rows: DataFrame,
    preference: Preference | str,
    *,
    time: ColumnLike,
    window: Duration,
    by: Columns = ...,
    invalid: front_history.Invalid = ...,
) -> DataFrame: ...


@overload
def continuous_skyline(
    rows: DataFrame,
    preference: Preference | str,
    *,
    time: ColumnLike,
    window: Duration,
    by: Columns = ...,
    checkpoint: str | os.PathLike[str],
    output: Output,
    front: Output | None = ...,
    every: Duration | None = ...,
    progress: ProgressPolicy | None = ...,
    source: ColumnLike | None = ...,
    late: Output | None = ...,
    splitting: str | Splitting = ...,
    plq_workers: int | None = ...,
    wlq_workers: int | None = ...,
) -> Job: ...


def continuous_skyline(
    rows: DataFrame,
    preference: Preference | str,
    *,
    time: ColumnLike | None = None,
    window: Duration | None = None,
    by: Columns = (),
    checkpoint: str | os.PathLike[str] | None = None,
    output: Output | None = None,
    front: Output | None = None,
    every: Duration | None = None,
    progress: ProgressPolicy | None = None,
    source: ColumnLike | None = None,
    late: Output | None = None,
    splitting: str | Splitting = "PB_RR",
    plq_workers: int | None = None,
    wlq_workers: int | None = None,
    invalid: front_history.Invalid = "error",
) -> Job | DataFrame:
    """Maintain the skyline of the last `window` of event time, and emit each change of it as an update (paper 4).

    For a streaming DataFrame this returns a Job. Its output is a stream of updates in order of time: action ("ADD" or
    "DEL"), action_time, and the row with all its columns. As in stream(), late rows are awaited until the punctuation
    passes. StreamHandle.front() returns the front itself, and `front` stores it. For a static DataFrame this returns
    the history: the rows that are ever on the front, each with the interval [front_from, front_to) in which it is on
    it.

    time         event-time column, a timestamp
    window       how long a row counts, such as "10 seconds"
    by           keeps one front for each value of these columns

    A stream requires the first two of these arguments; the others are optional, and mean the same as in stream():
    checkpoint   folder for the checkpoints of Spark and of the engine
    output       sink of the updates: a path or Directory, Console(), Memory(), or a function of (DataFrame, batch id)
    front        folder that always holds the whole current front, or a sink that receives it when a batch changes it
    every        span of event time whose updates are emitted together, when the punctuation has passed its end;
                 defaults to one second or a tenth of the window, whichever is less
    progress     policy that decides when a span of time is complete: KSlack(), the default, AqKSlack(0.01),
                 Watermark("1 hour")
    source       column that names a row's source; late rows are counted by it
    late         sink of late and quarantined rows, with their reason; without one they are only counted
    splitting    how rows are exchanged, if they are: as in stream()
    plq_workers  tasks that lift when rows are exchanged; defaults to the default parallelism
    wlq_workers  maximum number of shards of the front, which stays whole in the driver while comparing its rows there
                 is faster; defaults to the default parallelism

    A static DataFrame takes one optional argument:
    invalid      "error" fails the query at run time on a null or NaN criterion or a null time; "drop" skips such rows

    Raises ConfigError, naming argument, value and remedy, if the query cannot run over these rows.
    """
    if not getattr(rows, "isStreaming", False):
        _check_static({"checkpoint": checkpoint, "output": output, "front": front, "progress": progress, "late": late})
        schema = rows_schema(rows, streaming=False)
        plan = _plan(preference, time, window, by, every, progress, source)
        plan.validate(schema)
        return front_history.of(rows, schema, plan, invalid)
    schema = rows_schema(rows, streaming=True)
    check_needed({"time": time, "window": window, "checkpoint": checkpoint, "output": output})
    plan = _plan(preference, time, window, by, every, progress, source)
    plan.validate(schema)
    setting = setting_of(
        rows, schema, plan, checkpoint=checkpoint, output=output, late=late, splitting=splitting, front=front
    )
    return Job(rows, setting, workers_of(rows, plq_workers, wlq_workers))


def _plan(
    preference: Preference | str,
    time: ColumnLike | None,
    window: Duration | None,
    by: Columns,
    every: Duration | None,
    progress: ProgressPolicy | None,
    source: ColumnLike | None,
) -> ContinuousPlan:
    check_needed({"time": time, "window": window})
    length, time_column = micros(window or "", "window"), column_name(time, "time")
    query = ContinuousSkyline(preference, time_column, length, by)
    span = Length(max(1, min(length // 10, _SECOND))) if every is None else micros(every, "every")
    if not 0 < span <= length:
        raise ConfigError(f"every must be longer than 0 and at most the window, {length!r}, got {span!r}")
    return ContinuousPlan(
        query=query,
        windows=Windows(span, span),
        time=time_column,
        progress=policy_of(progress),
        source=None if source is None else column_name(source, "source"),
    )


def _check_static(given: Mapping[str, object]) -> None:
    """Raise ConfigError for an argument that only a stream can have."""
    for name, value in given.items():
        if value is not None:
            raise ConfigError(
                f"{name}= is for a stream, and this DataFrame is static: leave it out, or use spark.readStream"
            )
