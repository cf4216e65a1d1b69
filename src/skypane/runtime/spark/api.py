"""The public API for static DataFrames (skyline, top_k, ..., ask), and stream, which makes a Job of a streaming one.

A query is a value, such as Skyline("price MIN, rating MAX"). skyline, top_k, k_dominant, top_delta and aggregate are
shorthands for ask() with the query of that name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from pyspark.sql import DataFrame

from skypane.control.elasticity.options import Elasticity
from skypane.control.worker_options import WorkerOptions
from skypane.operators.aggregates.aggregate import Aggregate
from skypane.operators.aggregates.functions import Function
from skypane.operators.dominance import KDominant, TopDelta
from skypane.operators.query import Query
from skypane.operators.skyline import Skyline
from skypane.operators.stay_columns import WINDOWS, AnswerForm
from skypane.operators.topk import TopK
from skypane.plan import Plan, hidden
from skypane.preference import ColumnLike, Columns, Preference, Score, column_name
from skypane.progress import ProgressPolicy
from skypane.runtime.spark import batch
from skypane.runtime.spark.amend import Amend, amend_of
from skypane.runtime.spark.answer_files import AnswerFiles, BatchOutput
from skypane.runtime.spark.answer_folder import IfExists
from skypane.runtime.spark.arguments import (
    check_needed,
    early_of,
    policy_of,
    query_of,
    rows_schema,
    windows_of,
    workers_of,
)
from skypane.runtime.spark.having_by_spark import apart, filtered, met
from skypane.runtime.spark.job import Job
from skypane.runtime.spark.pandas_frames import Static, as_spark
from skypane.runtime.spark.projection import projected
from skypane.runtime.spark.sinks.sink_arguments import Output, Sinks
from skypane.types import Duration
from skypane.windows import Windows

_STREAM = "sp.stream(rows, sp.Skyline(...), time=..., window=..., checkpoint=..., output=...)"


def skyline(
    rows: Static,
    preference: Preference | str,
    *,
    by: Columns = (),
    time: ColumnLike | None = None,
    window: Duration | Windows | None = None,
    slide: Duration | None = None,
    invalid: batch.Invalid = "error",
    output: BatchOutput | None = None,
    if_exists: IfExists = "error",
) -> DataFrame:
    """Return the rows that no other row dominates: none is at least as good on every criterion and better on one.

    preference  low("price") * high("rating"), or "price MIN, rating MAX"; a column may be an
                expression: "price * 2 MIN", low(F.abs("price"))
    by          computes one skyline for each value of these columns

    Equal rows are all kept, and rows keep all their columns. For windows, `invalid` and `output` see ask(); for a
    streaming DataFrame see stream().

    >>> sp.skyline(offers, "price MIN, rating MAX").select("city", "price", "rating").orderBy("price").show()
    +-----+-----+------+
    | city|price|rating|
    +-----+-----+------+
    |Basel| 60.0|   4.4|
    |Basel| 90.0|   4.5|
    | Bern| 95.0|   4.8|
    +-----+-----+------+
    """
    query = Skyline(preference, by)
    return ask(rows, query, time=time, window=window, slide=slide, invalid=invalid, output=output, if_exists=if_exists)


def top_k(
    rows: Static,
    k: int,
    score: Score | ColumnLike,
    *,
    by: Columns = (),
    largest: bool = True,
    time: ColumnLike | None = None,
    window: Duration | Windows | None = None,
    slide: Duration | None = None,
    invalid: batch.Invalid = "error",
    output: BatchOutput | None = None,
    if_exists: IfExists = "error",
) -> DataFrame:
    """Return the k rows with the largest score, best first; a score is an expression such as "rating - 0.1 * price".

    score    a column of any type that has an order, SQL, or a Spark Column; arithmetic may also use min, max and **.
             The workers compute arithmetic of doubles, and Spark all else
    by       returns k rows for each value of these columns
    largest  False returns the k rows with the smallest score

    Ties on the last rank are broken by the rows' content. For windows, `invalid` and `output` see ask(); for a
    streaming DataFrame see stream().

    >>> sp.top_k(offers, 2, "rating / greatest(price, 1)").select("city", "price", "rating").show()
    +-----+-----+------+
    | city|price|rating|
    +-----+-----+------+
    |Basel| 60.0|   4.4|
    | Bern| 70.0|   4.1|
    +-----+-----+------+
    """
    query = TopK(k, score, by, largest)
    return ask(rows, query, time=time, window=window, slide=slide, invalid=invalid, output=output, if_exists=if_exists)


def k_dominant(
    rows: Static,
    k: int,
    preference: Preference | str,
    *,
    by: Columns = (),
    time: ColumnLike | None = None,
    window: Duration | Windows | None = None,
    slide: Duration | None = None,
    invalid: batch.Invalid = "error",
    output: BatchOutput | None = None,
    if_exists: IfExists = "error",
) -> DataFrame:
    """Return the rows that no other row dominates on any k of the criteria; a smaller k returns fewer rows.

    For windows, `invalid` and `output` see ask(); for a streaming DataFrame see stream().

    >>> sp.k_dominant(offers, 2, "price MIN, rating MAX, ts MAX").select("price", "rating").show()
    +-----+------+
    |price|rating|
    +-----+------+
    | 95.0|   4.8|
    +-----+------+
    """
    query = KDominant(k, preference, by)
    return ask(rows, query, time=time, window=window, slide=slide, invalid=invalid, output=output, if_exists=if_exists)


def top_delta(
    rows: Static,
    delta: int,
    preference: Preference | str,
    *,
    by: Columns = (),
    time: ColumnLike | None = None,
    window: Duration | Windows | None = None,
    slide: Duration | None = None,
    invalid: batch.Invalid = "error",
    output: BatchOutput | None = None,
    if_exists: IfExists = "error",
) -> DataFrame:
    """Return the k-dominant skyline for the smallest k that returns more than delta rows.

    For windows, `invalid` and `output` see ask(); for a streaming DataFrame see stream().

    >>> sp.top_delta(offers, 2, "price MIN, rating MAX, ts MAX").select("price", "rating").orderBy("price").show()
    +-----+------+
    |price|rating|
    +-----+------+
    | 60.0|   4.4|
    | 90.0|   4.5|
    | 95.0|   4.8|
    +-----+------+
    """
    query = TopDelta(delta, preference, by)
    return ask(rows, query, time=time, window=window, slide=slide, invalid=invalid, output=output, if_exists=if_exists)


def aggregate(
    rows: Static,
    *,
    by: Columns = (),
    time: ColumnLike | None = None,
    window: Duration | Windows | None = None,
    slide: Duration | None = None,
    invalid: batch.Invalid = "error",
    output: BatchOutput | None = None,
    if_exists: IfExists = "error",
    required: Columns = (),
    having: ColumnLike | None = None,
    top: int | None = None,
    rank_by: str | None = None,
    functions: Mapping[str, Function] | None = None,
    **named: Function,
) -> DataFrame:
    """Return one row per key, with the value of each function: n=sp.count(), total=sp.sum("amount").

    by         one key for each combination of values of these columns; null is a value
    required   columns in which a null or NaN is invalid instead of skipped
    having     a condition on rows of the answer: a text, or a Spark Column; Spark evaluates what workers cannot
    top        returns only the `top` rows that meet `having` with the largest `rank_by`; see Aggregate
    functions  count, sum, avg, min, max and others of this package, by the name of their column in the answer; a column
               that has the name of an argument is written as functions={"top": sp.max("price")}

    Null values are skipped, as in SQL. For windows, `output` and `invalid`, which also covers a null time, see ask();
    for a streaming DataFrame see stream(rows, Aggregate(...)).

    >>> sp.aggregate(offers, by="city", n=sp.count(), cheapest=sp.min("price")).orderBy("city").show()
    +-----+---+--------+
    | city|  n|cheapest|
    +-----+---+--------+
    |Basel|  4|    60.0|
    | Bern|  2|    70.0|
    +-----+---+--------+
    """
    # Without windows the time column only orders the rows.
    query = Aggregate(
        by, time=time, required=required, having=having, top=top, rank_by=rank_by, functions=functions, **named
    )
    at = time if window is not None or slide is not None else None
    return ask(rows, query, time=at, window=window, slide=slide, invalid=invalid, output=output, if_exists=if_exists)


def ask(
    rows: Static,
    query: Query | Preference | str,
    *,
    time: ColumnLike | None = None,
    window: Duration | Windows | None = None,
    slide: Duration | None = None,
    invalid: batch.Invalid = "error",
    output: BatchOutput | None = None,
    if_exists: IfExists = "error",
) -> DataFrame:
    """Return a DataFrame with the answer of a query, built-in or your own, over a static DataFrame: lazy, without `output`.

    A preference, such as "price MIN, rating MAX", is the query Skyline("price MIN, rating MAX").
    Without `time` and `window` the query runs over all rows. With both it runs over each window, and the answers begin
    with the columns window_start and window_end.

    rows       a Spark DataFrame, or a pandas-on-Spark one, whose index is left out
    time       event-time column, a timestamp
    window     length of a window, such as "1 hour" or timedelta(hours=1); or Windows.of(length, slide, offset)
    slide      distance between the starts of consecutive windows; defaults to the window's length
    invalid    "error" fails the query at run time on a null or NaN criterion or a null time; "drop" skips such rows
    output     folder of parquet files, a path or Directory, which the workers write now; the returned DataFrame reads it.
               The files appear at once, when all are complete, and an error leaves the folder as it was
    if_exists  whether a folder that has files is an "error", or the answers replace them, "overwrite"; a folder with other
               files than answers, with those of a stream, or with rows that the query reads is never replaced

    Raises ConfigError, naming argument, value and remedy, if the query cannot run over these rows, and SkypaneError with
    the cause if answers are not written.

    >>> answer = sp.ask(offers, "price MIN, rating MAX", time="ts", window="1 hour")
    >>> answer.select("window_start", "price", "rating").orderBy("window_start", "price").show()
    +-------------------+-----+------+
    |       window_start|price|rating|
    +-------------------+-----+------+
    |2026-01-01 10:00:00| 70.0|   4.1|
    |2026-01-01 10:00:00| 90.0|   4.5|
    |2026-01-01 11:00:00| 60.0|   4.4|
    |2026-01-01 11:00:00| 95.0|   4.8|
    +-------------------+-----+------+
    """
    frame: DataFrame = as_spark(rows)
    schema = rows_schema(frame, streaming=False, other=_STREAM)
    written, at = query_of(query, frame, schema), None if time is None else column_name(time, "time")
    projection = projected(frame, schema, written, at)
    frame, schema = projection.rows, projection.schema
    asked, condition = apart(projection.of(written), schema)
    asked.validate(schema)
    batch.check_invalid(invalid)
    files = AnswerFiles.of(output, if_exists, frame, condition)
    if time is None and window is None and slide is None:
        return _answers(
            batch.whole(frame, schema, asked, invalid, hidden(asked, projection.computed)), condition, files
        )
    check_needed({"time": time, "window": window})
    plan = Plan(asked, windows_of(window or "", slide), projection.of(at or ""), computed=projection.computed)
    plan.validate(schema)
    return _answers(batch.windowed(frame, schema, plan, invalid, shared=files is not None), condition, files)


def _answers(stage: batch.LastStage, condition: str | None, files: AnswerFiles | None) -> DataFrame:
    return met(stage.answers, condition) if files is None else files.write(stage)


def stream(
    rows: DataFrame,
    query: Query | Preference | str,
    *,
    time: ColumnLike | None = None,
    window: Duration | Windows | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    output: Output | None = None,
    slide: Duration | None = None,
    progress: ProgressPolicy | None = None,
    source: ColumnLike | None = None,
    late: Output | Amend | None = None,
    early: Duration | None = None,
    answers: AnswerForm = WINDOWS,
    elastic: Elasticity | None = None,
    workers: WorkerOptions | None = None,
) -> Job:
    """Return a Job that answers a query over every window of a streaming DataFrame; its start() runs it.

    A preference, such as "price MIN, rating MAX", is the query Skyline("price MIN, rating MAX"). A window without
    rows has no answer; the metrics count it (BatchMetrics.empty_windows).

    Four arguments are required; one error names all that are missing:
    time         event-time column, a timestamp
    window       length of a window, such as "1 hour" or timedelta(hours=1); or Windows.of(length, slide, offset)
    checkpoint   folder for the checkpoints of Spark and of the engine
    output       sink of the answers: a path or Directory, Console(), Memory(), or a function of (DataFrame, batch id)

    The others are optional:
    slide        distance between the starts of consecutive windows; defaults to the window's length
    progress     policy that decides when a pane is complete: AqKSlack(max_drop=0.01), the default, which drops at most 1 %
                 of the rows as late; KSlack() waits for every row; Watermark("1 hour") waits for a fixed time
    source       column that names a row's source; late rows are counted by it
    late         sink of late and quarantined rows, with their reason; without one they are only counted. With
                 Amend("1 day") late rows amend the windows that were answered without them
    early        event time between two answers of windows that have not ended, such as "10 seconds"; such an answer is
                 replaced by the next one, see the column `early` below; None answers windows at their end only
    answers      "windows" writes the rows of each window; "stays" writes a row once, with the first and the last window of the
                 unbroken run that holds it, which takes far fewer rows if windows are long; read_answers() reads both
    elastic      policy that changes the numbers of workers while the query runs: Fuzzy(), Model(latency="2 s"),
                 Threshold(); None keeps them
    workers      WorkerOptions(plq_workers=4, wlq_workers=2, splitting="AS_PID", elastic=...): numbers of workers, the
                 exchange of rows between them, and `elastic`

    With `early` answers have the columns that Amend describes, and `early` after `version`: true in a version from
    before the window's end. The version at its end is never early, even if no rows have come since the last one.

    Stays begin with the columns window_from and window_to, the starts of the first and the last window, window_end, the end
    of the last one, and window_count. A stay ends with the windows of its batch at the latest, and may be cut before. They
    are for windows that are answered once, without Amend and `early`, and for parquet folders, Memory(), Console() and
    functions.

    Raises ConfigError, naming argument, value and remedy, if the query cannot run over these rows.

    >>> job = sp.stream(
    ...     arriving, "price MIN, rating MAX", time="ts", window="1 hour", checkpoint="state", output="best"
    ... )
    >>> handle = job.start(availableNow=True)
    >>> handle.await_termination()
    True
    >>> metrics = handle.drain()  # no more rows will come: answer the last windows, too
    >>> spark.read.parquet("best").select("window_start", "price").orderBy("window_start", "price").show()
    +-------------------+-----+
    |       window_start|price|
    +-------------------+-----+
    |2026-01-01 10:00:00| 70.0|
    |2026-01-01 10:00:00| 90.0|
    |2026-01-01 11:00:00| 60.0|
    |2026-01-01 11:00:00| 95.0|
    +-------------------+-----+
    """
    schema = rows_schema(rows, streaming=True, other="sp.ask(rows, query)")
    asked = query_of(query, rows, schema)
    check_needed({"time": time, "window": window, "checkpoint": checkpoint, "output": output})
    amend, rejected = amend_of(late)
    at, origin = column_name(time, "time"), None if source is None else column_name(source, "source")
    projection = projected(rows, schema, asked, at, origin)
    plan = Plan(
        query=projection.of(asked),
        windows=windows_of(window or "", slide),
        time=projection.of(at),
        progress=policy_of(progress),
        source=projection.of(origin),
        amend=amend,
        early=early_of(early),
        answers=answers,
        computed=projection.computed,
    )
    rows, schema = projection.rows, projection.schema
    plan = filtered(plan, rows.sparkSession, schema)
    return Job.of(rows, schema, plan, checkpoint or "", Sinks.of(output, rejected), workers_of(workers, elastic))
