"""Whether the engine's law routes where routing pays, by the costs that were fitted."""

from __future__ import annotations

from skypane.reproduce.own import routing
from skypane.reproduce.rows import only


def test_the_law_takes_the_better_side_within_a_tenth_at_16_64_and_256_source_partitions():
    rows = routing.measure(quick=True)
    assert (only(rows, query="skyline")["regret"] <= 0.1).all()
    assert (rows["regret told"] <= 0.1).all(), "any query, where the law is told how results grow"
    assert set(rows["sources"]) == {16, 64, 256}


def test_both_sides_are_the_better_one_somewhere():
    gain = routing.measure(quick=True)["gain"]
    assert gain.max() > 1.2
    assert gain.min() < 0.5
