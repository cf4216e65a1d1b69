"""Streams like those of paper 1, table 2: eight games on a field, by rate, delays and burstiness.

The recordings are no longer public, so the streams are generated with the values of the table. Most tuples have a small
delay (exponential), and a few a delay up to the longest one, as after a pause of a source, so that the mean and the
longest delay are those of the table.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from skypane.types import IntArray
from skypane_papers.streams import event_times


class Game(NamedTuple):
    """A game: tuples per second, mean and longest delay in seconds, index of dispersion."""

    rate: float
    mean_delay: float
    longest_delay: float
    dispersion: float


GAMES: Final = {
    "G1": Game(8_514, 0.034, 142, 2_853),
    "G2": Game(10_037, 0.029, 171, 207),
    "G3": Game(8_766, 0.026, 77, 1_507),
    "G4": Game(11_610, 0.024, 54, 155),
    "G5": Game(18_850, 0.015, 50, 1_845),
    "G6": Game(18_462, 0.016, 71, 23),
    "G7": Game(21_102, 0.020, 5.03, 89),
    "G8": Game(23_071, 0.265, 5.18, 3_062),
}


def arrivals(game: Game, seconds: float, seed: int = 0) -> tuple[IntArray, IntArray]:
    """Return event and arrival times in microseconds, in order of arrival, of the tuples that arrive within `seconds`.

    Half of the mean delay is due to the few long delays.
    """
    rng = np.random.default_rng(seed)
    event = event_times(game.rate, game.dispersion, seconds, rng)
    delay = rng.exponential(game.mean_delay / 2, len(event))
    rare = rng.random(len(event)) < game.mean_delay / game.longest_delay
    delay[rare] = rng.random(int(rare.sum())) * game.longest_delay
    arrival = event + np.round(delay * 1e6).astype(np.int64)
    order = np.argsort(arrival, kind="stable")
    order = order[: int((arrival < seconds * 1e6).sum())]
    return event[order], arrival[order]
