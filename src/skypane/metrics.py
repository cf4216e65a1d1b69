"""What the engine says of each micro-batch: measurements and decisions, as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any, Self

from skypane import notebook
from skypane.control.law import Decision
from skypane.types import Micros
from skypane.wording import count, counted


@dataclass(frozen=True, slots=True)
class InputSeen:
    """One of many inputs, as planning saw it.

    reader    which task of a batch had it, when inputs were last shared out; None before that
    rate      rows per second that come; None until it was seen for a second
    forecast  what is forecast for the next second
    lag       rows that are there and in no batch yet
    offset    up to where it is read, in its own units
    state     "read": all there is; "silent": nothing new; "behind": there is more; "gone": not there now
    """

    input: str
    reader: int | None
    rate: float | None
    forecast: float | None
    lag: int
    offset: int
    state: str

    def to_json(self) -> list[Any]:
        return [getattr(self, item.name) for item in fields(self)]

    @classmethod
    def from_json(cls, value: list[Any]) -> Self:
        return cls(*value)


@dataclass(frozen=True, slots=True, repr=False)
class BatchMetrics:
    """One micro-batch; event times in microseconds, durations in seconds, counts of rows unless said otherwise."""

    batch_id: int
    rows: int
    late_rows: int
    #: rows rejected for another reason than being late, by that reason
    quarantined: dict[str, int]
    #: late rows by source, where the job names a source column
    late_by_source: dict[str, int]
    #: nothing older than this is awaited; None until the policy dares to say
    punctuation: Micros | None
    #: the newest event time seen (the paper's tmax)
    newest: Micros | None
    #: how far the punctuation is kept behind it (the paper's K)
    slack: Micros | None
    #: rows seen and dropped as late since the query's first start
    seen_rows: int
    dropped_rows: int
    #: the share of rows that the policy may drop, where it has a budget
    drop_budget: float | None
    open_panes: int
    #: survivors held for the open panes
    open_rows: int
    #: windows answered, their rows, and the last one: {"start", "end", "rows"}
    windows: int
    window_rows: int
    latest_window: dict[str, int] | None
    #: whether rows were exchanged between tasks
    exchange: bool
    splitting: str
    plq_workers: int
    wlq_workers: int
    #: where the window-level query ran, "driver", "threads" of it, or "spark"
    wlq_where: str
    #: wall time by step: total, plq, progress, wlq, sink, commit (up to the writing of the manifest, which holds them)
    seconds: dict[str, float] = field(default_factory=dict)
    #: seconds that each task of the pane-level query was busy lifting
    busy: tuple[float, ...] = ()
    #: rows that each of these tasks read
    task_rows: tuple[int, ...] = ()
    #: windows without a row that the punctuation passed after the first answer: they are not answered
    empty_windows: int = 0
    #: when the batch began, seconds since the epoch
    started_at: float = 0.0
    #: splitting factor: partitions per pane of the batch; None if it had no panes
    sigma: float | None = None
    #: utilisation factor of the pane-level query; None for the first batch after a start, or if nothing was lifted
    rho: float | None = None
    #: seconds that each run of windows took, in the driver (one run) or on the workers
    wlq_busy: tuple[float, ...] = ()
    #: what was decided, why, and by which figures: "progress", "exchange", "splitting", "placement"; "workers" where the
    #: elastic law has decided before this batch. Values are JSON values.
    decisions: tuple[Decision[Any], ...] = ()
    #: rows too far ahead of the rest to be believed yet
    held_rows: int = 0
    #: utilisation factor of the window-level query, as `rho` of the pane-level one
    rho_wlq: float | None = None
    #: workers that both levels may use, {"plq", "wlq"}; plq_workers and wlq_workers are those that had something to do
    workers: dict[str, int] = field(default_factory=dict)
    #: the size of the state: bytes of the open panes' partials in the checkpoint
    open_bytes: int = 0
    #: of a continuous skyline: updates told, "adds" and "dels", and "rows" on the front, "stored" in all; else None
    front: dict[str, int] | None = None
    #: where all rows are that were read since the first start: read = answered + late + quarantined + held + open, where a
    #: row counts as answered once a window that holds it is; operators/row_account.py checks it
    totals: dict[str, int] = field(default_factory=dict)
    #: of a query of many inputs, what was seen of each when a batch before this one was planned, some seconds ago at most
    inputs: tuple[InputSeen, ...] = ()

    @property
    def drop_ratio(self) -> float:
        """Share of all rows seen that were dropped as late."""
        return self.dropped_rows / self.seen_rows if self.seen_rows else 0.0

    @property
    def wlq_idle(self) -> float | None:
        """Share of the window workers' time, while windows were answered, in which they had nothing to do; None if none were."""
        available = max(self.workers.get("wlq", 0), len(self.wlq_busy)) * self.seconds.get("wlq", 0.0)
        return max(0.0, 1 - sum(self.wlq_busy) / available) if self.wlq_busy and available else None

    def decision(self, what: str) -> Decision[Any] | None:
        """Return what was decided on `what`, None if nothing was."""
        return next((decision for decision in self.decisions if decision.what == what), None)

    @property
    def rows_per_second(self) -> float:
        total = self.seconds.get("total", 0.0)
        return self.rows / total if total else 0.0

    def __str__(self) -> str:
        """The batch in one line."""
        said = ", ".join(counted(number, things) for things, number in self._counts() if number)
        return f"batch {self.batch_id} ({self.seconds.get('total', 0.0):.2f} s): {said or 'no rows'}"

    def __repr__(self) -> str:
        """The same in brackets: a list of batches is read in a notebook's cell; to_json() has all there is."""
        return f"<{self}>"

    def _repr_html_(self) -> str:
        waiting = "nothing yet" if self.slack is None else f"{timedelta(microseconds=self.slack)} behind the newest row"
        return notebook.table(f"micro-batch {self.batch_id}", [
            *((things, count(number)) for things, number in self._counts()), ("seconds", f"{self.seconds.get('total', 0.0):.2f}"), ("late rows are awaited", waiting)
        ])  # fmt: skip

    @property
    def _updates(self) -> int:
        return 0 if self.front is None else self.front["adds"] + self.front["dels"]

    def _counts(self) -> list[tuple[str, int]]:
        return [
            ("rows", self.rows),
            ("late rows", self.late_rows),
            ("rows put aside", sum(self.quarantined.values())),
            ("windows answered", self.windows),
            ("rows in their answers", self.window_rows if self.front is None else 0),
            ("updates of the front", self._updates),
            ("rows on it", (self.front or {}).get("rows", 0)),
            ("panes still open", self.open_panes),
        ]

    def to_json(self) -> dict[str, Any]:
        """Return a JSON value; drop_ratio and wlq_idle are written out too."""
        told = {field.name: getattr(self, field.name) for field in fields(self)}
        decisions = [decision.to_json() for decision in self.decisions]
        inputs = [one.to_json() for one in self.inputs]
        return told | {
            "inputs": inputs,
            "decisions": decisions,
            "drop_ratio": self.drop_ratio,
            "wlq_idle": self.wlq_idle,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        known = {key: item for key, item in value.items() if key in cls.__dataclass_fields__}
        tuples = {name: tuple(known.get(name, ())) for name in ("busy", "task_rows", "wlq_busy")}
        tuples["inputs"] = tuple(InputSeen.from_json(one) for one in known.get("inputs", ()))
        return cls(**known | tuples | {"decisions": tuple(Decision(**said) for said in known.get("decisions", ()))})
