"""Where the rows of a batch are lifted: cases by hand."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import pytest

from skypane.control.lift_placement import (
    BY_WORKERS,
    ENOUGH,
    FEWEST,
    FORGOTTEN,
    RECENT,
    ROWS,
    LiftPlacement,
    LiftState,
    UpcomingRows,
)
from skypane.control.measurements import BatchMeasurements, TaskWork
from skypane.policy import Decision

POLICY = LiftPlacement()
SOON = UpcomingRows(1.0)


def batch(seconds: float = 0.3, rows: int = 1_000, **changed: object) -> BatchMeasurements:
    measured = BatchMeasurements((TaskWork(rows, 0.01, ()),), 0.0, 1.0, exchanged=False, lift_seconds=seconds)
    return replace(measured, **changed)  # type: ignore[arg-type]


HERE = batch(0.2, lifted="driver")
KNOWN = [*[batch()] * FEWEST, *[HERE] * ENOUGH]
"""Batches after which the driver lifts, since it is faster."""


def after(*batches: BatchMeasurements) -> LiftState:
    return reduce(POLICY.observe, batches, POLICY.init())


def decided(*batches: BatchMeasurements, known: UpcomingRows = SOON) -> Decision[str]:
    return POLICY.decide(after(*batches), known)[1]


def test_a_stream_is_read_by_workers_until_it_is_known():
    assert decided().value == decided(*[batch()] * (FEWEST - 1)).value == BY_WORKERS.value == "spark"
    assert decided(*[batch()] * FEWEST, known=UpcomingRows(None)).value == "spark"


def test_then_the_driver_lifts_as_many_batches_as_show_what_they_take():
    known = [batch()] * FEWEST
    for tried in range(ENOUGH):
        assert decided(*known, *[HERE] * tried).value == "driver"


@pytest.mark.parametrize(("seconds", "place"), [(0.2, "driver"), (0.29, "driver"), (0.3, "spark"), (0.4, "spark")])
def test_the_faster_place_lifts_from_then_on(seconds: float, place: str):
    shown = [*[batch()] * FEWEST, *[replace(HERE, lift_seconds=seconds)] * ENOUGH]
    decision = decided(*shown)
    assert decision.value == place
    assert decision.figures == {"expected": 1_000.0, "spark": 0.3, "driver": seconds}
    assert "about 1,000 rows are expected" in decision.because


def test_one_slow_batch_decides_nothing():
    assert decided(*KNOWN, replace(HERE, lift_seconds=9.0)).value == "driver"


def test_many_expected_rows_go_to_workers():
    assert decided(*KNOWN, known=UpcomingRows(ROWS / 1_000)).value == "driver"
    assert decided(*KNOWN, known=UpcomingRows(ROWS / 1_000 + 1)).value == "spark", "a source that has paused"
    burst = batch(1.0, rows=ROWS + 1)
    assert decided(*KNOWN, burst).value == "spark"
    assert decided(*KNOWN, burst, *[batch()] * RECENT).value == "driver"


def test_workers_lift_what_only_they_can():
    assert decided(*KNOWN, known=UpcomingRows(1.0, tied=True)).value == "spark"
    forced, tied = LiftPlacement("driver"), UpcomingRows(None, tied=True)
    assert forced.decide(forced.init(), SOON)[1].value == "driver"
    assert forced.decide(forced.init(), tied)[1].value == "spark"


@pytest.mark.parametrize(
    "other", [batch(interval=None), batch(interval=0.0), batch(rows=0), batch(rows=ROWS + 1), batch(exchanged=True)]
)
def test_the_seconds_of_other_batches_are_not_kept(other: BatchMeasurements):
    assert after(other).lasted == {}


def test_a_place_that_was_slower_is_tried_again_after_long():
    slow = replace(HERE, lift_seconds=0.9)
    shown = after(*[batch()] * FEWEST, *[slow] * ENOUGH, *[batch()] * (FORGOTTEN - 1))
    assert POLICY.decide(shown, SOON)[1].value == "spark"
    again = POLICY.observe(shown, batch())
    assert POLICY.decide(again, SOON)[1].value == "driver"
    assert POLICY.observe(again, HERE).lasted["driver"] == (0.2,)
