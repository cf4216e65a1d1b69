"""The public API of the continuous skyline: a Job over a streaming DataFrame, and the history of a static one."""

from __future__ import annotations

import os

from pyspark.sql import DataFrame

from skypane.control.worker_options import WorkerOptions
from skypane.operators.fronts import ContinuousSkyline
from skypane.plan import ContinuousPlan, hidden
from skypane.preference import ColumnLike, Columns, Preference, column_name
from skypane.progress import ProgressPolicy
from skypane.runtime.spark import front_history
from skypane.runtime.spark.amend import Amend
from skypane.runtime.spark.arguments import check_needed, policy_of, rows_schema, workers_of
from skypane.runtime.spark.batch import Invalid
from skypane.runtime.spark.job import Job
from skypane.runtime.spark.pandas_frames import Static, as_spark
from skypane.runtime.spark.projection import projected
from skypane.runtime.spark.sinks.sink_arguments import Output, Sinks
from skypane.types import ConfigError, Duration, Length, Micros, micros
from skypane.windows import Windows

_SECOND = 1_000_000
_STREAM = "sp.continuous_skyline(rows, preference, time=..., window=..., checkpoint=..., output=...)"


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
    workers: WorkerOptions | None = None,
) -> Job:
    """Return a Job that keeps the skyline of the last `window` of event time, and emits each change of it (paper 4).

    The output is a stream of updates in order of time: action ("ADD" or "DEL"), action_time, and the row with all its
    columns. As in stream(), late rows are awaited until the punctuation passes. StreamHandle.front() returns the front
    itself, and `front` stores it. skyline_history() answers a static DataFrame.

    Four arguments are required; one error names all that are missing:
    time         event-time column, a timestamp
    window       how long a row counts, such as "10 seconds"
    checkpoint   folder for the checkpoints of Spark and of the engine
    output       sink of the updates: a path or Directory, Console(), Memory(), or a function of (DataFrame, batch id)

    The others are optional:
    by           keeps one front for each value of these columns
    front        folder that always holds the whole current front, or a sink that receives it when a batch changes it
    every        span of event time whose updates are emitted together, when the punctuation has passed its end;
                 defaults to one second or a tenth of the window, whichever is less
    progress     policy that decides when a span of time is complete: AqKSlack(max_drop=0.01), the default, which drops
                 at most 1 % of the rows as late; KSlack() waits for every row; Watermark("1 hour") waits for a fixed time
    source       column that names a row's source; late rows are counted by it
    late         sink of late and quarantined rows, with their reason; without one they are only counted
    workers      WorkerOptions(plq_workers=4, wlq_workers=2): numbers of workers, and the exchange of rows between them

    Raises ConfigError, naming argument, value and remedy, if the query cannot run over these rows.

    >>> job = sp.continuous_skyline(
    ...     arriving, "price MIN, rating MAX", time="ts", window="30 minutes", checkpoint="state", output="changes"
    ... )
    >>> handle = job.start(availableNow=True)
    >>> handle.await_termination()
    True
    >>> metrics = handle.drain()
    >>> changes = spark.read.parquet("changes").orderBy("action_time", "action")
    >>> changes.select("action", "action_time", "price").show(3)
    +------+-------------------+-----+
    |action|        action_time|price|
    +------+-------------------+-----+
    |   ADD|2026-01-01 10:02:00| 90.0|
    |   ADD|2026-01-01 10:05:00| 70.0|
    |   DEL|2026-01-01 10:32:00| 90.0|
    +------+-------------------+-----+
    only showing top 3 rows
    """
    schema = rows_schema(rows, streaming=True, other="sp.skyline_history(rows, preference, time=..., window=...)")
    check_needed({"time": time, "window": window, "checkpoint": checkpoint, "output": output})
    if isinstance(late, Amend):
        raise ConfigError(
            "late=Amend(...) is not for a continuous skyline, whose updates cannot be taken back: answer windows with "
            "stream(rows, Skyline(...)), or give late= a sink"
        )
    query, options = _query(preference, time, window, by), workers_of(workers, None)
    if options.elastic is not None:
        raise ConfigError("elastic= is not for a continuous skyline, whose number of shards follows their cost")
    origin = None if source is None else column_name(source, "source")
    projection = projected(rows, schema, query, origin)
    query, rows, schema = projection.of(query), projection.rows, projection.schema
    plan = ContinuousPlan(
        query=query,
        windows=_spans(query.window, every),
        time=query.time,
        progress=policy_of(progress),
        source=projection.of(origin),
        computed=projection.computed,
    )
    return Job.of(rows, schema, plan, checkpoint or "", Sinks.of(output, late, front), options)


def skyline_history(
    rows: Static,
    preference: Preference | str,
    *,
    time: ColumnLike | None = None,
    window: Duration | None = None,
    by: Columns = (),
    invalid: Invalid = "error",
) -> DataFrame:
    """Return the rows of a static DataFrame that are ever on the continuous skyline, each with its interval on it.

    The interval is [front_from, front_to); the columns of the row follow. For a streaming DataFrame see
    continuous_skyline().

    time     event-time column, a timestamp
    window   how long a row counts, such as "10 seconds"
    by       keeps one front for each value of these columns
    invalid  "error" fails the query at run time on a null or NaN criterion or a null time; "drop" skips such rows

    Raises ConfigError, naming argument, value and remedy, if the query cannot run over these rows.

    >>> history = sp.skyline_history(offers, "price MIN, rating MAX", time="ts", window="30 minutes")
    >>> history.select("front_from", "front_to", "price").orderBy("front_from").show(3)
    +-------------------+-------------------+-----+
    |         front_from|           front_to|price|
    +-------------------+-------------------+-----+
    |2026-01-01 10:02:00|2026-01-01 10:32:00| 90.0|
    |2026-01-01 10:05:00|2026-01-01 10:35:00| 70.0|
    |2026-01-01 10:35:00|2026-01-01 10:50:00| 75.0|
    +-------------------+-------------------+-----+
    only showing top 3 rows
    """
    frame: DataFrame = as_spark(rows)
    schema = rows_schema(frame, streaming=False, other=_STREAM)
    check_needed({"time": time, "window": window})
    query = _query(preference, time, window, by)
    projection = projected(frame, schema, query)
    query, frame, schema = projection.of(query), projection.rows, projection.schema
    plan = ContinuousPlan(query=query, windows=_spans(query.window, None), time=query.time)
    plan.validate(schema)
    answers, unseen = front_history.of(frame, schema, plan, invalid), hidden(query, projection.computed)
    return answers.drop(*unseen) if unseen else answers


def _query(
    preference: Preference | str, time: ColumnLike | None, window: Duration | None, by: Columns
) -> ContinuousSkyline:
    length = micros(window or "", "window")
    return ContinuousSkyline(preference, column_name(time, "time"), length, by)


def _spans(window: Micros, every: Duration | None) -> Windows:
    """Return the spans of time whose updates are emitted together."""
    span = Length(max(1, min(window // 10, _SECOND))) if every is None else micros(every, "every")
    if not 0 < span <= window:
        raise ConfigError(f"every must be longer than 0 and at most the window, {Length(window)!r}, got {span!r}")
    return Windows(span, span)
