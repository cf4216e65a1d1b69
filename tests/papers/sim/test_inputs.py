"""Streams on readers in virtual time: the backlog, and what a redirection costs, by hand; and the paper's figures in shape."""

from __future__ import annotations

import numpy as np
import pytest

from skypane.control.admission import Admission, MetaData
from skypane.types import ConfigError
from skypane_papers.sim import inputs
from skypane_papers.sim.inputs import Inputs, arrivals, simulate_inputs


def steady(seconds: int, *rates: float) -> np.ndarray:
    return np.tile(np.array(rates) * 0.5, (seconds * 2, 1))


def test_rows_wait_for_what_a_reader_cannot_serve():
    """15 rows/s into a reader of 10 for 10 s: a queue of 2.5 more each tick, 50 at the end, and a wait of 2.5 s on average."""
    (shown,) = simulate_inputs(Inputs(steady(10, 15.0), None, 10.0, max_readers=1, start=np.array([1])))
    assert (shown.readers, shown.redirected, shown.buffered) == (1, 0, 0)
    assert shown.latency == pytest.approx(2.5)
    assert shown.latency_most == pytest.approx(4.875)


def test_a_redirection_costs_the_old_queue_and_the_handover():
    """Two streams of 6 on a reader of 10: 20 rows wait after a period, so the one that moves is suspended for 2.5 s."""
    setup = Inputs(steady(20, 6.0, 6.0), Admission(capacity=10, strategy="ARD"), 10.0, start=np.array([1, 1]))
    _, second = simulate_inputs(setup)
    assert (second.readers, second.redirected) == (2, 1)
    assert second.delay == pytest.approx(2.5)
    assert second.buffered == pytest.approx(15.0)  # 6 rows/s for 2.5 s


def test_no_row_is_lost_on_the_way(monkeypatch: pytest.MonkeyPatch):
    """What came was read, waits at a reader, or at a client."""
    made: list[inputs._Readers] = []
    original = inputs._Readers.__init__

    def noted(self: inputs._Readers, setup: Inputs) -> None:
        made.append(self)
        original(self, setup)

    monkeypatch.setattr(inputs._Readers, "__init__", noted)
    rng = np.random.default_rng(0)
    came = rng.poisson(3.0, (200, 9)).astype(float)
    readers = []
    for _ in simulate_inputs(Inputs(came, Admission(capacity=20.0, strategy="PAR"), 20.0)):
        (state,) = made
        readers.append(float(state.queue.sum() + state.waiting.sum()))
        assert 0 <= readers[-1] <= came.sum()
    assert state.read + readers[-1] == pytest.approx(came.sum())


def test_meta_data_of_jumps_spares_queues():
    """Ten pairs that swap rates every 30 s: DRF-M, which knows it, has nothing wait; DRF, which does not, has."""
    at = np.arange(600) * 0.5 % 60 < 30
    came = np.concatenate([np.where(at, 9.0, 1.0)[:, None]] * 10 + [np.where(at, 1.0, 9.0)[:, None]] * 10, axis=1) * 0.5
    jumps = [MetaData(min=1, max=9, transition="jump", period="1 minute")] * 20
    latency = {}
    for strategy in ("DRF", "DRF-M"):
        shown = list(simulate_inputs(Inputs(came, Admission(capacity=25, strategy=strategy), 25.0, meta=jumps)))
        latency[strategy] = max(period.latency for period in shown[6:])
    assert latency["DRF-M"] < 0.1 < latency["DRF"]


def test_arrivals_are_counted_in_their_tick():
    times, sources = np.array([0, 400_000, 500_000, 999_999, 1_000_000]), np.array([0, 1, 1, 0, 0])
    assert arrivals(times, sources, 2, 1.0).tolist() == [[1, 1], [1, 1]]


def test_an_invalid_setting_is_refused():
    with pytest.raises(ConfigError, match="start is missing; without a policy"):
        Inputs(steady(1, 1.0), None, 10.0)
    with pytest.raises(ConfigError, match=r"every must equal that of the policy, 1 minute, got 10\.0 s"):
        Inputs(steady(1, 1.0), Admission(capacity=10, every="1 minute"), 10.0)
