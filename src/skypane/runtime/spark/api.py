"""The doors: skyline, top_k, k_dominant, top_delta, aggregate and ask answer a static DataFrame; stream makes a Job of a streaming one.

A query is a value, such as Skyline("price MIN, rating MAX"). The doors named after a query are ask() with that query.
"""

from __future__ import annotations

import os
from dataclasses import replace

from pyspark.sql import DataFrame

from skypane.control.elasticity.options import Elasticity
from skypane.control.splitting import Splitting
from skypane.operators.aggregates.aggregate import Aggregate
from skypane.operators.aggregates.functions import Function
from skypane.operators.dominance import KDominant, TopDelta
from skypane.operators.query import Query, check_implements
from skypane.operators.skyline import Skyline
from skypane.operators.topk import TopK
from skypane.plan import Plan
from skypane.preference import ColumnLike, Columns, Preference, Score, column_name
from skypane.progress import ProgressPolicy
from skypane.runtime.spark import batch
from skypane.runtime.spark.arguments import check_needed, elastic_law, policy_of, rows_schema, windows_of
from skypane.runtime.spark.assembly import Output, setting_of, workers_of
from skypane.runtime.spark.job import Job
from skypane.runtime.spark.machine.session import parallelism
from skypane.types import Duration


def skyline(
    rows: DataFrame,
    preference: Preference | str,
    *,
    by: Columns = (),
    time: ColumnLike | None = None,
    window: Duration | None = None,
    slide: Duration | None = None,
    offset: Duration | None = None,
    invalid: batch.Invalid = "error",
) -> DataFrame:
    """Return the rows that no other row is better than: at least as good on every criterion, better on one.

    preference  low("price") * high("rating"), or "price MIN, rating MAX"
    by          one skyline for each value of these columns

    Equal rows are all kept, and rows keep all their columns. For windows and `invalid` see ask(); for a streaming
    DataFrame see stream().
    """
    query = Skyline(preference, by)
    return ask(rows, query, time=time, window=window, slide=slide, offset=offset, invalid=invalid)


def top_k(
    rows: DataFrame,
    k: int,
    score: Score | ColumnLike,
    *,
    by: Columns = (),
    largest: bool = True,
    time: ColumnLike | None = None,
    window: Duration | None = None,
    slide: Duration | None = None,
    offset: Duration | None = None,
    invalid: batch.Invalid = "error",
) -> DataFrame:
    """Return the k rows of largest score, best first: "rating - 0.1 * price" ranks by what a star is worth.

    score    arithmetic over columns, as text or as a Spark Column; in text also abs, sqrt, log, exp, min, max
    by       k rows for each value of these columns
    largest  False: the k rows of smallest score

    Ties on the last place are broken by the rows' content. For windows and `invalid` see ask(); for a streaming
    DataFrame see stream().
    """
    query = TopK(k, score, by, largest)
    return ask(rows, query, time=time, window=window, slide=slide, offset=offset, invalid=invalid)


def k_dominant(
    rows: DataFrame,
    k: int,
    preference: Preference | str,
    *,
    by: Columns = (),
    time: ColumnLike | None = None,
    window: Duration | None = None,
    slide: Duration | None = None,
    offset: Duration | None = None,
    invalid: batch.Invalid = "error",
) -> DataFrame:
    """Return the rows that no other row is better than on any k of the criteria: a smaller skyline for a smaller k.

    For windows and `invalid` see ask(); for a streaming DataFrame see stream().
    """
    query = KDominant(k, preference, by)
    return ask(rows, query, time=time, window=window, slide=slide, offset=offset, invalid=invalid)


def top_delta(
    rows: DataFrame,
    delta: int,
    preference: Preference | str,
    *,
    by: Columns = (),
    time: ColumnLike | None = None,
    window: Duration | None = None,
    slide: Duration | None = None,
    offset: Duration | None = None,
    invalid: batch.Invalid = "error",
) -> DataFrame:
    """Return the k-dominant skyline for the smallest k that gives more than delta rows.

    For windows and `invalid` see ask(); for a streaming DataFrame see stream().
    """
    query = TopDelta(delta, preference, by)
    return ask(rows, query, time=time, window=window, slide=slide, offset=offset, invalid=invalid)


def aggregate(
    rows: DataFrame,
    *,
    by: Columns = (),
    time: ColumnLike | None = None,
    window: Duration | None = None,
    slide: Duration | None = None,
    offset: Duration | None = None,
    invalid: batch.Invalid = "error",
    required: Columns = (),
    having: str | None = None,
    top: int | None = None,
    rank_by: str | None = None,
    **functions: Function,
) -> DataFrame:
    """Return one row per key, with the value of each function: n=sp.count(), total=sp.sum("amount").

    by         one key for each value of these columns together; null is a value
    required   columns in which a null or NaN is invalid, not skipped
    having     a condition on rows of the answer; `top` of those are told, with the largest `rank_by`; see Aggregate
    functions  count, sum, avg, min, max and others of this package, by the name of their column in the answer

    Null values are skipped, as in SQL. For windows and `invalid` (a null time too) see ask(); for a streaming DataFrame see
    stream(rows, Aggregate(...)).
    """
    # Without windows the time column is an order of rows and nothing else.
    query = Aggregate(by, time=time, required=required, having=having, top=top, rank_by=rank_by, **functions)
    windowed = any(given is not None for given in (window, slide, offset))
    return ask(rows, query, time=time if windowed else None, window=window, slide=slide, offset=offset, invalid=invalid)


