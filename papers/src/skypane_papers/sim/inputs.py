"""Many streams on few readers in virtual time, assigned by the admission policy of the engine's source.

Rows are a fluid: a reader serves its capacity, and the rest waits. A stream that is redirected is suspended at its
client until its old reader has read its backlog, plus the time of the handover. Rows that are sent meanwhile are
buffered at the client, and then go to the new reader all at once. This is the cost of a move.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from skypane.control.admission import Admission, AdmissionState, Assignment, MetaData, PeriodObservation
from skypane.control.admission.admission import ReaderState
from skypane.control.admission.packing import fewest_bins
from skypane.types import ConfigError, FloatArray, IntArray, micros


@dataclass(frozen=True, eq=False)
class Inputs:
    """Settings of a simulation.

    rows         (ticks, streams), number of rows that arrive in each tick
    tick         length of a tick in seconds
    policy       policy that assigns streams to readers once per period; None: each reader keeps its first streams
    capacity     rows per second that a reader serves
    max_readers  maximum number of readers
    meta         meta data of the streams; empty: nothing is known
    handover     seconds that handing over a stream takes
    start        first reader of each stream, 1 to `max_readers`; None: the policy decides
    every        length of a period in seconds
    """

    rows: FloatArray
    policy: Admission | None
    capacity: float
    max_readers: int = 32
    meta: Sequence[MetaData] = ()
    tick: float = 0.5
    handover: float = 0.5
    start: IntArray | None = None
    every: float = 10.0

    def __post_init__(self) -> None:
        if self.policy is None and self.start is None:
            raise ConfigError("start is missing; without a policy it must give the reader of each stream")
        if self.policy is not None and micros(self.policy.every) != round(self.every * 1e6):
            raise ConfigError(f"every must equal that of the policy, {self.policy.every}, got {self.every} s")
        if not self.capacity > 0 or not self.tick > 0:
            raise ConfigError(f"capacity and tick must be above 0, got {self.capacity} and {self.tick}")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"s{number:03}" for number in range(self.rows.shape[1]))


class Shown(NamedTuple):
    """Results of one period.

    time         end of the period in seconds
    readers      number of readers in use
    fewest       lower bound of the readers needed for the period's rates
    redirected   streams that were moved at its beginning
    buffered     rows that waited at clients because of the moves
    delay        seconds for which streams were suspended, in total
    latency      mean seconds for which rows waited; latency_most: maximum
    because      reason of the decision
    """

    time: float
    readers: int
    fewest: int
    redirected: int
    buffered: float
    delay: float
    latency: float
    latency_most: float
    because: str


def simulate_inputs(setup: Inputs) -> Iterator[Shown]:
    """Yield the results of each complete period."""
    policy, known = setup.policy, dict(zip(setup.names, setup.meta or [MetaData()] * len(setup.names), strict=True))
    readers = _Readers(setup)
    state, because, moves = AdmissionState(), "", Assignment({})
    if setup.start is not None:
        state = _started(setup, setup.start)
    steps = round(setup.every / setup.tick)
    for period in range(len(setup.rows) // steps):
        if policy is not None:
            state, decision = policy.decide(state, known)
            moves, because = decision.value, decision.because
        suspended = readers.redirect(moves, setup.names)
        rows = setup.rows[period * steps : (period + 1) * steps]
        readers.clear()
        for came in rows:
            readers.step(came)
        rates = rows.sum(axis=0) / setup.every
        if policy is not None:
            queues = {number: float(readers.queue[number]) for number in moves.readers}
            state = policy.observe(
                state, PeriodObservation(dict(zip(setup.names, rates.tolist(), strict=True)), queues)
            )
        yield Shown(
            time=(period + 1) * setup.every,
            readers=len(moves.readers) if policy is not None else setup.max_readers,
            fewest=fewest_bins(rates.tolist(), setup.capacity),
            redirected=len(moves.redirected),
            buffered=readers.buffered,
            delay=suspended,
            latency=readers.waited / max(float(rows.sum()), 1.0),
            latency_most=readers.longest,
            because=because,
        )


def _started(setup: Inputs, start: IntArray) -> AdmissionState:
    read: dict[int, list[str]] = {}
    for name, number in zip(setup.names, start.tolist(), strict=True):
        read.setdefault(number, []).append(name)
    return AdmissionState(readers=tuple(ReaderState(number, tuple(names)) for number, names in sorted(read.items())))


class _Readers:
    """Queues of readers, and of streams that are suspended."""

    def __init__(self, setup: Inputs) -> None:
        self.setup = setup
        self.served = setup.capacity * setup.tick
        self.queue = np.zeros(
            setup.max_readers + 1 if setup.policy is None or setup.policy.max_readers else setup.rows.shape[1] + 1
        )
        self.home = np.zeros(setup.rows.shape[1], np.int64) if setup.start is None else setup.start.copy()
        #: remaining seconds of suspension of each stream, and its rows that wait for its end
        self.suspended = np.zeros(setup.rows.shape[1])
        self.waiting = np.zeros(setup.rows.shape[1])
        self.read = 0.0
        self.clear()

    def clear(self) -> None:
        """Reset the sums of a period."""
        self.buffered = self.waited = self.longest = 0.0

    def redirect(self, assignment: Assignment, names: Sequence[str]) -> float:
        """Move streams; return the total seconds for which they are suspended."""
        number: Mapping[str, int] = {name: at for at, name in enumerate(names)}
        total = 0.0
        for move in assignment.moves:
            stream = number[move.stream]
            self.home[stream] = move.to
            if move.source is not None:
                self.suspended[stream] = self.setup.handover + self.queue[move.source] / self.setup.capacity
                total += float(self.suspended[stream])
        return total

    def step(self, came: FloatArray) -> None:
        """Advance by one tick."""
        held = self.suspended > 0
        self.buffered += float(came[held].sum())
        self.waited += float((self.waiting + came)[held].sum()) * self.setup.tick
        enter = np.where(held, 0.0, came + self.waiting)
        self.waiting = np.where(held, self.waiting + came, 0.0)
        self.suspended = np.maximum(self.suspended - self.setup.tick, 0.0)
        into = np.bincount(self.home, enter, minlength=len(self.queue))
        # A row waits for the rows before it, and on average for half of those of its own tick that are not served.
        after = np.maximum(self.queue + into - self.served, 0.0)
        wait = (self.queue + after) / 2 / self.setup.capacity
        self.waited += float(into @ wait)
        self.longest = max(self.longest, float(wait[into > 0].max(initial=0.0)), float(self.suspended.max(initial=0.0)))
        self.read += float((self.queue + into - after).sum())
        self.queue = after


def arrivals(times: IntArray, sources: IntArray, streams: int, seconds: float, tick: float = 0.5) -> FloatArray:
    """Return counts of rows, (ticks, streams), by their times in microseconds, up to `seconds`."""
    ticks = round(seconds / tick)
    at = times // round(tick * 1e6)
    inside = at < ticks
    counts = np.bincount(at[inside] * streams + sources[inside], minlength=ticks * streams)
    return counts.reshape(ticks, streams).astype(np.float64)
