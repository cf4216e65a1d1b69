"""A stream that pauses every night: the flights of a year, in files of some hours."""

from __future__ import annotations

from datetime import timedelta
from functools import cache

import numpy as np
import pytest

from skypane.datasets.flights import departures
from skypane.progress import AqKSlack, PaneArrivals
from skypane.progress.policy_yardstick import window_ends
from skypane.types import micros
from skypane.windows import Windows

HOUR = micros("1 hour")
WINDOWS = Windows(HOUR, HOUR)


@cache
def flights():
    """Return scheduled and actual departures of eight weeks, in microseconds."""
    table = departures().select(["scheduled", "departed"])
    event, arrival = (table[name].to_numpy().astype("datetime64[us]").astype(np.int64) for name in table.column_names)
    weeks = arrival < arrival[0] + micros(timedelta(weeks=8))
    return event[weeks], arrival[weeks]


def replayed(policy, length):
    """Return the mean hours from the end of an hour to its answer, and the share of flights that were lost."""
    event, arrival = flights()
    first = arrival[0] // length * length
    file_ends = np.arange(first + length, arrival[-1], length)
    state, punctuations = policy.init(), []
    for times in np.split(event, np.searchsorted(arrival, file_ends))[:-1]:
        if len(times):
            state, _ = policy.decide(state, PaneArrivals.at_once(times, WINDOWS))
        punctuations.append(state.punctuation)
    ends = window_ends(event, WINDOWS)
    ends = ends[ends <= punctuations[-1]]
    waits = file_ends[np.searchsorted(punctuations, ends)] - ends
    return waits.mean() / HOUR, state.dropped / state.seen


@pytest.mark.parametrize(("hours", "most"), [(6, 1.12), (3, 1.06), (1, 1.08)])
def test_nights_are_followed_nearly_as_soon_as_by_the_newest_time_of_any_row(hours, most):
    wait, lost = replayed(AqKSlack(0.01), hours * HOUR)
    soonest, lost_soonest = replayed(AqKSlack(0.01, max_ahead=None), hours * HOUR)
    assert wait < most * soonest
    assert lost < 1.03 * lost_soonest
