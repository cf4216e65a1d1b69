"""Run a design of the multiway aggregate on threads, as in paper 2: producers, update threads and an output thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from skypane.types import FloatArray, IntArray
from skypane.workloads.content.keys import zipf_shares
from skypane_papers.multiway import MQ, MQLF, Aggregation, ColumnarTuMLSC, ColumnarWiML, Multiway, TuMLMC, TuMLSC, WiML

KEYS: Final = {"meters": 243, "songs": 40_000, "one": 1}
"""Number of keys by data; "one" is not of the paper: a single key, for windows that cost next to nothing."""
PAPERS: Final = 20
"""The most inputs that the paper's text names: its claims are judged up to there, and more are ours."""
SHARE: Final = 0.8
"""Rate at which latency is measured, as a share of the highest that was taken in the same round."""
PRODUCERS: Final = 2
"""Number of sending threads; the paper has one per input, on 24 logical cores."""
PER_TICK: Final = 7_000
"""Tuples of all inputs per unit of event time; a window of the paper's queries has 140,000 to 280,000 tuples."""
BACKOFF: Final = 1e-4
"""Seconds that a thread without work sleeps."""
CALL: Final = 2_000
"""Tuples of all inputs of a producer in the calls of one round; columnar designs take ten times as many, in batches."""

DESIGNS: Final[dict[str, Callable[[int, Aggregation], Multiway]]] = {
    "MQ": lambda inputs, what: MQ(inputs, what, room=16_384),
    "MQLF": lambda inputs, what: MQLF(inputs, what, room=16_384),
    "TuMLSC": lambda inputs, what: TuMLSC(inputs, what, room=16_384),
    "WiML": WiML,
    "ColumnarTuMLSC": ColumnarTuMLSC,
    "ColumnarWiML": lambda inputs, what: ColumnarWiML(inputs, what, threads=PRODUCERS),
}


class Query(NamedTuple):
    """A query of table 2: its data, windows and function.

    words  of a comment, for a function that reads it: the longer, the more the function costs
    """

    data: str
    size: int
    advance: int
    function: str
    where: str = ""
    words: int = 10

    def aggregation(self) -> Aggregation:
        """Return the aggregation; times are in thousandths of the paper's unit."""
        comments = texts(self.words) if self.where else None
        size, advance = self.size * 1_000, self.advance * 1_000
        return Aggregation(size, advance, self.function, KEYS[self.data], self.where, comments)


QUERIES: Final = {
    "k-OS": Query("meters", 30, 3, "first"),
    "K-OS": Query("songs", 30, 3, "first"),
    "w-OS": Query("meters", 20, 2, "first"),
    "W-OS": Query("meters", 40, 2, "first"),
    "f-OS": Query("songs", 20, 2, "first", "mail"),
    "F-OS": Query("songs", 20, 2, "first", "mail or ip"),
    "k-OI": Query("meters", 30, 3, "count"),
    "K-OI": Query("songs", 30, 3, "count"),
    "w-OI": Query("meters", 20, 2, "avg"),
    "W-OI": Query("meters", 40, 2, "avg"),
    "f-OI": Query("songs", 20, 2, "count", "mail"),
    "F-OI": Query("songs", 20, 2, "count", "mail or ip"),
}
"""The twelve queries of table 2."""

S_MERGE: Final = Query("one", 1_000_000_000, 1_000_000_000, "count")
"""One window of one key: what remains of the output thread's work is to merge the inputs."""
WORDS: Final = "great tune love this drop at the bass again mix so deep more please".split()


