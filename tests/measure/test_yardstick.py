"""Cells of the yardstick that say most; `python -m measure.yardstick.cells` measures them all."""

from __future__ import annotations

import numpy as np
import pytest
from measure.yardstick import cells as yardstick
from measure.yardstick import streams as yardstick_streams

from skypane.progress import AqKSlack
from skypane.progress.policy_yardstick import measure
from skypane.windows import Windows

FEW = 1_000


def test_what_a_pause_costs_beyond_hindsight_is_chance():
    """A window that is open when a stream pauses waits for days, so one more or less decides a mean: many do not."""
    places = range(30_077, 80_000, 4_011)
    streams = [yardstick_streams.paused(place) for place in places]
    found = [measure(stream.event, stream.windows[0], FEW, AqKSlack(0.05)).ratios[0] for stream in streams]
    assert np.mean(found) <= 1.08


@pytest.mark.parametrize("window", ["10 minutes", "1 hour"])
def test_flights_keep_a_budget_of_a_thousandth_in_batches_of_days(window: str):
    flights = yardstick_streams.flights()
    found = measure(flights.event, Windows.of(window), 5_000, AqKSlack(0.001))
    assert found.judged
    assert found.chosen <= found.budget


def test_the_tables_have_a_row_for_each_window_and_batch():
    stream = yardstick_streams.paused(50_077)
    cells = {
        (stream.windows[1], batch, 0.01): measure(stream.event, stream.windows[1], batch, AqKSlack(0.01))
        for batch in (200, FEW)
    }
    steady = [(stream, cells)]
    assert "2 cells; 2 of streams without a change, 2 of them" in yardstick.summary(steady)
    (row,) = yardstick.others(stream, cells)
    assert row.count("|") == 14
