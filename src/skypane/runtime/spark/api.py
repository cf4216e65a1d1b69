"""The queries as a user calls them: the same names on a static DataFrame, answered, and on a streaming one, as a Job."""

from __future__ import annotations

import difflib
import os
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypedDict, Unpack, cast

import pyarrow as pa
from pyspark.sql import DataFrame

from skypane.control.splitting import Splitting, splitting
from skypane.control.workers import Workers
from skypane.operators.dominance import KDominantQuery, TopDeltaQuery
from skypane.operators.entry.gate import Gate
from skypane.operators.entry.reasons import REASON
from skypane.operators.query import Query
from skypane.operators.skyline import SkylineQuery
from skypane.operators.topk import TopKQuery
from skypane.operators.window_query import WindowQuery
from skypane.plan import Plan
from skypane.preference import Preference, Score
from skypane.progress import KSlack, ProgressPolicy
from skypane.runtime.spark import batch
from skypane.runtime.spark.engine.rejects import schema_of
from skypane.runtime.spark.engine.setting import Setting
from skypane.runtime.spark.job import Job
from skypane.runtime.spark.machine.interpreter import check_workers
from skypane.runtime.spark.machine.session import parallelism
from skypane.runtime.spark.schema import arrow_schema
from skypane.runtime.spark.sinks.door import sinks
from skypane.runtime.spark.sinks.sink import Sink
from skypane.runtime.spark.store import Store
from skypane.types import ConfigError, Duration
from skypane.windows import Windows

Columns: TypeAlias = "str | Sequence[str]"
Output: TypeAlias = "str | os.PathLike[str] | Sink | Callable[[DataFrame, int], None]"


class Options(TypedDict, total=False):
    """What every query takes beside itself; None is as good as left out.

    Windows, of static and streaming DataFrames (a static one may be asked without, as a whole):
      time          event-time column, a timestamp
      window        length of a window, e.g. "1 hour"
      slide         from one window to the next; the window's length, if left out
      offset        where windows start, relative to the epoch
    Static DataFrames only:
      invalid       "error" (default): a null or NaN criterion, or a null time, fails the query when it runs, as Spark's
                    PythonException that quotes a BadInputError; "drop": such rows are left out
    Streaming DataFrames only:
      progress      when a pane counts as complete; KSlack() if left out
      source        column that names a row's source, to count late rows by
      checkpoint    folder for Spark's checkpoint and the engine's; needed
      output        where answers go: a path or Directory, Console(), Memory(), or a function of (DataFrame, batch id); needed
      late          where late and quarantined rows go, with their reason; counted only, if left out
      splitting     where rows are exchanged: "PB_RR" (panes to workers in turn), "TB_RR" (rows to workers in turn), "AS"
                    (large panes are split), "AS_PID" (just enough of them to keep up)
      plq_workers   tasks that lift, where rows are exchanged; the default parallelism, if left out
      wlq_workers   tasks that combine
    """

    time: str
    window: Duration
    slide: Duration
    offset: Duration
    invalid: batch.Invalid
    progress: ProgressPolicy
    source: str
    checkpoint: str | os.PathLike[str]
    output: Output
    late: Output
    splitting: str | Splitting
    plq_workers: int
    wlq_workers: int


_WINDOW = {"time", "window", "slide", "offset"}
_BATCH = _WINDOW | {"invalid"}
_STREAM = Options.__optional_keys__ - {"invalid"}


def skyline(
    rows: DataFrame, preference: Preference | str, *, by: Columns = (), **options: Unpack[Options]
) -> DataFrame | Job:
    """Return the rows that no other row is better than: at least as good on every criterion, better on one.

    preference  low("price") * high("rating"), or "price MIN, rating MAX"
    by          one skyline for each value of these columns
    Equal rows are all kept, and rows keep all their columns. See Options for the rest.
    """
    return ask(rows, SkylineQuery(Preference.of(preference), _names(by)), **options)


def top_k(
    rows: DataFrame,
    k: int,
    score: Score | str,
    *,
    by: Columns = (),
    largest: bool = True,
    **options: Unpack[Options],
) -> DataFrame | Job:
    """Return the k rows of largest score, or of smallest: "rating - 0.1 * price" ranks by what a star is worth."""
    return ask(rows, TopKQuery(k, Score.of(score), _names(by), largest), **options)


