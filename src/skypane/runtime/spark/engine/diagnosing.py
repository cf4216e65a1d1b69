"""The causes of losses after each batch: added to its metrics before the commit, and logged after it when they begin or end."""

from __future__ import annotations

import logging
import math
import shutil
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame

from skypane.cause import Cause
from skypane.diagnosis.diagnose import HISTORY, diagnose, family_of
from skypane.diagnosis.evidence import HELD
from skypane.locations import Location
from skypane.metrics import BatchMetrics
from skypane.operators.entry.entry_rules import EntryRules
from skypane.operators.entry.reject_reasons import FUTURE
from skypane.runtime.spark.engine.arrow_transfer import ArrowTransfer
from skypane.runtime.spark.engine.example_rows import ExampleStage, examples
from skypane.runtime.spark.engine.front_program import ContinuousState
from skypane.runtime.spark.engine.job_settings import JobSettings
from skypane.runtime.spark.engine.shared_program import SharedState
from skypane.runtime.spark.engine.window_state import WindowState
from skypane.shared_plan import SharedPlan

log = logging.getLogger(__name__)


class Diagnosing:
    """The last batches of a query, by which its causes are decided."""

    def __init__(self, settings: JobSettings, latest: Mapping[str, Any] | None, pace: float) -> None:
        """Continue after the batch with the metrics `latest`; `pace` are the seconds that the trigger leaves."""
        self._settings = settings
        self._batches = deque([] if latest is None else [BatchMetrics.from_json(dict(latest))], HISTORY)
        self._trigger = pace if math.isfinite(pace) else 0.0
        place = Location.of(settings.checkpoint, "checkpoint")
        self._folder = place.path if place.is_local else None

    def diagnosed(self, metrics: BatchMetrics, rows: DataFrame, state: Any) -> BatchMetrics:
        """Return the metrics of a batch with its causes; `rows` were read after `state`."""
        metrics = replace(metrics, trigger=self._trigger, disk=self._disk())
        causes = diagnose([*self._batches, metrics])
        shown = tuple(
            one if one.examples else replace(one, examples=self._examples(one, metrics, rows, state)) for one in causes
        )
        return replace(metrics, causes=shown)

    def committed(self, metrics: BatchMetrics) -> None:
        """Log the causes that begin with a batch, and those that end."""
        before = {cause.key: cause for cause in self._batches[-1].causes} if self._batches else {}
        now = {cause.key: cause for cause in metrics.causes}
        self._batches.append(metrics)
        for key in now.keys() - before.keys():
            log.warning("%s", now[key].line)
        families = {family_of(cause) for cause in metrics.causes}
        for cause in before.values():
            if family_of(cause) not in families:
                log.info("no more: %s", replace(cause, examples=()).line)

    def _disk(self) -> tuple[int, int] | None:
        if self._folder is None:
            return None
        try:
            usage = shutil.disk_usage(self._folder)
        except OSError:
            return None
        return usage.free, usage.total

    def _examples(self, cause: Cause, metrics: BatchMetrics, rows: DataFrame, state: Any) -> tuple[str, ...]:
        """Return rows of a cause, if the batch has any."""
        own = metrics.of(cause.query) if cause.query else metrics
        came = {"late": own.late_rows, HELD: own.held_rows} | own.quarantined
        gate = next(_gates(self._settings, state, cause.query), None)
        if gate is None or not metrics.rows or not came.get(cause.reason):
            return ()
        reason = cause.reason
        if reason == HELD:
            gate, reason = replace(gate, limit=(own.newest or 0) + (own.held_ahead or 1) - 1), FUTURE
        try:
            return examples(rows, ExampleStage(replace(gate, keep=True), reason), ArrowTransfer(self._settings.schema))
        except Exception as error:  # noqa: BLE001 - the batch is done, and must not fail for its explanation
            log.debug("no example rows: %s", error)
            return ()


def _gates(settings: JobSettings, state: Any, query: str) -> Iterator[EntryRules]:
    """Yield the rules by which rows have entered a query after `state`."""
    plan = settings.plan
    if isinstance(plan, SharedPlan):
        name = query or plan.lead
        if isinstance(state, SharedState) and name in state.queries:
            yield state.queries[name].gate(plan.plans[name])
    elif isinstance(state, ContinuousState):
        yield state.waiting.gate(plan)
    elif isinstance(state, WindowState):
        yield state.gate(plan)
