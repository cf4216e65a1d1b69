from __future__ import annotations

import numpy as np
import pytest
from tests.workloads.streams import sent_by, united

from skypane.workloads import Poisson, Presence, Shared
from skypane.workloads.arrivals.sent import SentTuples
from skypane.workloads.estimators import squared_variation, zipf_exponent
from skypane.workloads.stream import generator


def thinned(presence: Presence, streams: int, sent: SentTuples) -> SentTuples:
    parts = zip(np.array_split(sent.times, 9), np.array_split(sent.sources, 9), strict=True)
    return united(presence.thinned((SentTuples(*part) for part in parts), streams, generator(3, 0)))


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.2])
def test_shares_follow_the_exponent(exponent: float):
    sent = sent_by(Shared(Poisson(1_000), 20, exponent), 200_000)
    assert zipf_exponent(sent.sources, among=20) == pytest.approx(exponent, abs=0.03)


def test_a_share_of_a_poisson_process_is_one_too():
    sent = sent_by(Shared(Poisson(1_000), 5), 200_000)
    assert squared_variation(np.diff(sent.times[sent.sources == 2])) == pytest.approx(1, rel=0.04)


def test_sources_join_within_the_time_given():
    sent = sent_by(Shared(Poisson(10_000), 50), 200_000)  # 20 s
    left = thinned(Presence(join_within="10 seconds"), 50, sent)
    firsts = np.array([left.times[left.sources == source][0] for source in range(50)]) / 1e6
    assert firsts.max() < 10.5
    assert np.ptp(firsts) > 8
    for source, first in enumerate(firsts):  # all it sends from then on
        after = sent.times[(sent.sources == source) & (sent.times >= first * 1e6)]
        assert (left.times[left.sources == source] == after).all()


def test_sources_leave_for_good_and_the_stream_ends_with_the_last():
    sent = sent_by(Shared(Poisson(10_000), 400), 600_000)  # 60 s
    left = thinned(Presence(stay="5 seconds"), 400, sent)
    lasts = np.array([left.times[left.sources == source][-1] for source in np.unique(left.sources)]) / 1e6
    assert lasts.mean() == pytest.approx(5, rel=0.15)
    assert squared_variation(lasts) == pytest.approx(1, rel=0.3)
    assert left.times[-1] < 60e6


def test_stalled_sources_are_silent():
    sent = sent_by(Shared(Poisson(20_000), 20), 1_000_000)  # 50 s, each source 1,000 per second
    left = thinned(Presence(stall_every="3 seconds", stall_for="1 second"), 20, sent)
    assert len(left.times) / len(sent.times) == pytest.approx(0.75, abs=0.05)
    silences = np.concatenate([np.diff(left.times[left.sources == source]) for source in range(20)])
    stalls = silences[silences > 20_000] / 1e6
    assert stalls.mean() == pytest.approx(1, rel=0.2)
