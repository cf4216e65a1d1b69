"""Figure 7: sorting many inputs with a T-Gate, and with a skip list that does not know which tuples are ready."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from skypane.types import FloatArray, IntArray
from skypane_papers.figure import TABLE, Cause, Claim, Figure, Finding, Plot
from skypane_papers.multiway import Ready, SkipList, TGate
from skypane_papers.multiway_runs import BACKOFF, CALL, PAPERS, PRODUCERS, SHARE
from skypane_papers.rows import at, only

INPUTS: Final = (2, 10, 20, 200)
ROUNDS: Final = 3
GAIN: Final = 1.25
"""How much more T-Gate has to sort: half of the paper's gain."""
ROOM: Final = 8_192
TAKEN: Final = 1_024
SMALL: Final = Cause("compiled, to check 20 inputs takes the consumer too little to be seen beside the rest", TABLE)
LISTS: Final[dict[str, Callable[[int], TGate]]] = {
    "skip list": lambda inputs: SkipList(inputs, room=ROOM),
    "T-Gate": lambda inputs: TGate(inputs, ready=Ready.LAST_HELD, room=ROOM),
}


class _Producer:
    """Inserts its inputs' tuples in turn, at full speed or at a rate; keeps up to which time it had inserted them when, and its CPU seconds.

    call  tuples of all its inputs in the calls of a round
    """

    def __init__(self, gate: TGate, inputs: dict[int, IntArray], rate: float | None, call: int) -> None:
        self._gate = gate
        self._inputs = inputs
        self._rate = rate
        self._call = call
        self.sent: list[tuple[float, int]] = []
        self.seconds = 0.0

    def __call__(self) -> None:
        begin, since, total = time.thread_time(), time.perf_counter(), 0
        done, size = dict.fromkeys(self._inputs, 0), max(1, self._call // len(self._inputs))
        while done:
            moved = 0
            for source in list(done):
                times = self._inputs[source]
                if done[source] == len(times):
                    self._gate.leave(source)
                    del done[source]
                    continue
                part, now = times[done[source] : done[source] + size], time.perf_counter()
                count = self._gate.insert_tuples(source, part, part)
                done[source] += count
                moved += count
                if count:
                    self.sent.append((now, int(part[count - 1])))
            total += moved
            ahead = 0.0 if self._rate is None else total / self._rate - (time.perf_counter() - since)
            if ahead > 0 or not moved:
                time.sleep(max(ahead, BACKOFF))
        self.seconds = time.thread_time() - begin


def sorted_by(name: str, inputs: int, tuples: int, seed: int = 0) -> dict[str, object]:
    """Return a row: tuples a second, CPU nanoseconds of each kind of thread for a tuple, and latency, full and at a share of the rate."""
    full = _run(name, inputs, tuples, seed)
    slower = _run(name, inputs, tuples, seed, SHARE * full.tuples / full.wall)
    return {
        "inputs": inputs, "list": name, "tuples/s": full.tuples / full.wall, "capacity": full.tuples / max(full.adding / inputs, full.taking),
        "insert, ns": 1e9 * full.adding / full.tuples, "take, ns": 1e9 * full.taking / full.tuples,
        "latency, full, ms": full.late, "latency ms": slower.late,
    }  # fmt: skip


class _Sorted(NamedTuple):
    """Tuples, wall seconds, CPU seconds of the producers and of the consumer, and the median latency in ms."""

    tuples: int
    wall: float
    adding: float
    taking: float
    late: float


def _run(name: str, inputs: int, tuples: int, seed: int, rate: float | None = None) -> _Sorted:
    rng = np.random.default_rng((seed, inputs))
    times = [np.sort(rng.integers(0, 100 * tuples, tuples // inputs)) for _ in range(inputs)]
    gate = LISTS[name](inputs)
    each, call = (None, 5 * CALL) if rate is None else (rate / PRODUCERS, CALL)
    producers = [
        _Producer(gate, {source: times[source] for source in range(first, inputs, PRODUCERS)}, each, call)
        for first in range(PRODUCERS)
    ]
    threads = [threading.Thread(target=producer) for producer in producers]
    wall, cpu = time.perf_counter(), time.thread_time()
    for thread in threads:
        thread.start()
    came, left = [], sum(map(len, times))
    while left:
        found = gate.get_ready_tuples(TAKEN).times
        if len(found):
            came.append((time.perf_counter(), int(found[-1])))
            left -= len(found)
        else:
            time.sleep(BACKOFF)
    wall, cpu = time.perf_counter() - wall, time.thread_time() - cpu
    for thread in threads:
        thread.join()
    adding, total = sum(producer.seconds for producer in producers), sum(map(len, times))
    late = latencies(came, [one for producer in producers for one in producer.sent])
    return _Sorted(total, wall, adding, cpu, 1e3 * float(np.median(late)))


def latencies(came: list[tuple[float, int]], sent: list[tuple[float, int]]) -> FloatArray:
    """Return, of the last tuple of each call, the seconds from the call to when it was taken."""
    taken, until = (np.array(column) for column in zip(*came, strict=True))
    begun, last = (np.array(column) for column in zip(*sent, strict=True))
    late: FloatArray = taken[np.searchsorted(until, last)] - begun
    return late


def measure(quick: bool, seed: int = 0) -> pd.DataFrame:
    """Return a row for each round, number of inputs and list; the lists are measured in turn."""
    for name in LISTS:
        sorted_by(name, 2, 2_000)  # compiles the kernels
    found = [
        {"round": turn} | sorted_by(name, inputs, 20_000 if quick else 500_000, seed)
        for turn in range(1 if quick else ROUNDS)
        for inputs in (INPUTS[:1] if quick else INPUTS)
        for name in LISTS
    ]
    return pd.DataFrame(found)


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the medians of the rounds, rounded."""
    middle = _middle(rows)
    return middle.assign(**{name: middle[name].round(-3) for name in ("tuples/s", "capacity")}).round(2)


def _middle(rows: pd.DataFrame) -> pd.DataFrame:
    rounds = rows.drop(columns="round").groupby(["inputs", "list"], sort=False, as_index=False)
    return rounds.median(numeric_only=True)


def _most(rows: pd.DataFrame) -> int:
    """Return the most inputs up to the paper's."""
    return int(rows.loc[rows["inputs"] <= PAPERS, "inputs"].max())


def _asking(rows: pd.DataFrame, most: int) -> Finding:
    """Return what the consumer of the skip list takes longer for a tuple than T-Gate's, up to so many inputs."""
    middle = _middle(rows)
    asking = [
        at(middle, "take, ns", list="skip list", inputs=inputs) - at(middle, "take, ns", list="T-Gate", inputs=inputs)
        for inputs in (int(rows["inputs"].min()), most)
    ]
    told = f"{asking[0]:.0f} ns a tuple with {rows['inputs'].min()} inputs, {asking[1]:.0f} with {most}"
    return Finding(f"asking takes the consumer {told}", asking[1] > 3 * max(asking[0], 1))


def _linear(rows: pd.DataFrame) -> Finding:
    return _asking(rows, _most(rows))


def _linear_beyond(rows: pd.DataFrame) -> Finding:
    return _asking(rows, int(rows["inputs"].max()))


def _grown(rows: pd.DataFrame, name: str, most: int) -> float:
    middle, few = _middle(rows), int(rows["inputs"].min())
    return at(middle, "capacity", list=name, inputs=most) / at(middle, "capacity", list=name, inputs=few)


def _told(rows: pd.DataFrame, name: str) -> str:
    numbers = dict.fromkeys((_most(rows), int(rows["inputs"].max())))
    return ", ".join(f"{_grown(rows, name, inputs):.2f} times with {inputs}" for inputs in numbers)


def _falls(rows: pd.DataFrame) -> Finding:
    return Finding(f"{_told(rows, 'skip list')}, of that with 2", _grown(rows, "skip list", _most(rows)) < 1)


def _grows(rows: pd.DataFrame) -> Finding:
    middle, most = _middle(rows), _most(rows)
    few = at(middle, "insert, ns", list="T-Gate", inputs=2) / 2
    many = at(middle, "take, ns", list="T-Gate", inputs=most)
    ours = f"{_told(rows, 'T-Gate')}; with 2 inputs each producer takes {few:.0f} ns a tuple, with {most} the consumer {many:.0f} ns"
    return Finding(ours, _grown(rows, "T-Gate", most) > 1)


def _faster(rows: pd.DataFrame) -> Finding:
    many = only(_middle(rows), inputs=_most(rows))
    rates = [at(many, "capacity", list=name) / 1e6 for name in LISTS]
    gain = rates[1] / rates[0]
    return Finding(f"{rates[0]:.1f} and {rates[1]:.1f} M tuples/s: {gain:.1f} times", gain > GAIN)


def _sooner(rows: pd.DataFrame) -> Finding:
    many = only(rows, inputs=_most(rows))
    late = {name: only(many, list=name)["latency ms"] for name in LISTS}
    full = [only(many, list=name)["latency, full, ms"].median() for name in LISTS]
    told = ", ".join(f"{name} {ms.median():.2f} ({ms.min():.2f} to {ms.max():.2f}) ms" for name, ms in late.items())
    ours = f"at {SHARE:.0%} of the rate {told}; with full lists {full[0]:.1f} and {full[1]:.1f} ms"
    return Finding(ours, bool(late["T-Gate"].max() < late["skip list"].min()))


FIGURE = Figure(
    title="sorting by a skip list and by a T-Gate",
    regime=(
        "Two real threads that insert and one that takes, as fast as they go, on this machine. Both lists are one kernel: the skip list is "
        "T-Gate's without its rule, so that the consumer reads all inputs for each tuple; the paper takes Java's ConcurrentSkipListMap. "
        "capacity: tuples a second as the busiest thread would allow with a core for each, one for each input, by CPU seconds. Latency is "
        f"from the call that inserts a tuple to its being taken, with full lists, and at {SHARE:.0%} of each list's rate. Medians of {ROUNDS} "
        f"rounds. The paper's text names {PAPERS} inputs at most; 200 are ours."
    ),
    measure=measure,
    seeds=5,
    timing=True,
    claims=(
        Claim("to check for ready tuples costs the skip list time in proportion to the inputs", _linear, SMALL),
        Claim("(ours) so it does with 200 inputs", _linear_beyond),
        Claim("with more inputs the skip list's throughput falls", _falls),
        Claim(
            "and T-Gate's grows",
            _grows,
            Cause(
                "with many inputs the one consumer is the busiest thread, and takes a tuple no faster than each of two producers inserts one",
                TABLE,
            ),
        ),
        Claim(
            f"with 20 inputs T-Gate sorts 1.5 times as many: 2.2 M and 1.5 M tuples/s (here: at least {GAIN} times)",
            _faster,
            SMALL,
        ),
        Claim("and sooner: 1 ms, and 1.6 ms for the skip list", _sooner),
    ),
    plots=(
        Plot(
            "throughput",
            "first round: tuples per second, a core for each thread",
            "inputs",
            "capacity",
            "list",
            {"round": 0},
            log="xy",
        ),
        Plot("latency", "first round: latency (ms)", "inputs", "latency ms", "list", {"round": 0}, log="xy"),
    ),
    summary=summary,
)
