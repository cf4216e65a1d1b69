"""Queries that are watched: which of their batches count, and scrapes while Spark does not answer."""

from __future__ import annotations

import time
from threading import Event
from typing import Any

import pytest
from tests.prometheus.scraped import text_of, value
from tests.prometheus.watched import Ledger, handle_of
from tests.reporting.made import batch

from skypane.metrics import BatchMetrics
from skypane.monitoring.watched_streams import RECENT
from skypane.prometheus import exporter as exporters
from skypane.prometheus.exporter import Exporter
from skypane.runtime.background import in_background

LIMIT = 60.0
LATER = 4e9
"""A start of a batch that is later than any exporter."""


def later(batch_id: int) -> BatchMetrics:
    return batch(batch_id=batch_id, rows=1, started_at=LATER + batch_id)


def counted(exporter: Exporter) -> tuple[float, float]:
    text = text_of(exporter)
    return value(text, "skypane_batches_total", stream="s"), value(text, "skypane_rows_total", stream="s")


def test_all_batches_count_that_were_committed_before_the_query_is_watched():
    exporter, ledger = Exporter(), Ledger(batch(batch_id=0, rows=1))
    for number in range(1, RECENT):
        ledger.commit(later(number))
    exporter.streams.watch(handle_of(ledger), "s")
    ledger.commit(later(RECENT))
    assert counted(exporter) == (RECENT, RECENT), "the first began before the exporter"


def test_a_batch_that_is_committed_while_earlier_ones_are_read_counts_once_and_scrapes_continue():
    class Slow(Ledger):
        """A ledger that is read slowly: Prometheus reads meanwhile, and batches are committed before and after its answer."""

        def history(self, last: int) -> list[dict[str, Any]]:
            in_background(lambda: self.commit(later(1))).result(LIMIT)
            assert in_background(lambda: text_of(exporter)).result(LIMIT)
            found = super().history(last)
            self.commit(later(2))
            return found

    exporter, ledger = Exporter(), Slow(later(0))
    exporter.streams.watch(handle_of(ledger), "s")
    ledger.commit(later(3))
    assert counted(exporter) == (4, 4)


def test_a_query_that_is_watched_again_continues_its_counters_and_has_one_listener():
    exporter, ledger = Exporter(), Ledger()
    for number in range(3):
        exporter.streams.watch(handle_of(ledger), "s")
        ledger.commit(later(number))
    assert counted(exporter) == (3, 3)
    exporter.streams.close()
    assert not ledger.listeners


def test_a_query_whose_batches_cannot_be_read_is_not_watched():
    class Damaged(Ledger):
        def history(self, last: int) -> list[dict[str, Any]]:
            raise OSError(f"no {last} batches")

    exporter, ledger, damaged = Exporter(), Ledger(later(0)), Damaged()
    exporter.streams.watch(handle_of(ledger), "s")
    with pytest.raises(OSError, match="no 50 batches"):
        exporter.streams.watch(handle_of(damaged), "s")
    assert not damaged.listeners
    ledger.commit(later(1))
    assert counted(exporter) == (2, 2), "the query of this name before it still is"


def test_counters_begin_at_0_before_the_first_batch():
    exporter = Exporter()
    exporter.streams.watch(handle_of(Ledger()), "s")
    assert counted(exporter) == (0, 0)
    assert value(text_of(exporter), "skypane_batch_duration_seconds_count", stream="s") == 0


def test_a_query_that_spark_does_not_answer_for_has_one_waiting_call_and_others_are_exposed(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(exporters, "PATIENCE", 0.05)
    asked: list[int] = []
    answers, exporter = Event(), Exporter()

    def hangs() -> bool:
        asked.append(1)
        return answers.wait(LIMIT)

    def fails() -> bool:
        raise RuntimeError("the session has expired")

    for name, runs in {"hangs": hangs, "fails": fails, "runs": lambda: True}.items():
        exporter.streams.watch(handle_of(Ledger(), runs), name)

    def running() -> dict[str, float]:
        text = text_of(exporter)
        return {name: value(text, "skypane_running", stream=name) for name in ("hangs", "fails", "runs")}

    until = time.monotonic() + LIMIT
    while (found := running())["runs"] == 0:  # a thread that has not begun yet has no answer either
        assert time.monotonic() < until
    assert found == {"hangs": 0, "fails": 0, "runs": 1}
    assert running()["hangs"] == 0
    assert len(asked) == 1
    answers.set()
