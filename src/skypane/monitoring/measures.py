"""The measures of streams: one table, each computed from the metrics of a batch.

Names follow Prometheus' conventions: base units in the name, `_total` for what is only added up, times as seconds since
1970, so that `time() - ...` also grows while no batch runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

from skypane.metrics import BatchMetrics, QueryMetrics
from skypane.types import Micros

M = TypeVar("M")

Kind: TypeAlias = Literal["counter", "gauge", "histogram"]
Values: TypeAlias = Mapping[tuple[str, ...], float | None]
"""Values by the measure's own labels, in their order; None leaves a gauge as it was."""

STREAM, QUERY = "stream", "query"
"""Labels of all measures, and of those of each query: the name of the stream; the query's name in sp.streams, else empty."""

SECONDS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""Upper bounds of the buckets of a histogram of seconds."""


@dataclass(frozen=True)
class Measure(Generic[M]):
    """One metric, as Prometheus names it.

    kind     a counter adds its values up, a gauge keeps the last one, a histogram counts each in its bucket
    read     returns the values of a batch
    labels   its own labels, beside `stream` and `query`
    times    how often a histogram counts each value of a batch
    whole    whether a batch has all values of a gauge: those with other labels are removed
    """

    name: str
    kind: Kind
    unit: str
    meaning: str
    read: Callable[[M], Values]
    labels: tuple[str, ...] = ()
    times: Callable[[M], int] = lambda _: 1
    whole: bool = False


def _one(value: float | None) -> Values:
    return {(): value}


def _instant(time: Micros | None) -> Values:
    return _one(None if time is None else time / 1e6)


def _each(values: Mapping[str, float]) -> Values:
    return {(name,): value for name, value in values.items()}


def _known(value: float | None) -> float:
    """Return NaN, which Prometheus shows as a gap, for a value that a batch does not have."""
    return math.nan if value is None else value


def _late_by_source(metrics: QueryMetrics) -> Values:
    """Return the late rows by source, first those of the source "", which is that of all rows without a source column."""
    named = {source: rows for source, rows in metrics.late_by_source.items() if source}
    return _each({"": metrics.late_rows - sum(named.values()), **named})


def _unavoidable(metrics: QueryMetrics) -> Values:
    """Return the share of unavoidable rows; nothing if the policy does not count them."""
    rows = metrics.unavoidable_rows
    return _one(None if rows is None else rows / max(1, metrics.seen_rows))


def _steps(metrics: BatchMetrics) -> Values:
    return _each({step: seconds for step, seconds in metrics.seconds.items() if step != "total"})


def _decisions(metrics: BatchMetrics) -> Values:
    """Return 1 for what was decided for the batch, of the decisions that choose among a few names."""
    lift = metrics.decision("lift")
    chosen = {
        "exchange": "yes" if metrics.exchange else "no",
        "lift": "spark" if lift is None else str(lift.value),
        "placement": metrics.wlq_where,
        "splitting": metrics.splitting,
    }
    return dict.fromkeys(chosen.items(), 1)


def _promised(metrics: BatchMetrics) -> Values:
    judged = metrics.decision("latency")
    return {} if judged is None else _one(judged.figures["promised"])


def _inputs(metrics: BatchMetrics) -> Values:
    states = [one.state for one in metrics.inputs]
    return _each({state: states.count(state) for state in ("read", "silent", "behind", "gone")}) if states else {}


def _input_lag(metrics: BatchMetrics) -> Values:
    return _one(sum(one.lag for one in metrics.inputs)) if metrics.inputs else {}


def _input_waiting(metrics: BatchMetrics) -> Values:
    """Return the longest wait of all inputs: 0 if all are read, NaN if no input that lags states its event times."""
    lagging = [one.waiting for one in metrics.inputs if one.lag]
    known = [waiting for waiting in lagging if waiting is not None]
    return _one(max(known, default=math.nan) if lagging else 0) if metrics.inputs else {}


def _causes(metrics: BatchMetrics) -> Values:
    """Return the number of each cause, with the words of its line, which stay the same for long; no example rows."""
    return {(one.name, one.query, one.what, one.begun, one.why, one.remedy): one.number for one in metrics.causes}


def _front_updates(metrics: BatchMetrics) -> Values:
    return {} if metrics.front is None else _each({"add": metrics.front["adds"], "del": metrics.front["dels"]})


RUNNING: Final = Measure[bool](
    "skypane_running", "gauge", "0 or 1", "1 while the query runs; 0 if it has ended, or Spark does not answer",
    _one,
)  # fmt: skip

OF_STREAMS: Final[tuple[Measure[BatchMetrics], ...]] = (
    Measure("skypane_batches_total", "counter", "batches", "committed micro-batches", lambda _: _one(1)),
    Measure(
        "skypane_rows_total", "counter", "rows", "rows read from the source, and rows that were readmitted",
        lambda m: _one(m.rows),
    ),
    Measure(
        "skypane_last_batch_timestamp_seconds", "gauge", "time in s", "when the last batch was committed",
        lambda m: _one(m.started_at + m.seconds.get("total", 0.0)),
    ),
    Measure(
        "skypane_batch_duration_seconds", "histogram", "s", "wall time of a batch",
        lambda m: _one(m.seconds.get("total", 0.0)),
    ),
    Measure(
        "skypane_batch_step_duration_seconds", "histogram", "s",
        "wall time of a step of a batch: plq (panes), progress, wlq (windows), sink, commit", _steps, ("step",),
    ),
    Measure(
        "skypane_pause_seconds", "gauge", "s", 'pause after the last batch, which trigger="auto" has chosen',
        lambda m: _one(m.pause),
    ),
    Measure(
        "skypane_workers", "gauge", "workers", "workers that the pane level (plq) and the window level (wlq) may use",
        lambda m: _each(m.workers), ("level",),
    ),
    Measure(
        "skypane_executors", "gauge", "executors", 'executors at the start of the batch, with executors="follow"',
        lambda m: _one(m.executors),
    ),
    Measure(
        "skypane_utilization_ratio", "gauge", "ratio",
        "utilisation factor of a level: it keeps up while this is below 1; NaN if it had nothing to do",
        lambda m: _each({"plq": _known(m.rho), "wlq": _known(m.rho_wlq)}), ("level",),
    ),
    Measure(
        "skypane_decisions_total", "counter", "batches",
        "batches by what was decided for them: exchange (yes, no), lift and placement (driver, threads, spark), "
        "splitting (name of the policy)", _decisions, ("decision", "value"),
    ),
    Measure(
        "skypane_promised_latency_seconds", "gauge", "s", "bound on the latency of answers, by latency= of Readers or Model",
        _promised,
    ),
    Measure(
        "skypane_inputs", "gauge", "inputs", "inputs of sp.inputs by state: read, silent, behind, gone", _inputs,
        ("state",),
    ),
    Measure(
        "skypane_input_lag_rows", "gauge", "rows", "available rows of all inputs that are in no batch yet", _input_lag,
    ),
    Measure(
        "skypane_input_waiting_seconds", "gauge", "s",
        "event time from the next row to the last available one, of the input in which this is longest", _input_waiting,
    ),
    Measure(
        "skypane_drop_budget_ratio", "gauge", "ratio", "share of rows that the progress policy may drop as late",
        lambda m: _one(m.drop_budget),
    ),
    Measure(
        "skypane_amend_budget_ratio", "gauge", "ratio", "share of answered windows that late rows may amend",
        lambda m: _one(m.amend_budget),
    ),
    Measure(
        "skypane_amended_ratio", "gauge", "ratio",
        "share of answered windows that late rows have amended, since the query has amended",
        lambda m: _one(m.amended_share),
    ),
    Measure(
        "skypane_cause", "gauge", "number",
        "causes of losses and delays that hold, of a query or of all: how many, of what, since when, why, and what to set", _causes,
        ("cause", "of", "what", "since", "why", "remedy"), whole=True,
    ),
    Measure(
        "skypane_front_updates_total", "counter", "updates", "updates of a continuous skyline: add, del",
        _front_updates, ("update",),
    ),
    Measure(
        "skypane_front_rows", "gauge", "rows", "rows on the front of a continuous skyline",
        lambda m: _one(None if m.front is None else m.front["rows"]),
    ),
)  # fmt: skip

OF_QUERIES: Final[tuple[Measure[QueryMetrics], ...]] = (
    Measure(
        "skypane_late_rows_total", "counter", "rows",
        "rows that came after their windows were answered, by source, if the query names a source column",
        _late_by_source, ("source",),
    ),
    Measure(
        "skypane_quarantined_rows_total", "counter", "rows", "rows that cannot be used, by reason",
        lambda m: _each(m.quarantined), ("reason",),
    ),
    Measure(
        "skypane_drop_ratio", "gauge", "ratio", "share of all rows since the first start that were dropped as late",
        lambda m: _one(m.dropped_rows / m.seen_rows if m.seen_rows else 0.0),
    ),
    Measure(
        "skypane_unavoidable_drop_ratio", "gauge", "ratio",
        "share of all rows since the first start that were dropped as late and that no delay could have saved",
        _unavoidable,
    ),
    Measure(
        "skypane_account_rows", "gauge", "rows",
        "rows since the first start: read, and of these answered, late, quarantined, held and open, which add up to them",
        lambda m: _each(m.totals), ("place",),
    ),
    Measure(
        "skypane_punctuation_timestamp_seconds", "gauge", "event time in s",
        "the punctuation: the time before which the stream is complete", lambda m: _instant(m.punctuation),
    ),
    Measure(
        "skypane_newest_timestamp_seconds", "gauge", "event time in s", "the newest event time seen",
        lambda m: _instant(m.newest),
    ),
    Measure(
        "skypane_slack_seconds", "gauge", "s of event time", "how far the punctuation lies behind the newest event time",
        lambda m: _instant(m.slack),
    ),
    Measure(
        "skypane_windows_total", "counter", "windows", "windows answered", lambda m: _one(m.windows),
    ),
    Measure(
        "skypane_answered_timestamp_seconds", "gauge", "event time in s", "the end of the last answered window",
        lambda m: _instant(None if m.latest_window is None else m.latest_window["end"]),
    ),
    Measure(
        "skypane_answer_rows_total", "counter", "rows", "rows of answered windows", lambda m: _one(m.window_rows),
    ),
    Measure(
        "skypane_empty_windows_total", "counter", "windows", "windows without rows, which get no answer",
        lambda m: _one(m.empty_windows),
    ),
    Measure(
        "skypane_early_windows_total", "counter", "windows", "open windows answered before their end",
        lambda m: _one(m.early_windows),
    ),
    Measure(
        "skypane_amended_windows_total", "counter", "windows", "windows answered again because of late rows",
        lambda m: _one((m.amended or {}).get("windows", 0)),
    ),
    Measure(
        "skypane_answer_latency_seconds", "histogram", "s",
        "time from the arrival of the last row of a batch to its commit, for each window that it answers",
        lambda m: _one(m.latency), times=lambda m: m.answers,
    ),
    Measure("skypane_open_panes", "gauge", "panes", "panes that are open", lambda m: _one(m.open_panes)),
    Measure("skypane_open_rows", "gauge", "rows", "rows in the partials of the open panes", lambda m: _one(m.open_rows)),
    Measure(
        "skypane_state_bytes", "gauge", "bytes", "the open panes' partials in the checkpoint",
        lambda m: _one(m.open_bytes),
    ),
    Measure(
        "skypane_held_rows", "gauge", "rows", "rows so far ahead of all others that they may be errors",
        lambda m: _one(m.held_rows),
    ),
)  # fmt: skip

EACH: Final[tuple[tuple[Measure[Any], tuple[str, ...]], ...]] = (
    *((measure, (STREAM,)) for measure in OF_STREAMS),
    *((measure, (STREAM, QUERY)) for measure in OF_QUERIES),
)
"""The measures that a batch has, each with the labels that it has before its own."""


def by_query(metrics: BatchMetrics) -> dict[str, QueryMetrics]:
    """Return the metrics of each query by its name; the only query of a stream has none."""
    return metrics.queries or {"": QueryMetrics.of(metrics)}
