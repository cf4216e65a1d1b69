"""The settings of paper 5's published code: what its controller is given, and how its runs are summed up."""

from __future__ import annotations

import numpy as np
import pytest

from skypane.control.elasticity.situation import Situation
from skypane.control.parallelism import Workers
from skypane_papers import all_streams
from skypane_papers.elastic import GAME1, SETTINGS, SOURCES, as_published, sampled, summary
from skypane_papers.plq_alone import PlqAlone


def test_a_plq_alone_gets_no_workers_for_panes_that_are_split():
    """Rule 8 adds workers where rho is acceptable and panes are split; a fixed splitting factor of 1 keeps it from it."""
    split = Situation(Workers(8, 1), rho_plq=0.9, rho_wlq=3.0, sigma=6.0)
    assert PlqAlone().propose(split, 60).value == Workers(8, 1)
    assert PlqAlone(sigma=None).propose(split, 60).value.plq > 8


@pytest.mark.parametrize("setpoint", SETTINGS.values())
def test_a_run_as_published_is_summed_up_over_the_whole_run(setpoint: float):
    shown = sampled(GAME1, as_published(setpoint), quick=True)
    found = summary(shown, settled=0.0)
    assert found.throughput * shown[-1].time == pytest.approx(sum(one.windows for one in shown))
    assert found.n == np.mean([one.workers.plq for one in shown[:-1]])
    assert found.extra > 0, "the run begins with one worker in each stage, and is not done with the stream"
    decided = [at for at, one in enumerate(shown[:-1], 1) if not np.isnan(one.rho_wlq)]
    assert decided == list(range(10, len(shown), 10)), "the window level is measured once in a control interval"


def test_the_published_logs_have_the_papers_numbers_of_workers_except_for_game1():
    for source, logged in zip(SOURCES, all_streams.LOGGED["skyline"], strict=True):
        if source is not GAME1:
            assert logged[:2] == source.skyline[:2]
    assert all_streams.LOGGED["skyline"][SOURCES.index(GAME1)][:2] != GAME1.skyline[:2]
