"""Status of a running query: a pure fold over its batches, and its description in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from skypane.cause import Cause
from skypane.diagnosis.diagnose import stopped
from skypane.metrics import BatchMetrics, InputMetrics
from skypane.wording import by_name, clock, count, counted, percent, span, stamp

#: the name of a fact that is a cause of losses or delays
CAUSE = "cause"
#: number of latest batches over which the rate is measured
RECENT = 8


@dataclass(frozen=True)
class QueryView:
    """The state of a display: a pure fold over the batches of one run."""

    title: str
    #: rows of the whole stream, if known
    total_rows: int | None = None
    recent: tuple[BatchMetrics, ...] = ()
    #: rows read before this run, if it resumes from a checkpoint
    read_before: int = 0
    rows: int = 0
    windows: int = 0
    front: pa.Table | None = None
    resumed: bool = False

    def after(self, metrics: BatchMetrics, front: pa.Table | None = None) -> QueryView:
        return replace(
            self,
            recent=(*self.recent, metrics)[-RECENT:],
            rows=self.rows + metrics.rows,
            windows=self.windows + metrics.windows,
            front=self.front if front is None else front,
        )

    @property
    def latest(self) -> BatchMetrics | None:
        return self.recent[-1] if self.recent else None

    @property
    def read(self) -> int:
        """Rows read since the first start."""
        rows = self.read_before + self.rows
        return rows if self.latest is None else self.latest.totals.get("read", rows)

    @property
    def share(self) -> float | None:
        """Share of the stream that has been read, 0 to 1; None for an unbounded stream."""
        return self.read / self.total_rows if self.total_rows else None

    @property
    def rate(self) -> float:
        """Rows per second of wall clock over the recent batches, including waiting."""
        if not self.recent:
            return 0.0
        last = self.recent[-1]
        seconds = last.started_at + last.seconds.get("total", 0.0) - self.recent[0].started_at
        return sum(metrics.rows for metrics in self.recent) / seconds if seconds > 0 else 0.0

    def eta(self) -> float | None:
        """Return the seconds to the end at the recent rate; None if the end or the rate is unknown."""
        if self.total_rows is None or self.rate <= 0:
            return None
        return max(0.0, (self.total_rows - self.read) / self.rate)


def rows_so_far(batches: Sequence[BatchMetrics]) -> int:
    """Return the rows read from the first start to the last of these batches; one that was readmitted counts once."""
    rows = sum(metrics.rows for metrics in batches)
    return batches[-1].totals.get("read", rows) if batches else rows


def facts(view: QueryView, now: float | None = None) -> list[tuple[str, str]]:
    """Return (name, value) pairs that describe the status of the run after its latest batch.

    Numbers of rows that differ from query to query are by query. At the time `now`, in seconds since the epoch, it may have
    been long since then.
    """
    m = view.latest
    if m is None:
        return [("state", "waiting for the first batch")]
    budget = f" of {percent(m.drop_budget)} allowed" if m.drop_budget is not None else ""
    return [
        ("rate", f"{count(round(view.rate))} rows/s   ({count(view.read)} read, batch {m.batch_id})"),
        *((f"rows of {name}" if name else "rows", text) for name, text in m.account.items() if text),
        ("late rows", by_name(m.of_each(lambda one: f"{percent(one.drop_ratio)}{budget}   ({_dropped(one)})"))),
        ("slack", f"{span(m.slack)}; complete up to {stamp(m.punctuation)} (punctuation)"),
        ("open", counted(m.open_panes, "panes")),
        ("answered", counted(view.windows, "windows")),
        *([("inputs", inputs(m.inputs))] if m.inputs else []),
        *((CAUSE, cause.line) for cause in (*m.causes, *_stopped(view, now))),
    ]


def _stopped(view: QueryView, now: float | None) -> list[Cause]:
    cause = None if now is None else stopped(view.recent, now)
    return [] if cause is None else [cause]


def _dropped(metrics: BatchMetrics) -> str:
    return f"{count(metrics.late_so_far)} dropped"


def inputs(seen: Sequence[InputMetrics]) -> str:
    """Return the number of inputs, and those that are behind or gone."""
    behind, gone = ([one for one in seen if one.state == state] for state in ("behind", "gone"))
    last = max(behind, key=lambda one: one.lag, default=None)
    parts = [f"{count(len(seen))}, {count(sum(one.state == 'read' for one in seen))} read to their end"]
    if last is not None:
        rows = count(sum(one.lag for one in behind))
        parts.append(f"{count(len(behind))} behind by {rows} rows, most of them {last.input} ({count(last.lag)})")
    parts += [f"{count(len(gone))} gone"] if gone else []
    return "; ".join(parts)


def line(view: QueryView, elapsed: float) -> str:
    """Return one line of plain text for a log."""
    parts = [f"{name} {' '.join(text.split())}" for name, text in facts(view)]
    share = f"{percent(view.share)} " if view.share is not None else ""
    return f"[{clock(elapsed)}] {share}" + "; ".join(parts)
