"""Puts together what is said of a micro-batch: what came, what was decided and why, how long it took."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from skypane.control.exchange import Exchange
from skypane.control.placement import Placement
from skypane.metrics import BatchMetrics
from skypane.operators.advance import Advance
from skypane.operators.entry.counts import late_of
from skypane.operators.entry.reasons import FUTURE, LATE
from skypane.plan import Plan
from skypane.runtime.spark.engine.plq import PaneLevel
from skypane.runtime.spark.engine.state import State
from skypane.runtime.spark.sinks.answers import Answers
from skypane.windows import Windows


class Timer:
    """Wall time by step; the engine's only clock."""

    def __init__(self) -> None:
        self.started_at = time.time()
        self.seconds: dict[str, float] = {}
        self._began = time.perf_counter()

    @contextmanager
    def __call__(self, step: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.seconds[step] = round(time.perf_counter() - began, 6)

    def stop(self) -> dict[str, float]:
        """Return the steps so far, and the total until now."""
        return {"total": round(time.perf_counter() - self._began, 6), **self.seconds}


@dataclass(frozen=True, slots=True)
class Decisions:
    """What the engine decided for a batch."""

    exchange: Exchange
    splitting: str
    plq_workers: int
    placement: Placement


def batch_metrics(
    plan: Plan, after: State, level: PaneLevel, step: Advance, answers: Answers, decided: Decisions, timer: Timer
) -> BatchMetrics:
    """Return the metrics of the batch that led to the state `after`."""
    rejected = level.rejected
    late = rejected.pop(LATE, 0)
    if step.given_up_rows:
        rejected[FUTURE] += step.given_up_rows
    return BatchMetrics(
        batch_id=after.batch_id,
        rows=level.rows,
        late_rows=late,
        quarantined=dict(rejected),
        late_by_source=late_of(level.sources),
        punctuation=step.state.punctuation,
        newest=step.state.newest,
        slack=step.state.slack,
        seen_rows=step.state.seen,
        dropped_rows=step.state.dropped,
        drop_budget=plan.progress.drop_budget,
        open_panes=len(after.open.panes),
        open_rows=after.rows,
        windows=len(answers.windows),
        window_rows=answers.rows,
        latest_window=_latest(plan.windows, answers),
        exchange=decided.exchange.needed,
        exchange_because=decided.exchange.because,
        splitting=decided.splitting,
        plq_workers=decided.plq_workers if decided.exchange.needed else len(level.tasks),
        wlq_workers=decided.placement.runs,
        wlq_where=decided.placement.where,
        wlq_because=decided.placement.because,
        seconds=timer.stop(),
        busy=tuple(task.busy for task in level.tasks),
        started_at=timer.started_at,
    )


def _latest(windows: Windows, answers: Answers) -> dict[str, int] | None:
    if not answers.windows:
        return None
    window, rows = answers.windows[-1]
    start, end = windows.bounds(window)
    return {"start": start, "end": end, "rows": rows}
