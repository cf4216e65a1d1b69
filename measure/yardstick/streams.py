"""The streams of the yardstick: delays of every kind, changing delays, stalling sources, pauses, and wrong clocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from skypane.datasets.flights import departures
from skypane.describing.columns import ColumnRoles, load
from skypane.types import FloatArray, IntArray
from skypane.windows import Windows
from skypane.workloads.disorder.delays import Delays, ExponentialDelay, LognormalDelay, ParetoDelay, UniformDelay

SECOND = 1_000_000
ROWS, RATE = 100_000, 100
SHORT = (Windows.of("1 second", "500 ms"), Windows.of("10 seconds"), Windows.of("2 minutes", "30 seconds"))
LONG = (Windows.of("10 minutes"), Windows.of("1 hour"), Windows.of("24 hours", "1 hour"))

Late = Callable[[IntArray, np.random.Generator], IntArray]
"""(n,) ascending event times (microseconds), chance -> (n,) times of arrival."""


@dataclass(frozen=True)
class Stream:
    """Event times in the order of arrival (microseconds), and the windows to ask for."""

    name: str
    event: IntArray
    windows: tuple[Windows, ...]
    #: whether delays are of the same kind over the whole stream
    steady: bool = True


def recorded(file: Path, stretch: int = 1, rounds: int = 1) -> Stream:
    """Return the stream of a file with columns `time` and `arrival`: its delays times `stretch`, played so many times."""
    found = load(file, ColumnRoles("time", "arrival"))
    length = int(np.ptp(found.event)) + SECOND
    event = np.concatenate([found.event + number * length for number in range(rounds)])
    told = f", played {rounds} times" if rounds > 1 else ""
    arrival = event + np.tile(found.delay * stretch, rounds)
    return Stream(f"{file.stem}, delays x{stretch}{told}", _arrived(event, arrival), SHORT)


def streams() -> Iterator[Stream]:
    """Yield all streams."""
    for name, law in _LAWS.items():
        yield _made(name, _of(law))
    yield _made("held back: 3 % for a minute", _held_back)
    yield _made("ten times as late from the middle on", _changed(10.0), steady=False)
    yield _made("a tenth as late from the middle on", _changed(0.1), steady=False)
    for sources in (7, 500):
        yield _made(
            f"one source of {sources} silent for ten minutes, then all at once", _stalled(sources), steady=False
        )
    yield paused(ROWS // 2 + 77)  # in the middle of a batch
    for off, told in ((366, "a year ahead"), (-366, "a year behind")):
        yield _wrong_clock(off, f"one clock of a hundred {told}")
    yield flights()


def flights() -> Stream:
    """Return the departures of a year in the order of the actual ones, event time the scheduled one."""
    table = departures()
    event, arrival = (table[name].cast("int64").to_numpy() for name in ("scheduled", "departed"))
    return Stream("flights", _arrived(event, arrival), LONG)


_LAWS: dict[str, Delays] = {
    "uniform": UniformDelay("1 second"),
    "exponential": ExponentialDelay("1 second"),
    "log-normal": LognormalDelay("1 second"),
    "Pareto, tail 2.5": ParetoDelay("1 second", 2.5),
    "Pareto, tail 1.2": ParetoDelay("1 second", 1.2),
}


def _sent(seed: int) -> tuple[IntArray, np.random.Generator]:
    rng = np.random.default_rng(seed)
    return np.cumsum(rng.exponential(SECOND / RATE, ROWS)).astype(np.int64), rng


def _made(name: str, late: Late, *, steady: bool = True) -> Stream:
    event, rng = _sent(1)
    arrival = late(event, rng)
    seen = arrival <= event[-1]  # cut at the last row sent, as in a stream that continues
    return Stream(name, _arrived(event[seen], arrival[seen]), SHORT, steady)


def _arrived(event: IntArray, arrival: IntArray) -> IntArray:
    ordered: IntArray = event[np.argsort(arrival, kind="stable")]
    return ordered


def _of(law: Delays) -> Late:
    return lambda event, rng: event + law.start(1, rng)(event, np.zeros_like(event))


def _exponential(event: IntArray, rng: np.random.Generator, mean: float = 1.0) -> FloatArray:
    return rng.exponential(mean * SECOND, len(event))


def _held_back(event: IntArray, rng: np.random.Generator) -> IntArray:
    held = rng.random(len(event)) < 0.03
    return (event + _exponential(event, rng, 0.1) + np.where(held, 60 * SECOND, 0)).astype(np.int64)


def _changed(factor: float) -> Late:
    def late(event: IntArray, rng: np.random.Generator) -> IntArray:
        delay = _exponential(event, rng, max(1.0, 1 / factor))
        delay[len(event) // 2 :] *= factor
        return (event + delay).astype(np.int64)

    return late


def _stalled(sources: int) -> Late:
    def late(event: IntArray, rng: np.random.Generator) -> IntArray:
        start = event[len(event) // 4]
        end = start + 600 * SECOND
        arrival = (event + _exponential(event, rng)).astype(np.int64)
        silent = (rng.integers(0, sources, len(event)) == 0) & (event >= start) & (arrival < end)
        return np.where(silent, np.maximum(arrival, end), arrival)

    return late


def paused(place: int) -> Stream:
    """Return a stream that stands still for three days after `place` rows."""
    event, rng = _sent(1)
    ordered = _arrived(event, (event + _exponential(event, rng)).astype(np.int64))
    ordered[place:] += 3 * 86_400 * SECOND
    return Stream("a pause of three days", ordered, SHORT)


def _wrong_clock(days: int, name: str) -> Stream:
    event, rng = _sent(1)
    ordered = _arrived(event, (event + _exponential(event, rng)).astype(np.int64))
    wrong = rng.integers(0, 100, ROWS) == 0
    return Stream(name, np.where(wrong, ordered + days * 86_400 * SECOND, ordered), SHORT)
