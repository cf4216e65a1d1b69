"""Whether the engine's policy routes where routing pays, by the costs that were fitted."""

from __future__ import annotations

from skypane_papers.own import routing


def test_the_policy_takes_the_better_side_within_a_tenth_at_16_64_and_256_source_partitions():
    rows = routing.measure(quick=True)
    assert (rows["regret"] <= 0.1).all(), "by what the queries tell of how their results grow"
    assert rows["regret unknown"].max() > 0.1, "without a query's growth, a top-k is taken for a skyline"
    assert set(rows["sources"]) == {16, 64, 256}


def test_both_sides_are_the_better_one_somewhere():
    gain = routing.measure(quick=True)["gain"]
    assert gain.max() > 1.2
    assert gain.min() < 0.5
