"""No row of a right clock is corrected or quarantined, whatever the policy, and however many others are wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.parameters import slow_but

from skypane.progress import AqKSlack, KSlack, PaneArrivals, Readiness, SourceCount, Watermark
from skypane.windows import Windows

SECOND, MINUTE, HOUR = 1_000_000, 60_000_000, 3_600_000_000
WINDOWS = Windows(10 * MINUTE, 10 * MINUTE)
POLICIES: dict[str, Any] = {
    "KSlack": KSlack(),
    "KSlack, any time": KSlack(max_ahead=None),
    "AqKSlack": AqKSlack(0.01),
    "AqKSlack, any time": AqKSlack(0.01, max_ahead=None),
    "Watermark": Watermark("1 minute"),
    "Readiness": Readiness(5),
}
BATCHES = 60


def drawn(seed):
    """Batches of (times, numbers of sources), and which sources are wrong: sparse or dense, ahead or behind, up to 3 of 10."""
    rng = np.random.default_rng(seed)
    sources = int(rng.choice([3, 5, 10, 20, 50]))
    wrong = rng.permutation(sources)[
        : int(rng.choice([1, max(1, sources // 10), max(1, min((sources - 1) // 2, 3 * sources // 10))]))
    ]
    by = int(rng.choice([2, 5, 15, 60, 120, 60 * 26, 60 * 24 * 30])) * MINUTE * int(rng.choice([1, -1]))
    every, batch = int(rng.choice([5, 10, 60, 300])) * SECOND, int(rng.choice([60, 60, 300])) * SECOND
    rows = max(sources, BATCHES * batch // every * sources)
    sent, source = np.sort(rng.integers(0, BATCHES * batch, rows)), rng.integers(0, sources, rows)
    late = rng.exponential(int(rng.choice([1, 10, 20])) * SECOND, rows).astype(np.int64) * (rng.random(rows) < 0.3)
    order = np.argsort(sent + late, kind="stable")
    arrival = (sent + late)[order]
    times = (1_772_953_200 * SECOND + sent + np.where(np.isin(source, wrong), by, 0))[order]
    cuts = np.searchsorted(arrival, np.arange(1, BATCHES) * batch)
    return list(zip(np.split(times, cuts), np.split(source[order], cuts), strict=True)), wrong, by


def judged(policy, batches):
    """Yield the numbers of the sources of each batch, and by how much their rows' clocks are held to be ahead."""
    state = policy.init()
    for times, source in batches:
        if not len(times):
            continue
        rules = policy.clock_rules(state)
        off = np.array([rules.offsets.get(str(number), 0) if rules else 0 for number in source], np.int64)
        yield source, off
        enters = np.full(len(times), policy.clocks == "align") | (off == 0)
        shown = times - off if policy.clocks == "align" else times
        counts = {
            str(number): SourceCount(int(mine.sum()), 0, int(shown[mine].max()))
            for number in np.unique(source[enters]).tolist()
            for mine in [(source == number) & enters]
        }
        raw = {
            str(number): int(times[(source == number) & (off != 0)].max())
            for number in np.unique(source[off != 0]).tolist()
        }
        arrivals = PaneArrivals.of_times(shown[enters], WINDOWS)
        state = policy.decide(state, replace(arrivals, sources=counts, shown=raw))[0]


@pytest.mark.parametrize("clocks", ["align", "quarantine"])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", slow_but(range(2), range(12)))
def test_no_right_row_is_touched(seed, policy, clocks):
    batches, wrong, _ = drawn(seed)
    for source, off in judged(replace(POLICIES[policy], clocks=clocks), batches):
        assert not (off[~np.isin(source, wrong)] != 0).any()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("by", [HOUR, -HOUR])
def test_the_wrong_one_of_ten_is_found(policy, by):
    """Each source has a row every ten seconds, in batches of a minute."""
    rng = np.random.default_rng(7)
    batches = []
    for minute in range(BATCHES):
        times = (
            1_772_953_200 * SECOND
            + minute * MINUTE
            + np.repeat(np.arange(6) * 10 * SECOND, 10)
            + rng.integers(0, 9 * SECOND, 60)
        )
        source = np.tile(np.arange(10), 6)
        batches.append((times + np.where(source == 0, by, 0), source))
    last = [off for _, off in judged(replace(POLICIES[policy], clocks="quarantine"), batches)][-1]
    assert np.flatnonzero(last).tolist() == np.flatnonzero(np.tile(np.arange(10), 6) == 0).tolist()
    assert abs(int(last[0]) - by) <= MINUTE
