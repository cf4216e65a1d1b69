"""What befalls a driver, drawn by a seed: a pure schedule, which others carry out (stream.py).

A life begins when a driver is requested to run a stream. While it lasts, things happen that it should survive; what ends it comes last.
Some lives are short: they end while the driver takes over, or soon after its first batch.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

# What a driver survives, alone or by another request of what to run.
WORKER, DAEMON, EXECUTOR, RECEIVER = "worker", "daemon", "executor", "receiver"
SLOW, CLOCK, FULL = "slow renames", "clock", "full disk"
SILENT, BROKER, INTERRUPT = "silent broker", "broker", "interrupt"
# What ends it.
DRIVER, PYTHON, JAVA, FREEZE, MEETING, PLACE = "driver", "python", "java", "freeze", "meeting", "place"
# What befalls a checkpoint while nobody runs.
BIT: Final = "bit"

KILLS: Final = (DRIVER, PYTHON, JAVA, PLACE, WORKER, DAEMON, EXECUTOR, RECEIVER, BROKER)
OF_ALL: Final = (DRIVER, PYTHON, JAVA, FREEZE, MEETING, PLACE, INTERRUPT)
"""What is done to each of the streams of a driver, and counts so often; the rest counts for any of them."""
ENDS: Final = {DRIVER: 5, PYTHON: 3, JAVA: 3, FREEZE: 1, MEETING: 1, PLACE: 2}
ALWAYS: Final = {WORKER: 24, DAEMON: 2, SLOW: 2, CLOCK: 2, INTERRUPT: 1}
"""How often each is drawn, against the others."""
FIRST: Final = 15
"""Steps that are there when streams begin."""
SHORT: Final = 0.35
BIT_BEFORE: Final = 0.08
"""In how many lives nothing happens but their end, and before how many a bit is flipped."""


@dataclass(frozen=True)
class Act:
    """Something that is done so many seconds after the act before it; it lasts for `seconds`, if it lasts.

    by     how far: of a clock the seconds that it is off, of a rename those that it takes
    place  the number of the place at which the first stream of a driver stands still, the next ones at the places after it;
           None: each goes on
    """

    kind: str
    after: float
    seconds: float = 0.0
    by: float = 0.0
    place: int | None = None


@dataclass(frozen=True)
class Means:
    """The processes and connections beside the driver that can be killed or cut off, and the means."""

    executors: bool = False
    receiver: bool = False
    broker: bool = False
    weather: bool = True
    full: bool = True
    bits: bool = True

    def drawn(self) -> dict[str, int]:
        """Return what may happen within a life, and how often."""
        own = {
            EXECUTOR: 8 * self.executors, RECEIVER: 12 * self.receiver, SILENT: self.broker, BROKER: self.broker,
            FULL: 2 * self.full,
        }  # fmt: skip
        gone = set() if self.weather else {SLOW, CLOCK}
        return {kind: weight for kind, weight in (ALWAYS | own).items() if weight and kind not in gone}


@dataclass(frozen=True)
class Life:
    """A driver's life: what happens in it, how it ends, and whether a bit of the checkpoint was flipped before it.

    early  of a life in which nothing happens: when it ends, as a part of the time that a driver takes to its first batch;
           None: acts begin after the first batch
    """

    acts: tuple[Act, ...]
    end: Act
    bit: bool = False
    early: float | None = None


def lives(seed: int, means: Means) -> Iterator[Life]:
    """Return one life after the other, forever; the same for the same seed."""
    chance = random.Random(seed)
    while True:
        bit = means.bits and chance.random() < BIT_BEFORE
        if chance.random() < SHORT:
            yield Life((), _end(chance, 0.0), bit, chance.uniform(0, 1.3))
        else:
            acts = tuple(_act(chance, means) for _ in range(chance.randint(4, 20)))
            yield Life(acts, _end(chance, chance.uniform(0, 1)), bit)


def _act(chance: random.Random, means: Means) -> Act:
    kind, after = _weighted(chance, means.drawn()), chance.choice([chance.uniform(0, 0.2), chance.uniform(0, 0.6)])
    if kind == SLOW:
        return Act(kind, after, chance.uniform(0.5, 3), chance.uniform(0.02, 0.4))
    if kind == CLOCK:
        far = chance.choice([1, 60, 3_600, 86_400, 400 * 86_400])
        return Act(kind, after, chance.uniform(0, 3), chance.choice([-1, 1]) * chance.uniform(0, far))
    if kind in {FULL, SILENT}:
        return Act(kind, after, chance.uniform(0.3, 3))
    return Act(kind, after)


def _end(chance: random.Random, after: float) -> Act:
    kind, place = _weighted(chance, ENDS), chance.randrange(100)
    stands = kind == PLACE or (kind in {FREEZE, MEETING} and place % 2)
    return Act(kind, after, chance.uniform(0.5, 3), place=place if stands else None)


def at_each_place(places: int, takeovers: int) -> Iterator[Life]:
    """Return lives that end when each stream stands still at a place, another one in each: in a kill, then in a take-over."""
    for place in range(places):
        yield Life((), Act(PLACE, 0.0, place=place))
    for place, kind in enumerate((FREEZE, MEETING)[:takeovers]):
        yield Life((), Act(kind, 0.0, place=place))


def _weighted(chance: random.Random, weights: dict[str, int]) -> str:
    return chance.choices(list(weights), list(weights.values()))[0]
