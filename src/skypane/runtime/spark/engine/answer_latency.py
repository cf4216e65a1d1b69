"""The latency of answers, measured: from the arrival of the last row of a batch to its commit.

    rows come  ---a----------b-----c--|-- the batch: plan, run, deliver --|-- commit
                                   |-------------- latency ---------------|

The punctuation of a batch completes all windows that it answers, so they have one latency. When the last row came is what
its sources have recorded (spark_files.py); where that is not known, the row came with the batch: no latency is too long.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from skypane.addresses import without_secrets
from skypane.control.elasticity.elastic import Elastic
from skypane.control.latency import Latencies
from skypane.control.latency_promise import AnsweredBatch, LatencyPromise
from skypane.metrics import BatchMetrics, QueryMetrics
from skypane.policy import Decision
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import spark_files
from skypane.runtime.spark.engine.batch_metrics import plain
from skypane.snapshots import from_json

log = logging.getLogger(__name__)


class AnswerLatency:
    """Adds the latencies of a query's answers up, and judges them by the bound that the job promises."""

    def __init__(self, checkpoint: str, elastic: Elastic | None, before: Mapping[str, Any]) -> None:
        """Continue from the metrics of the last batch as a JSON value, {} without one; `elastic` may have a bound."""
        self._checkpoint = checkpoint
        #: the bounds of the policies of workers and of readers, in seconds
        self._bounds: tuple[float | None, float | None] = (None if elastic is None else elastic.policy.promised, None)
        self._all = _saved(before)
        self._each = {name: _saved(one) for name, one in before.get("queries", {}).items()}
        self._promise = LatencyPromise()
        self._state = self._promise.init()
        self._missed = False

    def measured(self, metrics: BatchMetrics, sparks_batch: int | None) -> BatchMetrics:
        """Return the metrics of a batch that is about to be committed, with the latency of its answers.

        sparks_batch   its number in Spark; None for a drain or a readmission, whose answers wait for no row
        """
        answers = sum(one.answers for one in metrics.queries.values()) if metrics.queries else metrics.answers
        latency = None if sparks_batch is None or not answers else self._latency(metrics, sparks_batch)
        each = {name: self._of_query(name, one, latency) for name, one in metrics.queries.items()}
        self._all = _with(self._all, latency, answers)
        self._each = {name: one.latencies for name, one in each.items()}
        if latency is not None:
            batch = AnsweredBatch(metrics.started_at, answers, latency)
            self._state = self._promise.observe(self._state, batch)
        return replace(
            metrics,
            answers=answers,
            latency=latency,
            latencies=self._all,
            queries=each,
            decisions=(*metrics.decisions, *plain(self._judged())),
        )

    def committed(self, metrics: BatchMetrics) -> None:
        """Say it once when a bound is missed, and when it is kept again."""
        judged = metrics.decision("latency")
        if judged is None or self._missed == (judged.value == "missed"):
            return
        self._missed = not self._missed
        (log.warning if self._missed else log.info)(
            "%s; checkpoint %s", judged.because, without_secrets(self._checkpoint)
        )

    def _latency(self, metrics: BatchMetrics, sparks_batch: int) -> float:
        """Return the seconds from the arrival of the last row of a batch until now; without a row, from its beginning."""
        found = spark_files.arrival(DocumentStore.at(self._checkpoint), sparks_batch)
        if found is None:  # without Spark's record the engine's own clock is the best there is
            return metrics.seconds["total"]
        self._bounds = self._bounds[0], found.promised
        since = found.last_row if metrics.rows else found.began
        return max(0.0, metrics.started_at + metrics.seconds["total"] - since / 1e6)

    def _of_query(self, name: str, metrics: QueryMetrics, latency: float | None) -> QueryMetrics:
        latencies = _with(self._each.get(name, Latencies()), latency, metrics.answers)
        return replace(metrics, latency=latency if metrics.answers else None, latencies=latencies)

    def _judged(self) -> Decision[str] | None:
        """Return whether the bound is kept, the shorter one of both policies; None if neither has one."""
        bounds = [bound for bound in self._bounds if bound is not None]
        return self._promise.decide(self._state, min(bounds))[1] if bounds else None


def _saved(metrics: Mapping[str, Any]) -> Latencies:
    """Return the latencies in the metrics of a batch; metrics of earlier versions have none."""
    return from_json(Latencies, metrics["latencies"]) if "latencies" in metrics else Latencies()


def _with(before: Latencies, latency: float | None, answers: int) -> Latencies:
    return before if latency is None else before.merge(Latencies.of(latency, answers))
