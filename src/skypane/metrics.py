"""Metrics of each micro-batch: measurements and decisions, as one frozen value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Self, TypeVar

from skypane import notebook
from skypane.cause import Cause
from skypane.control.forecast import RateAhead
from skypane.control.latency import Latencies
from skypane.policy import Decision
from skypane.snapshots import ADDED, fields_from_json, fields_to_json
from skypane.types import Micros
from skypane.wording import count, counted

T = TypeVar("T")

INPUT = "input"
"""The column in which a source of many inputs names the input of a row, unless the job names another."""
WAITING = "waiting"
"""The key of a source's offset under which it records since when rows wait: column of event time -> microseconds."""

SEEN = "seen"
"""The key of a source's offset under which it records when it saw the last row before there: microseconds since the epoch."""

PROMISED = "promised"
"""The key of a source's offset under which it records the bound on latency that it is to keep, in seconds."""


@dataclass(frozen=True, slots=True)
class InputMetrics:
    """Metrics of one of many inputs when a batch was planned.

    reader    reader task of the input in the last assignment; None before the first assignment
    rate      arriving rows per second; None until the input has been observed for a second
    forecast  rate forecast for the next second
    lag       available rows that are in no batch yet
    offset    how far the input is read, in its own units
    waiting   seconds of event time from the next row to the last available one; None: unknown, or the lag is 0
    expected  rate by its meta-data within the lead time, if that is higher than the forecast; None: its meta-data state none
    state     "read": all rows are read; "silent": no new rows; "behind": more rows are available; "gone": input missing
    lost      the rows that it lost last before they were read, in words; None: none since the query was started
    unended   length of a last line that has no line end yet, in the units of the offset; it waits for the line end. With
              the bytes of the file that are of a member that has not ended, if it is compressed
    """

    input: str
    reader: int | None
    rate: float | None
    forecast: float | None
    lag: int
    offset: int
    state: str
    waiting: float | None = None
    expected: float | None = None
    lost: str | None = None
    unended: int = 0

    def snapshot(self) -> list[Any]:
        """Return the values without their names, for each line of Spark's offset log."""
        return list(fields_to_json(self).values())

    @classmethod
    def restored(cls, value: list[Any]) -> Self:
        """Return the metrics that snapshot() wrote."""
        return cls(*value)


@dataclass(frozen=True, slots=True)
class InputReport:
    """The report of a source of many inputs when a batch was planned; empty for other sources.

    decisions   "rate", if inputs state a rate beforehand; "readers", if a bound on latency sets their number; "assignment",
                of inputs to readers
    """

    inputs: tuple[InputMetrics, ...] = ()
    decisions: tuple[Decision[Any], ...] = ()

    @property
    def backlog(self) -> int:
        """Backlog of all inputs in rows."""
        return sum(one.lag for one in self.inputs)

    @property
    def ahead(self) -> RateAhead | None:
        """The rate that inputs state for a time to come, if they state one."""
        found = next((decision for decision in self.decisions if decision.what == "rate"), None)
        return None if found is None else RateAhead(float(found.value), found.because)

    @property
    def sized(self) -> bool:
        """Whether a bound on latency sets the number of readers."""
        return any(decision.what == "readers" for decision in self.decisions)


@dataclass(frozen=True, slots=True)
class QueryMetrics:
    """Metrics of one of several queries in a micro-batch; each field is as that of BatchMetrics, for this query alone."""

    late_rows: int
    quarantined: dict[str, int]
    late_by_source: dict[str, int]
    punctuation: Micros | None
    newest: Micros | None
    slack: Micros | None
    seen_rows: int
    dropped_rows: int
    open_panes: int
    open_rows: int
    open_bytes: int
    windows: int
    window_rows: int
    empty_windows: int
    latest_window: dict[str, int] | None
    held_rows: int
    wlq_where: str
    totals: dict[str, int]
    #: the decisions on the punctuation, on where the windows were answered, and on how they were divided
    decisions: tuple[Decision[Any], ...]
    amended: dict[str, int] | None = field(default=None, metadata=ADDED)
    early_windows: int = field(default=0, metadata=ADDED)
    unavoidable_rows: int | None = field(default=None, metadata=ADDED)
    answers: int = field(default=0, metadata=ADDED)
    latency: float | None = field(default=None, metadata=ADDED)
    latencies: Latencies = field(default_factory=Latencies, metadata=ADDED)
    rows_by_source: dict[str, int] = field(default_factory=dict, metadata=ADDED)
    delays: dict[str, Micros] = field(default_factory=dict, metadata=ADDED)
    clocks: dict[str, Micros] = field(default_factory=dict, metadata=ADDED)
    held_ahead: Micros | None = field(default=None, metadata=ADDED)

    @classmethod
    def of(cls, metrics: BatchMetrics) -> Self:
        """Return the metrics of a query from those of a batch in which it was the only one."""
        values = {name: getattr(metrics, name) for name in cls.__slots__}
        own = tuple(decision for decision in metrics.decisions if decision.what in {"progress", "placement", "windows"})
        return cls(**values | {"decisions": own})


