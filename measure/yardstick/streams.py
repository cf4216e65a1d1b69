"""The streams of the yardstick: delays of every kind, changing delays, stalling sources, pauses, and wrong clocks.

Those of DISAGREEING have sources that share no clock, or no position: their latency is by the time of arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
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

HOUR, DAY = 3_600 * SECOND, 86_400 * SECOND
HALF_DAY = 12 * HOUR
START = 1_772_323_200 * SECOND

Late = Callable[[IntArray, np.random.Generator], IntArray]
"""(n,) ascending event times (microseconds), chance -> (n,) times of arrival."""

Shown = Callable[[IntArray, IntArray], IntArray]
"""(n,) times at which rows are sent, (n,) numbers of their sources -> (n,) event times, by the clocks of the sources."""
Arrives = Callable[[IntArray, IntArray, IntArray], IntArray]
"""(n,) times at which rows are sent, (n,) times of arrival, (n,) numbers of sources -> (n,) times of arrival."""


@dataclass(frozen=True)
class Stream:
    """Event times in the order of arrival (microseconds), and the windows to ask for."""

    name: str
    event: IntArray
    windows: tuple[Windows, ...]
    #: whether delays are of the same kind over the whole stream
    steady: bool = True
    #: the time at which each row arrives (microseconds); None: only the order is known
    arrival: IntArray | None = None
    #: the number of each row's source, if the sources are known
    source: IntArray | None = None
    #: the times at which rows were sent (microseconds), if the clocks may show others
    sent: IntArray | None = None


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
    for name in DISAGREEING:
        yield replace(disagreeing(name), source=None)
        if "clock" in name:
            yield replace(disagreeing(name), name=f"{name}; sources known")


def disagreeing(name: str) -> Stream:
    """Return the stream of DISAGREEING with this name; its sources are known."""
    made = DISAGREEING[name]
    rng = np.random.default_rng(1)
    rows = made.rate * made.length // SECOND
    sent = START + np.sort(rng.random(rows) * made.length).astype(np.int64)
    arrival = sent + (rng.exponential(5.0, rows) * SECOND).astype(np.int64)
    source = rng.integers(0, made.sources, rows)
    arrival = made.arrives(sent, arrival, source)
    event = made.shown(sent, source)
    order = np.argsort(arrival, kind="stable")
    order = order[arrival[order] <= sent[-1]]
    windows = (Windows.of("10 minutes"),)
    return Stream(
        name, event[order], windows, steady=False, arrival=arrival[order], source=source[order], sent=sent[order]
    )


def _as_sent(sent: IntArray, source: IntArray) -> IntArray:  # noqa: ARG001
    return sent


def _off(sources: int, by: int, since: int = 0) -> Shown:
    return lambda sent, source: sent + np.where((source < sources) & (sent >= START + since), by, 0)


def _in_time(sent: IntArray, arrival: IntArray, source: IntArray) -> IntArray:  # noqa: ARG001
    return arrival


def _replayed(sent: IntArray, arrival: IntArray, source: IntArray) -> IntArray:
    """All start when the first day is over; each replays its own in a minute, after the one before."""
    minute = 60 * SECOND
    replay = START + DAY + source * minute + (sent - START) * minute // DAY
    return np.where(sent < START + DAY, replay, np.maximum(arrival, START + DAY))


def _uploaded(sent: IntArray, arrival: IntArray, source: IntArray) -> IntArray:
    """The first source sends at midnight, in 86 seconds."""
    time = (sent - START) % DAY
    return np.where(source == 0, sent - time + DAY + time // 1_000, arrival)


def _slow_hour(sent: IntArray, arrival: IntArray, source: IntArray) -> IntArray:  # noqa: ARG001
    slow = (sent >= START + 3 * HOUR) & (sent < START + 4 * HOUR)
    return np.where(slow, sent + 10 * (arrival - sent), arrival)


def _fifty_late(sent: IntArray, arrival: IntArray, source: IntArray) -> IntArray:  # noqa: ARG001
    late = arrival.copy()
    first = int(np.searchsorted(sent, START + 2 * HOUR))
    late[first : first + 50] += 600 * SECOND
    return late


@dataclass(frozen=True)
class Disagreement:
    """Sources with `rate` rows a second in all over `length` microseconds, with delays of 5 s in the mean."""

    sources: int
    rate: int
    length: int
    shown: Shown = _as_sent
    arrives: Arrives = _in_time


DISAGREEING = {
    "one clock of 100 an hour ahead": Disagreement(100, 5, HALF_DAY, _off(1, HOUR)),
    "one clock of 50 two hours ahead": Disagreement(50, 5, HALF_DAY, _off(1, 2 * HOUR)),
    "one clock of 50 two hours ahead after three": Disagreement(50, 5, HALF_DAY, _off(1, 2 * HOUR, since=3 * HOUR)),
    "three clocks of ten an hour ahead": Disagreement(10, 5, HALF_DAY, _off(3, HOUR)),
    "one clock of 50 two hours behind": Disagreement(50, 5, HALF_DAY, _off(1, -2 * HOUR)),
    "one clock of 200 two hours behind": Disagreement(200, 5, HALF_DAY, _off(1, -2 * HOUR)),
    "ten sources replay a day, one after another": Disagreement(10, 1, 4 * DAY, arrives=_replayed),
    "one source of ten uploads at night": Disagreement(10, 2, 4 * DAY, arrives=_uploaded),
    "one source of 200 uploads at night": Disagreement(200, 2, 4 * DAY, arrives=_uploaded),
    "an hour of delays ten times as long": Disagreement(50, 5, HALF_DAY, arrives=_slow_hour),
    "fifty rows ten minutes late": Disagreement(50, 5, HALF_DAY, arrives=_fifty_late),
}


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
