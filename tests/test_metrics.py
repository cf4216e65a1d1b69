"""What follows from a batch's measurements, by hand."""

from __future__ import annotations

import json

import pytest
from tests.reporting.made import batch

from skypane.metrics import BatchMetrics


def test_window_workers_are_idle_for_what_their_runs_leave():
    """Two runs of 0.1 and 0.2 s in a stage of 0.2 s: two workers were idle for a quarter, four for five eighths."""
    answered = {"wlq_busy": (0.1, 0.2), "seconds": {"total": 1.0, "wlq": 0.2}}
    assert batch(**answered, workers={"plq": 1, "wlq": 2}).wlq_idle == pytest.approx(0.25)
    assert batch(**answered, workers={"plq": 1, "wlq": 4}).wlq_idle == pytest.approx(0.625)
    assert batch(workers={"plq": 1, "wlq": 2}).wlq_idle is None, "no window was answered"


def test_metrics_come_back_from_json():
    original = batch(wlq_busy=(0.1, 0.2), workers={"plq": 1, "wlq": 2})
    assert BatchMetrics.from_json(json.loads(json.dumps(original.to_json()))) == original


def test_the_share_of_amended_windows_counts_from_the_start():
    assert batch(amended={"windows": 2, "all_answered": 40, "all_amended": 3}).amended_share == 0.075
    assert batch(amended={"all_answered": 0, "all_amended": 0}).amended_share == 0
    assert batch().amended_share is None
    earlier = batch(amended={"rows": 1, "windows": 2})
    assert BatchMetrics.from_json(json.loads(json.dumps(earlier.to_json()))) == earlier
