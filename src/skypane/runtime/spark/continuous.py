"""The door of the continuous skyline: updates as they happen of a streaming DataFrame, the whole history of a static one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import overload

from pyspark.sql import DataFrame

from skypane.control.splitting import Splitting
from skypane.operators.continuous import ContinuousSkyline
from skypane.plan import ContinuousPlan
from skypane.preference import ColumnLike, Columns, Preference, column_name
from skypane.progress import ProgressPolicy
from skypane.runtime.spark import history
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
    invalid: history.Invalid = ...,
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
    invalid: history.Invalid = "error",
) -> Job | DataFrame:
    """Keep the skyline of the last `window` of event time, and tell every change of it as it happens (paper 4).

    Of a streaming DataFrame this is a Job, whose output is a stream of updates: action ("ADD" or "DEL"), action_time, and
    the row with all its columns, in order of time. Late rows wait for the punctuation, as in stream(). The front itself
    is in StreamHandle.front(), and in `front`. Of a static DataFrame it is the history: the rows that are ever on the
    front, with front_from and front_to, between which (the end not included) they are.

    time         event-time column, a timestamp
    window       how long a row counts, such as "10 seconds"
    by           a front for each value of these columns

    A stream needs both of these, and may have the others, which mean what they mean in stream():
    checkpoint   folder for Spark's checkpoint and the engine's
    output       where updates go: a path or Directory, Console(), Memory(), or a function of (DataFrame, batch id)
    front        folder that always holds the current front, whole; or what takes it after each batch that changes it
    every        span of event time that is told at once, when the punctuation has passed its end; a second, or a tenth
                 of the window if that is less, if left out
    progress     when a span of time counts as complete: KSlack() if left out, AqKSlack(0.01), Watermark("1 hour")
    source       column that names a row's source, to count late rows by
    late         where late and quarantined rows go, with their reason; they are only counted, if left out
    splitting    where rows are exchanged, over how many tasks: as in stream()
    plq_workers  tasks that lift, where rows are exchanged; the default parallelism, if left out
    wlq_workers  shards of the front, at most; it is whole, and in the driver, while to compare its rows there is sooner
                 done; the default parallelism, if left out

    A static DataFrame may have:
    invalid      "error": a null or NaN criterion, or a null time, fails the query when it runs; "drop": such rows are
                 left out

    Raises ConfigError, naming argument, value and remedy, for what cannot be asked.
    """
    if not getattr(rows, "isStreaming", False):
        _check_static({"checkpoint": checkpoint, "output": output, "front": front, "progress": progress, "late": late})
        schema = rows_schema(rows, streaming=False)
        plan = _plan(preference, time, window, by, every, progress, source)
        plan.validate(schema)
        return history.of(rows, schema, plan, invalid)
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
    length, named = micros(window or "", "window"), column_name(time, "time")
    query = ContinuousSkyline(preference, named, length, by)
    span = Length(max(1, min(length // 10, _SECOND))) if every is None else micros(every, "every")
    if not 0 < span <= length:
        raise ConfigError(f"every must be longer than 0 and at most the window, {length!r}, got {span!r}")
    return ContinuousPlan(
        query=query,
        windows=Windows(span, span),
        time=named,
        progress=policy_of(progress),
        source=None if source is None else column_name(source, "source"),
    )


def _check_static(given: Mapping[str, object]) -> None:
    """Refuse what only a stream can have."""
    for name, value in given.items():
        if value is not None:
            raise ConfigError(
                f"{name}= is for a stream, and this DataFrame is static: leave it out, or read it by spark.readStream"
            )
