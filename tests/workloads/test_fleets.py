from __future__ import annotations

import numpy as np
import pytest
from tests.workloads.streams import sent_by

from skypane.types import FloatArray
from skypane.workloads import BurstyFleet, ConstantFleet, FluctuatingFleet
from skypane.workloads.arrivals.sent import SentTuples
from skypane.workloads.estimators import squared_variation


def rates(sent: SentTuples, streams: int, seconds: float) -> FloatArray:
    """Tuples per second, (whole intervals of that many seconds, streams)."""
    interval = (sent.times / 1e6 // seconds).astype(np.int64)
    found = np.bincount(interval * streams + sent.sources, minlength=(interval[-1] + 1) * streams)
    return found.reshape(-1, streams)[:-1] / seconds


def test_constant_streams_have_rates_between_low_and_high_for_good():
    measured = rates(sent_by(ConstantFleet(10, 90), 800_000), 80, 50.0)
    assert measured.shape[1] == 80
    assert measured.min() > 10 - 5 * np.sqrt(10 / 50)
    assert measured.max() < 90 + 5 * np.sqrt(90 / 50)
    assert np.ptp(measured.mean(axis=0)) > 60
    assert (measured.std(axis=0) < 3 * np.sqrt(measured.mean(axis=0) / 50)).all()


def test_constant_streams_are_poisson():
    sent = sent_by(ConstantFleet(50, 50, streams=4), 100_000)
    for source in range(4):
        assert squared_variation(np.diff(sent.times[sent.sources == source])) == pytest.approx(1, rel=0.05)


@pytest.mark.parametrize("shape", ["step", "trend"])
def test_pairs_fluctuate_oppositely_and_the_total_stays(shape):
    sent = sent_by(FluctuatingFleet(20, 400, period="8 seconds", shape=shape, streams=10), 400_000)
    measured = rates(sent, 10, 0.5)
    total = measured.sum(axis=1)
    assert total.std() < 2 * np.sqrt(total.mean() / 0.5)
    for pair in range(5):
        a, b = measured[:, 2 * pair], measured[:, 2 * pair + 1]
        assert a.mean() == pytest.approx(b.mean(), rel=0.1)
        if a.std() > 4 * np.sqrt(a.mean() / 0.5):
            assert np.corrcoef(a, b)[0, 1] < -0.5


@pytest.mark.parametrize("shape", ["step", "trend"])
def test_the_total_varies_when_all_go_together(shape):
    fleet = FluctuatingFleet(20, 400, period="8 seconds", shape=shape, total="varying", streams=10)
    total = rates(sent_by(fleet, 400_000), 10, 1.0).sum(axis=1)
    whole = total[: len(total) // 8 * 8].reshape(-1, 8).mean(axis=0)
    if shape == "step":  # low for the first half of a period, high for the second
        assert whole[:4] == pytest.approx(np.full(4, whole[:4].mean()), rel=0.1)
        assert whole[4:].min() > 1.3 * whole[:4].max()
    else:  # up, then down again
        assert (np.diff(whole[:4]) > 0).all()
        assert (np.diff(whole[4:]) < 0).all()


def test_bursty_streams_are_periodic_while_active_and_silent_while_idle():
    fleet = BurstyFleet(100, active="2 seconds", idle="6 seconds", streams=20)
    sent = sent_by(fleet, 200_000)
    assert len(sent.times) / (sent.times[-1] / 1e6) == pytest.approx(20 * 100 * 2 / 8, rel=0.1)
    silences = []
    for source in range(20):
        gaps = np.diff(sent.times[sent.sources == source])
        assert np.mean(np.abs(gaps - 10_000) <= 1) > 0.99
        silences.append(gaps[gaps > 10_001] - 10_000)
    assert np.concatenate(silences).mean() / 1e6 == pytest.approx(6, rel=0.15)
    assert squared_variation(np.concatenate(silences)) == pytest.approx(1, rel=0.25)