def ask(
    rows: DataFrame,
    query: Query,
    *,
    time: ColumnLike | None = None,
    window: Duration | None = None,
    slide: Duration | None = None,
    offset: Duration | None = None,
    invalid: batch.Invalid = "error",
) -> DataFrame:
    """Ask any query of a static DataFrame, one of your own too; nothing runs before Spark needs the answer.

    Without `time` and `window` the query is asked of all rows at once; with both, of each window, and answers begin with
    the columns window_start and window_end.

    time     event-time column, a timestamp
    window   length of a window, such as "1 hour" or timedelta(hours=1)
    slide    from one window to the next; the window's length, if left out
    offset   where windows start, relative to the epoch
    invalid  "error": a null or NaN criterion, or a null time, fails the query when it runs; "drop": such rows are left out

    Raises ConfigError, naming argument, value and remedy, for what cannot be asked.
    """
    schema = rows_schema(rows, streaming=False)
    check_implements(query)
    query.validate(schema)
    batch.check_invalid(invalid)
    if time is None and window is None and slide is None and offset is None:
        return batch.whole(rows, schema, query, invalid)
    check_needed({"time": time, "window": window})
    plan = Plan(query, windows_of(window, slide, offset), column_name(time, "time"))
    plan.validate(schema)
    return batch.windowed(rows, schema, plan, invalid)


def stream(
    rows: DataFrame,
    query: Query,
    *,
    time: ColumnLike | None = None,
    window: Duration | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    output: Output | None = None,
    slide: Duration | None = None,
    offset: Duration | None = None,
    progress: ProgressPolicy | None = None,
    source: ColumnLike | None = None,
    late: Output | None = None,
    splitting: str | Splitting = "PB_RR",
    plq_workers: int | None = None,
    wlq_workers: int | None = None,
    elastic: Elasticity | None = None,
) -> Job:
    """Ask a query of every window of a streaming DataFrame; return a Job, which start() sets running.

    A window without rows has no answer: the metrics count it (BatchMetrics.empty_windows).

    Four arguments are needed; all that lack are named at once:
    time         event-time column, a timestamp
    window       length of a window, such as "1 hour" or timedelta(hours=1)
    checkpoint   folder for Spark's checkpoint and the engine's
    output       where answers go: a path or Directory, Console(), Memory(), or a function of (DataFrame, batch id)

    The others may be left out:
    slide        from one window to the next; the window's length, if left out
    offset       where windows start, relative to the epoch
    progress     when a pane counts as complete: KSlack() if left out, AqKSlack(0.01), Watermark("1 hour")
    source       column that names a row's source, to count late rows by
    late         where late and quarantined rows go, with their reason; they are only counted, if left out
    splitting    where rows are exchanged: "PB_RR" (panes to workers in turn), "TB_RR" (rows to workers in turn), "AS"
                 (panes larger than usual are split), "AS_PID" (as few of them as it takes to keep up)
    plq_workers  tasks that lift, at most, unless rows are exchanged: then exactly; if left out, the source's partitions,
                 or the default parallelism
    wlq_workers  tasks that combine, at most; the default parallelism, if left out
    elastic      what changes both while the query runs: Fuzzy(), Model(latency="2 s"), Threshold(); None: nothing does

    Raises ConfigError, naming argument, value and remedy, for what cannot be asked.
    """
    schema = rows_schema(rows, streaming=True)
    check_implements(query)
    check_needed({"time": time, "window": window, "checkpoint": checkpoint, "output": output})
    plan = Plan(
        query=query,
        windows=windows_of(window, slide, offset),
        time=column_name(time, "time"),
        progress=policy_of(progress),
        source=None if source is None else column_name(source, "source"),
    )
    plan.validate(schema)
    if late is None:  # nobody will see a row again: what the plan does not read need not be moved
        rows, schema = batch.pruned(rows, schema, plan.reads(schema))
    setting = setting_of(rows, schema, plan, checkpoint=checkpoint, output=output, late=late, splitting=splitting)
    setting = replace(setting, limits=plq_workers is not None)
    asked = workers_of(rows, plq_workers, wlq_workers)
    if elastic is None:
        return Job(rows, setting, asked)
    law = elastic_law(
        elastic, asked, parallelism(rows.sparkSession), given=(plq_workers is not None, wlq_workers is not None)
    )
    return Job(rows, replace(setting, elastic=law), law.init().workers)
