"""streams(): several windowed queries over one read of one stream, in one job with one checkpoint."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping

from pyspark.sql import DataFrame

from skypane.control.elasticity.options import Elasticity
from skypane.control.worker_options import WorkerOptions
from skypane.naming import instead
from skypane.operators.query import Query
from skypane.operators.stay_columns import WINDOWS, AnswerForm
from skypane.plan import Plan
from skypane.preference import ColumnLike, Preference, column_name
from skypane.progress import ProgressPolicy
from skypane.runtime.spark.amend import Amend, amend_of
from skypane.runtime.spark.arguments import (
    check_needed,
    early_of,
    policy_of,
    query_of,
    rows_schema,
    windows_of,
    workers_of,
)
from skypane.runtime.spark.having_by_spark import filtered
from skypane.runtime.spark.job import Job
from skypane.runtime.spark.projection import Projection, projected
from skypane.runtime.spark.sinks.shared_sinks import SharedSinks
from skypane.runtime.spark.sinks.sink_arguments import Output
from skypane.shared_plan import SharedPlan
from skypane.types import ConfigError, Duration
from skypane.windows import Windows


def streams(
    rows: DataFrame,
    queries: Mapping[str, Query | Preference | str],
    *,
    time: ColumnLike | None = None,
    window: Duration | Windows | Mapping[str, Duration | Windows] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    output: Output | Mapping[str, Output] | None = None,
    slide: Duration | Mapping[str, Duration] | None = None,
    progress: ProgressPolicy | None = None,
    source: ColumnLike | None = None,
    late: Output | Amend | None = None,
    early: Duration | None = None,
    answers: AnswerForm = WINDOWS,
    elastic: Elasticity | None = None,
    workers: WorkerOptions | None = None,
) -> Job:
    """Return a Job that answers several queries over one streaming DataFrame, whose rows are read once; see stream().

    queries      queries by name: {"best": sp.Skyline(...), "load": sp.Aggregate(...)}; a name is of letters, digits, "_"
                 and "-"; a preference such as "price MIN, rating MAX" stands for its skyline
    window       length of the windows of all queries, or of each: {"best": "10 minutes", "load": "1 hour"}
    slide        as `window`; a query that it does not name has tumbling windows
    output       a folder, in which each query gets a folder of its name, or a sink for each query by name

    The other arguments are those of stream(), for all queries together: one time column, progress policy, checkpoint and
    set of workers. Each query answers, drops and quarantines the same rows as it would in a job of its own: it has its
    own panes, and the policy follows these. A row in `late` has, beside its reason, the column `queries`: the names of
    the queries that rejected the row for it. All queries commit together. `metrics.queries` has the metrics of each.

    Raises ConfigError, naming argument, query, value and remedy, if a query cannot run over these rows. On a checkpoint
    that exists each query may change as that of stream() may. A query that is added begins with the first window whose
    rows are all still to come; a query can be removed when all its windows are answered, as after a drain. Other changes
    are a CheckpointError at the start; changes() of the job shows them by query.

    >>> queries = {"best": sp.Skyline("price MIN, rating MAX"), "sums": sp.Aggregate("city", n=sp.count())}
    >>> job = sp.streams(arriving, queries, time="ts", window="1 hour", checkpoint="state", output="answers")
    >>> handle = job.start(availableNow=True)
    >>> handle.await_termination()
    True
    >>> metrics = handle.drain()
    >>> sums = spark.read.parquet("answers/sums").orderBy("window_start", "city")
    >>> sums.select("window_start", "city", "n").show()
    +-------------------+-----+---+
    |       window_start| city|  n|
    +-------------------+-----+---+
    |2026-01-01 10:00:00|Basel|  3|
    |2026-01-01 10:00:00| Bern|  1|
    |2026-01-01 11:00:00|Basel|  1|
    |2026-01-01 11:00:00| Bern|  1|
    +-------------------+-----+---+
    """
    schema = rows_schema(rows, streaming=True, other="sp.ask(rows, query)")
    if not isinstance(queries, Mapping):
        raise ConfigError(f"queries must be a mapping such as {{'best': sp.Skyline(...)}}, got {queries!r}")
    check_needed({"time": time, "window": window, "checkpoint": checkpoint, "output": output})
    windows = _windows(window, slide, queries)
    amend, rejected = amend_of(late)
    at, origin = column_name(time, "time"), None if source is None else column_name(source, "source")
    asked = {name: query_of(query, rows, schema) for name, query in queries.items()}
    projection = projected(rows, schema, *asked.values(), at, origin)
    plans = {}
    for name, query in asked.items():
        plan = Plan(
            query=projection.of(query),
            windows=windows[name],
            time=projection.of(at),
            progress=policy_of(progress),
            source=projection.of(origin),
            amend=amend,
            early=early_of(early),
            answers=answers,
            computed=projection.computed,
        )
        plans[name] = _filtered(name, plan, projection)
    sinks = SharedSinks.of(output, rejected, list(queries))
    rows, schema = projection.rows, projection.schema
    return Job.of(rows, schema, SharedPlan(plans), checkpoint or "", sinks, workers_of(workers, elastic))


def _filtered(name: str, plan: Plan, projection: Projection) -> Plan:
    """Return the plan of a query as filtered() does; its errors name the query."""
    try:
        return filtered(plan, projection.rows.sparkSession, projection.schema)
    except ConfigError as error:
        raise ConfigError(f"query {name!r}: {error}") from error


def _windows(
    window: Duration | Windows | Mapping[str, Duration | Windows] | None,
    slide: Duration | Mapping[str, Duration] | None,
    names: Collection[str],
) -> dict[str, Windows]:
    """Return the windows of each query; ConfigError if one has none, or if there are some for a query that is none."""
    lengths = window if isinstance(window, Mapping) else dict.fromkeys(names, window or "")
    slides = slide if isinstance(slide, Mapping) else {name: slide for name in names if slide is not None}
    for field, given in (("window", lengths), ("slide", slides)):
        for name in given.keys() - set(names):
            raise ConfigError(f"{field} is for the query {name!r}, which is none: {instead(str(name), list(names))}")
    if missing := [name for name in names if name not in lengths]:
        raise ConfigError(f"window has none for the query {', '.join(map(repr, missing))}: give each query one")
    return {name: windows_of(lengths[name], slides.get(name)) for name in names}