@dataclass(frozen=True, slots=True, repr=False)
class BatchMetrics:
    """Metrics of one micro-batch: event times in microseconds, durations in seconds, counts in rows unless noted.

    >>> job = sp.stream(arriving, "price MIN", time="ts", window="1 hour", checkpoint="state", output="best")
    >>> handle = job.start(availableNow=True)
    >>> handle.await_termination()
    True
    >>> metrics = handle.recent_metrics()[-1]
    >>> metrics.rows, metrics.late_rows, metrics.windows
    (6, 0, 1)
    """

    batch_id: int
    rows: int
    late_rows: int
    #: quarantined rows by reason
    quarantined: dict[str, int]
    #: late rows by source, if the job names a source column
    late_by_source: dict[str, int]
    #: the time before which the stream is complete (the paper's tp); None until the policy gives one
    punctuation: Micros | None
    #: the newest event time seen (the paper's tmax)
    newest: Micros | None
    #: how far the punctuation lies behind `newest` (the paper's K)
    slack: Micros | None
    #: rows seen and dropped as late since the query's first start
    seen_rows: int
    dropped_rows: int
    #: share of rows that the policy may drop; None if it has no budget
    drop_budget: float | None
    open_panes: int
    #: rows in the partials of the open panes
    open_rows: int
    #: windows answered, their rows, and the last one: {"start", "end", "rows"}
    windows: int
    window_rows: int
    latest_window: dict[str, int] | None
    #: whether rows were exchanged between tasks
    exchange: bool
    #: the splitting policy; "as read" if the stream chooses it, and rows were not exchanged
    splitting: str
    plq_workers: int
    wlq_workers: int
    #: where the window-level query ran: "driver", "threads" (of the driver) or "spark"
    wlq_where: str
    #: wall time by step: total, plq, progress, wlq, sink, commit (up to the manifest, which holds these times)
    seconds: dict[str, float] = field(default_factory=dict)
    #: busy seconds of each task of the pane-level query
    busy: tuple[float, ...] = ()
    #: rows that each task of the pane-level query read
    task_rows: tuple[int, ...] = ()
    #: windows without rows that the punctuation passed after the first answer; they get no answer
    empty_windows: int = 0
    #: start of the batch, seconds since the epoch
    started_at: float = 0.0
    #: splitting factor: partitions per pane of the batch; None if it had no panes
    sigma: float | None = None
    #: utilisation factor of the pane-level query; None in the first batch of a driver, or if nothing was lifted
    rho: float | None = None
    #: busy seconds of each run of windows, in the driver (one run) or on the workers
    wlq_busy: tuple[float, ...] = ()
    #: decisions with reasons and figures: "progress", "costs" (by which the next ones were made), "exchange",
    #: "splitting", "lift", "placement", "workers" if the elasticity policy decided before this batch, "executors" if
    #: they follow the workers, "pace" with the trigger "auto", and "latency" ("kept" or "missed") with a bound; JSON values
    decisions: tuple[Decision[Any], ...] = ()
    #: held rows: so far ahead of all others that they may be errors
    held_rows: int = 0
    #: utilisation factor of the window-level query; None as for `rho`
    rho_wlq: float | None = None
    #: workers that each level may use, {"plq", "wlq"}; plq_workers and wlq_workers count those that had work
    workers: dict[str, int] = field(default_factory=dict)
    #: the size of the state: bytes of the open panes' partials in the checkpoint
    open_bytes: int = 0
    #: of a continuous skyline: updates emitted ("adds", "dels"), "rows" on the front, rows "stored" in all; else None
    front: dict[str, int] | None = None
    #: of a query that amends answers: late "rows" that entered answered windows, "windows" answered again, "panes" and
    #: "bytes" kept for that, and panes "discarded" because they took too many bytes; and since the query has amended, of
    #: "all_answered" windows those that were amended, "all_amended"; else None
    amended: dict[str, int] | None = None
    #: open windows answered before their end, if the query answers early; `windows` and `window_rows` are without them
    early_windows: int = 0
    #: account of all rows read since the first start: read = answered + late + quarantined + held + open; a row counts
    #: as answered once a window that holds it is answered (operators/row_account.py checks the sum)
    totals: dict[str, int] = field(default_factory=dict)
    #: of a query with many inputs: metrics of each, taken when an earlier batch was planned, a few seconds ago at most
    inputs: tuple[InputMetrics, ...] = ()
    #: of dropped_rows those that no delay could have saved, which were later than any row before them, or whose input was
    #: behind; None if the policy does not count them
    unavoidable_rows: int | None = None
    #: of a job of several queries: the metrics of each, by name. Each of them has every row, so the numbers of rows by where
    #: they are, above and in `totals`, are then those of one query: of those that have read the most, the one with the
    #: shortest panes. Panes and windows, with their rows, are sums, `rows` and `seconds` those of the batch, and
    #: `punctuation` is the earliest
    queries: dict[str, QueryMetrics] = field(default_factory=dict)
    #: share of answered windows that late rows may amend; None if the policy has no such budget
    amend_budget: float | None = None
    #: executors that were there when the batch began, if they follow the workers (executors="follow"); else None
    executors: int | None = None
    #: seconds for which the query pauses after the batch, unless it is stopped; 0 with a trigger other than "auto"
    pause: float = 0.0
    #: windows answered for the first time; of a continuous skyline, panes whose rows have reached its front
    answers: int = 0
    #: seconds from the arrival of the last row of the batch to its commit, which each of these answers took; None without
    #: one, and in a drain or a readmission, whose answers wait for no row
    latency: float | None = None
    #: latencies of all answers since the first start, with their p50, p95 and p99
    latencies: Latencies = field(default_factory=Latencies)
    #: rows with a valid time by source, if the job names a source column and the batch has at most 50 sources; else empty
    rows_by_source: dict[str, int] = field(default_factory=dict)
    #: how far the late rows are behind `newest`: "least", "median" and "most"; empty without late rows
    delays: dict[str, Micros] = field(default_factory=dict)
    #: sources whose clocks are off, and how far they are ahead of the stream; negative: behind; those that are farthest off
    clocks: dict[str, Micros] = field(default_factory=dict)
    #: how far the nearest held rows are beyond `newest`; None: no row is held
    held_ahead: Micros | None = None
    #: the largest delay that the policy takes in; None if it has no such bound
    max_slack: Micros | None = None
    #: seconds that the trigger leaves from one batch to the next; 0 without such a trigger
    trigger: float = 0.0
    #: bytes that are free on the disk of the checkpoint, and its size; None if it is not a disk of this machine
    disk: tuple[int, int] | None = None
    #: what is lost or delayed after the batch, and why, in order of weight (docs/diagnosis.md)
    causes: tuple[Cause, ...] = ()

    def of(self, query: str) -> Self:
        """Return the metrics of a batch of several queries in which `query` was the only one; KeyError without it."""
        one = self.queries[query]
        values = {name: getattr(one, name) for name in QueryMetrics.__slots__}
        return replace(self, **values | {"queries": {}})

    def of_each(self, value: Callable[[Self], T]) -> dict[str, T]:
        """Return a value of each query by its name; under "" alone if it is the same for all, or of the only query."""
        values = {name: value(self.of(name)) for name in self.queries} or {"": value(self)}
        first, *others = values.values()
        return values if any(other != first for other in others) else {"": first}

    @property
    def account(self) -> dict[str, str]:
        """Where the rows read since the first start are, in words, as of_each(); "" if an earlier version wrote this."""
        return self.of_each(lambda one: _in_words(one.totals))

    @property
    def late_so_far(self) -> int:
        """Number of rows that were rejected as late since the first start, without those that were readmitted."""
        return self.totals.get("late", self.dropped_rows)

    @property
    def over_budget(self) -> bool:
        """Whether a query has dropped a larger share of its rows than the policy may."""
        budget = self.drop_budget
        return budget is not None and any(share > budget for share in self.of_each(lambda one: one.drop_ratio).values())

    @property
    def drop_ratio(self) -> float:
        """Share of all rows seen that were dropped as late."""
        return self.dropped_rows / self.seen_rows if self.seen_rows else 0.0

    @property
    def amended_share(self) -> float | None:
        """Share of all answered windows that late rows have amended; None if the query answers each window once."""
        if self.amended is None:
            return None
        # Metrics of earlier versions lack both counts.
        return self.amended.get("all_amended", 0) / max(1, self.amended.get("all_answered", 0))

    @property
    def wlq_idle(self) -> float | None:
        """Idle share of the window workers' time while windows were answered; None if no window was answered."""
        available = max(self.workers.get("wlq", 0), len(self.wlq_busy)) * self.seconds.get("wlq", 0.0)
        return max(0.0, 1 - sum(self.wlq_busy) / available) if self.wlq_busy and available else None

    def decision(self, what: str) -> Decision[Any] | None:
        """Return the decision on `what`, or None if there is none."""
        return next((decision for decision in self.decisions if decision.what == what), None)

    @property
    def rows_per_second(self) -> float:
        total = self.seconds.get("total", 0.0)
        return self.rows / total if total else 0.0

    def __str__(self) -> str:
        """Return the batch in one line."""
        counts = ", ".join(counted(number, things) for things, number in self._counts() if number)
        return f"batch {self.batch_id} ({self.seconds.get('total', 0.0):.2f} s): {counts or 'no rows'}"

    def __repr__(self) -> str:
        """Return the line in angle brackets, for lists of batches in notebooks; to_json() returns all fields."""
        return f"<{self}>"

    def _repr_html_(self) -> str:
        slack = "not known yet" if self.slack is None else f"{timedelta(microseconds=self.slack)} behind the newest row"
        return notebook.table(f"micro-batch {self.batch_id}", [
            *((things, count(number)) for things, number in self._counts()),
            ("seconds", f"{self.seconds.get('total', 0.0):.2f}"), ("slack", slack),
        ])  # fmt: skip

    @property
    def _updates(self) -> int:
        return 0 if self.front is None else self.front["adds"] + self.front["dels"]

    def _counts(self) -> list[tuple[str, int]]:
        return [
            ("rows", self.rows),
            *_by_name("late rows", self.of_each(lambda one: one.late_rows)),
            *_by_name("rows quarantined", self.of_each(lambda one: sum(one.quarantined.values()))),
            ("windows answered", self.windows),
            ("windows answered early", self.early_windows),
            ("windows amended", (self.amended or {}).get("windows", 0)),
            ("result rows", self.window_rows if self.front is None else 0),
            ("updates of the front", self._updates),
            ("rows on the front", (self.front or {}).get("rows", 0)),
            ("panes still open", self.open_panes),
        ]

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value of all fields, with drop_ratio, amended_share and wlq_idle."""
        ratios = {"drop_ratio": self.drop_ratio, "amended_share": self.amended_share, "wlq_idle": self.wlq_idle}
        return fields_to_json(self) | ratios

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """Return the metrics that to_json() wrote, also in an earlier version: missing fields have their defaults."""
        return fields_from_json(cls, value, lenient=True)


def drop_ratios(batches: Sequence[BatchMetrics]) -> dict[str, list[float]]:
    """Return the share of rows dropped up to each batch: by query if it differs in the last one, as of_each()."""
    names = batches[-1].of_each(lambda one: one.drop_ratio)
    return {
        name: [metrics.of(name).drop_ratio if name in metrics.queries else metrics.drop_ratio for metrics in batches]
        for name in names
    }


def _by_name(things: str, numbers: dict[str, int]) -> list[tuple[str, int]]:
    return [(f"{things} of {name}" if name else things, number) for name, number in numbers.items()]


def _in_words(totals: dict[str, int]) -> str:
    if not totals:
        return ""
    return f"{count(totals['read'])} read: {', '.join(f'{count(n)} {where}' for where, n in totals.items() if where != 'read')}"