def k_dominant(
    rows: DataFrame, k: int, preference: Preference | str, *, by: Columns = (), **options: Unpack[Options]
) -> DataFrame | Job:
    """Return the rows that no other row is better than on any k of the criteria: a smaller skyline for a smaller k."""
    return ask(rows, KDominantQuery(k, Preference.of(preference), _names(by)), **options)


def top_delta(
    rows: DataFrame, delta: int, preference: Preference | str, *, by: Columns = (), **options: Unpack[Options]
) -> DataFrame | Job:
    """Return the k-dominant skyline for the smallest k that gives more than delta rows."""
    return ask(rows, TopDeltaQuery(delta, Preference.of(preference), _names(by)), **options)


def ask(rows: DataFrame, query: Query, **options: Unpack[Options]) -> DataFrame | Job:
    """Ask any query, one of your own too: a DataFrame of answers, or for a streaming DataFrame a Job to start."""
    if not isinstance(rows, DataFrame):
        raise ConfigError(f"the first argument must be a DataFrame, got {type(rows).__name__}")
    options = cast("Options", {name: value for name, value in options.items() if value is not None})
    check_workers(rows.sparkSession)
    _check_names(rows)
    schema = arrow_schema(rows)
    if rows.isStreaming:
        return _job(rows, query, schema, options)
    _only(options, _BATCH, "a static DataFrame")
    query.validate(schema)
    invalid = options.get("invalid", "error")
    if invalid not in ("error", "drop"):
        raise ConfigError(f"invalid must be 'error' or 'drop', got {invalid!r}")
    gate = None
    if _WINDOW & options.keys():
        gate = Gate(_windows(options), _needed(options, "time"), tuple(query.columns))
        gate.validate(schema)
        WindowQuery(query, gate.windows, None).output_schema(schema)
    return batch.answer(rows, schema, query, gate, invalid)


def _job(rows: DataFrame, query: Query, schema: pa.Schema, options: Options) -> Job:
    _only(options, _STREAM, "a streaming DataFrame")
    plan = Plan(
        query=query,
        windows=_windows(options),
        time=_needed(options, "time"),
        progress=_progress(options),
        source=options.get("source"),
    )
    answers = plan.validate(schema)
    output, late = _sinks(options, schema, answers)
    setting = Setting(
        plan=plan,
        rows=schema,
        answers=answers,
        # Absolute, because Java resolves a relative path against the folder that it was started in.
        checkpoint=Store.at(_needed(options, "checkpoint"), "checkpoint").root,
        output=output,
        late=late,
        splitting=splitting(options.get("splitting", "PB_RR")),
    )
    cores = parallelism(rows.sparkSession)
    return Job(rows, setting, Workers(options.get("plq_workers", cores), options.get("wlq_workers", cores)))


def _check_names(rows: DataFrame) -> None:
    """Refuse what PySpark cannot hand to Python: it looks columns up by name, and reads a dot as a field's."""
    for name, times in Counter(rows.columns).items():
        if times > 1:
            raise ConfigError(f"there are {times} columns {name!r}: rename or drop all but one")
        if "." in name or "`" in name:
            raise ConfigError(
                f"column {name!r} has a dot or a backtick in its name, which PySpark cannot map: rename it"
            )


def _progress(options: Options) -> ProgressPolicy:
    policy = options.get("progress", KSlack())
    if not hasattr(policy, "step"):
        raise ConfigError(
            f"progress must be a policy such as Watermark('1 hour'), KSlack() or AqKSlack(0.01), got {policy!r}"
        )
    return policy


def _sinks(options: Options, schema: pa.Schema, answers: pa.Schema) -> tuple[Sink, Sink | None]:
    late = options.get("late")
    if late is not None and REASON in schema.names:
        raise ConfigError(f"late rows get a column {REASON!r} that says why: rename yours")
    return sinks(_needed(options, "output"), late, answers, schema_of(schema))


def _windows(options: Options) -> Windows:
    return Windows.of(_needed(options, "window"), options.get("slide"), options.get("offset", 0))


def _needed(options: Options, name: str) -> Any:
    if name not in options:
        raise ConfigError(f"{name}= is needed here; see skypane.Options")
    return options[name]  # type: ignore[literal-required]


def _only(options: Options, known: set[str] | frozenset[str], what: str) -> None:
    for name in sorted(options.keys() - known):
        near = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(sorted(known))}"
        raise ConfigError(f"{name}= is no option for {what}: {hint}")


def _names(by: Columns) -> tuple[str, ...]:
    return (by,) if isinstance(by, str) else tuple(by)