@cache
def texts(words: int) -> pa.StringArray:
    """Return 10,000 comments of that many words; a tenth contain a mail address, another tenth an IP address."""
    rng = np.random.default_rng(2)
    found = []
    for number in range(10_000):
        comment = [WORDS[at] for at in rng.integers(0, len(WORDS), words).tolist()]
        if number % 10 == 0:
            comment[words // 2] = f"listener{number}@mail.example.org"
        elif number % 10 == 1:
            comment[words // 2] = f"10.{number % 250}.{number % 199}.7"
        found.append(" ".join(comment))
    return pa.array(found)


Columns = tuple[IntArray, IntArray, IntArray]
"""Times, keys and values of an input."""


@lru_cache(maxsize=2)
def streams(query: Query, inputs: int, tuples: int, seed: int = 0) -> list[Columns]:
    """Return inputs of about equal rates; the popularity of songs is Zipf-distributed, that of meters uniform."""
    rng = np.random.default_rng(seed)
    each, keys = tuples // inputs, KEYS[query.data]
    shares = zipf_shares(keys, 1.0) if query.data == "songs" else None
    span = 1_000 * tuples // PER_TICK
    most = 10_000 if query.where else 5_000
    return [
        (np.sort(rng.integers(0, span, each)), rng.choice(keys, each, p=shares), rng.integers(0, most, each))
        for _ in range(inputs)
    ]


@dataclass(frozen=True)
class Run:
    """Measurements of a run: tuples, wall and CPU seconds in all and by kind of thread, and the delays of winsets.

    late  seconds from the start of the call that completed a winset to its delivery
    """

    tuples: int
    wall: float
    cpu: float
    adding: float
    updating: float
    output: float
    late: FloatArray

    @property
    def rate(self) -> float:
        """Tuples per wall second."""
        return self.tuples / self.wall

    def capacity(self, inputs: int) -> float:
        """Return the tuples per second that the busiest thread allows, with one thread per input and core."""
        return self.tuples / max(self.adding / inputs, self.output)


class _Sent(NamedTuple):
    """Progress of a producer on an input: the wall clock of each call, and the event time up to which it has sent."""

    wall: list[float]
    time: list[int]


class _Producer:
    """Sends the tuples of its inputs in turn, at full speed or at a rate, and records its progress."""

    def __init__(self, design: Multiway, inputs: list[Columns], mine: range, rate: float | None) -> None:
        self._design = design
        self._inputs = inputs
        self._mine = mine
        self._rate = rate
        self._call = 10 * CALL if isinstance(design, ColumnarTuMLSC | ColumnarWiML) else CALL
        self.sent = {source: _Sent([], []) for source in mine}
        self.seconds = 0.0

    def __call__(self) -> None:
        at, size = dict.fromkeys(self._mine, 0), max(1, self._call // len(self._mine))
        begin, total = time.perf_counter(), 0
        while at:
            moved = 0
            for source in list(at):
                done = self._send(source, at[source], size)
                at[source] += done
                moved += done
                if at[source] == len(self._inputs[source][0]):
                    del at[source]
            total += moved
            ahead = 0.0 if self._rate is None else total / self._rate - (time.perf_counter() - begin)
            if ahead > 0 or not moved:
                time.sleep(max(ahead, BACKOFF))
        self.seconds = time.thread_time()

    def _send(self, source: int, begin: int, size: int) -> int:
        times, keys, values = (column[begin : begin + size] for column in self._inputs[source])
        now = time.perf_counter()
        done = self._design.add(source, times, keys, values)
        if done:
            self._note(source, now, int(times[done - 1]))
        if begin + done == len(self._inputs[source][0]):
            self._note(source, time.perf_counter(), np.iinfo(np.int64).max)
            self._design.leave(source)
        return done

    def _note(self, source: int, wall: float, until: int) -> None:
        self.sent[source].wall.append(wall)
        self.sent[source].time.append(until)


class _Updater:
    """An update thread."""

    def __init__(self, design: Multiway, worker: int) -> None:
        self._design = design
        self._worker = worker
        self.seconds = 0.0

    def __call__(self) -> None:
        while self._design.work(self._worker):
            time.sleep(0)  # let the thread run for which this one waits
        self.seconds = time.thread_time()


def run(design: Multiway, inputs: list[Columns], producers: int = PRODUCERS, rate: float | None = None) -> Run:
    """Send all inputs, divided among threads, at full speed or at `rate` tuples/s in all; return the measurements."""
    number = min(producers, len(inputs))
    share = None if rate is None else rate / number
    senders = [_Producer(design, inputs, range(first, len(inputs), number), share) for first in range(number)]
    updaters = [_Updater(design, worker) for worker in range(design.workers)]
    bodies: list[Callable[[], None]] = [*senders, *updaters]
    threads = [threading.Thread(target=body) for body in bodies]
    begin, cpu, own = time.perf_counter(), time.process_time(), time.thread_time()
    for thread in threads:
        thread.start()
    delivered: list[tuple[float, int]] = []
    alive = True
    while alive:
        alive = any(thread.is_alive() for thread in threads)
        while (winset := design.next_winset()) is not None:
            delivered.append((time.perf_counter(), winset.start + design.aggregation.size))
        time.sleep(BACKOFF)
    wall, cpu, own = time.perf_counter() - begin, time.process_time() - cpu, time.thread_time() - own
    progress = [sent for sender in senders for sent in sender.sent.values()]
    late = [at - max(_first_beyond(sent, end) for sent in progress) for at, end in delivered]
    return Run(
        tuples=sum(len(times) for times, _, _ in inputs), wall=wall, cpu=cpu, output=own, late=np.array(late),
        adding=sum(sender.seconds for sender in senders), updating=sum(updater.seconds for updater in updaters),
    )  # fmt: skip


def _first_beyond(sent: _Sent, end: int) -> float:
    """Return the start of the call that sent an input's first tuple at or after `end`, or the end of the input."""
    return sent.wall[int(np.searchsorted(np.array(sent.time), end))]


@cache
def _warmed(design: str, query: Query) -> None:
    run(made(design, query, 2), streams(query, 2, 4_000))


def made(design: str, query: Query, inputs: int) -> Multiway:
    """Return a design by its name; that of TuMLMC ends with the number of update threads, as in TuMLMC-2."""
    what = query.aggregation()
    if design.startswith("TuMLMC"):
        return TuMLMC(inputs, what, workers=int(design.rpartition("-")[2]), room=16_384)
    return DESIGNS[design](inputs, what)


def measured(
    design: str, query: Query | str, inputs: int, tuples: int, rate: float | None = None, *, seed: int = 0
) -> Run:
    """Run a design on a query, or on one of the twelve by its name, after a short run that compiles it."""
    asked = QUERIES[query] if isinstance(query, str) else query
    _warmed(design, asked)
    return run(made(design, asked, inputs), streams(asked, inputs, tuples, seed), rate=rate)
