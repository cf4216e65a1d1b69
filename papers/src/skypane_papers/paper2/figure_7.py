"""Figure 7: sorting many inputs with a T-Gate, and with a skip list that does not know which tuples are ready."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

import numpy as np
import pandas as pd

from skypane.types import FloatArray, IntArray
from skypane_papers.figure import Claim, Figure, Finding, Plot
from skypane_papers.multiway import Ready, SkipList, TGate
from skypane_papers.multiway_runs import BACKOFF, CALL, PRODUCERS
from skypane_papers.rows import at, only

INPUTS: Final = (2, 20, 200)
ROOM: Final = 8_192
TAKEN: Final = 1_024
LISTS: Final[dict[str, Callable[[int], TGate]]] = {
    "skip list": lambda inputs: SkipList(inputs, room=ROOM),
    "T-Gate": lambda inputs: TGate(inputs, ready=Ready.LAST_HELD, room=ROOM),
}


class _Producer:
    """Inserts its inputs' tuples in turn; keeps up to which time it had inserted them when, and its CPU seconds."""

    def __init__(self, gate: TGate, inputs: dict[int, IntArray]) -> None:
        self._gate = gate
        self._inputs = inputs
        self.sent: list[tuple[float, int]] = []
        self.seconds = 0.0

    def __call__(self) -> None:
        begin = time.thread_time()
        done, size = dict.fromkeys(self._inputs, 0), max(1, 5 * CALL // len(self._inputs))
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
            if not moved:
                time.sleep(BACKOFF)
        self.seconds = time.thread_time() - begin


def sorted_by(name: str, inputs: int, tuples: int) -> dict[str, object]:
    """Return a row: tuples a second, CPU nanoseconds of each kind of thread for a tuple, and latency."""
    rng = np.random.default_rng(inputs)
    times = [np.sort(rng.integers(0, 100 * tuples, tuples // inputs)) for _ in range(inputs)]
    gate = LISTS[name](inputs)
    producers = [
        _Producer(gate, {source: times[source] for source in range(first, inputs, PRODUCERS)})
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
    return {
        "inputs": inputs, "list": name, "tuples/s": total / wall, "capacity": total / max(adding / inputs, cpu),
        "insert, ns": 1e9 * adding / total, "take, ns": 1e9 * cpu / total, "latency ms": 1e3 * float(np.median(late)),
    }  # fmt: skip


def latencies(came: list[tuple[float, int]], sent: list[tuple[float, int]]) -> FloatArray:
    """Return, of the last tuple of each call, the seconds from the call to when it was taken."""
    taken, until = (np.array(column) for column in zip(*came, strict=True))
    begun, last = (np.array(column) for column in zip(*sent, strict=True))
    late: FloatArray = taken[np.searchsorted(until, last)] - begun
    return late


def measure(quick: bool) -> pd.DataFrame:
    """Return a row for each list and number of inputs: the median of three runs, in turn."""
    found = []
    for name in LISTS:
        sorted_by(name, 2, 2_000)  # compiles the kernels
    for inputs in INPUTS[:1] if quick else INPUTS:
        for _ in range(1 if quick else 3):
            found += [sorted_by(name, inputs, 20_000 if quick else 500_000) for name in LISTS]
    return pd.DataFrame(found).groupby(["inputs", "list"], sort=False, as_index=False).median()


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows, rounded."""
    return rows.assign(**{name: rows[name].round(-3) for name in ("tuples/s", "capacity")}).round(2)


def _grows(rows: pd.DataFrame, name: str, figure: str) -> float:
    few, many = int(rows["inputs"].min()), int(rows["inputs"].max())
    return at(rows, figure, list=name, inputs=many) / at(rows, figure, list=name, inputs=few)


def _linear(rows: pd.DataFrame) -> Finding:
    numbers = rows["inputs"].drop_duplicates()
    asking = [
        at(rows, "take, ns", list="skip list", inputs=inputs) - at(rows, "take, ns", list="T-Gate", inputs=inputs)
        for inputs in numbers
    ]
    told = ", ".join(f"{ns:.0f} ns a tuple with {inputs} inputs" for ns, inputs in zip(asking, numbers, strict=True))
    return Finding(f"asking takes the consumer {told}", asking[-1] > 3 * max(asking[0], 1))


def _capacity(rows: pd.DataFrame) -> Finding:
    two = [_grows(rows, name, "capacity") for name in LISTS]
    return Finding(f"the skip list's changes by {two[0]:.2f}, T-Gate's by {two[1]:.2f}", two[0] < 1 < two[1])


def _faster(rows: pd.DataFrame) -> Finding:
    many = only(rows, inputs=20 if (rows["inputs"] == 20).any() else int(rows["inputs"].max()))
    rates = [at(many, "capacity", list=name) / 1e6 for name in LISTS]
    return Finding(
        f"{rates[0]:.1f} and {rates[1]:.1f} M tuples/s: {rates[1] / rates[0]:.1f} times", rates[1] > rates[0]
    )


def _late(rows: pd.DataFrame) -> Finding:
    many = only(rows, inputs=20 if (rows["inputs"] == 20).any() else int(rows["inputs"].max()))
    late = [at(many, "latency ms", list=name) for name in LISTS]
    return Finding(f"{late[0]:.1f} and {late[1]:.1f} ms", late[1] < late[0])


FIGURE = Figure(
    title="sorting by a skip list and by a T-Gate",
    regime=(
        "Two real threads that insert and one that takes, as fast as they go, on this machine. Both lists are one kernel: the skip list is "
        "T-Gate's without its rule, so that the consumer reads all inputs for each tuple; the paper takes Java's ConcurrentSkipListMap. "
        "capacity: tuples a second as the busiest thread would allow with a core for each, one for each input, by CPU seconds. Latency is "
        "from the call that inserts a tuple to its being taken, with full lists."
    ),
    measure=measure,
    claims=(
        Claim("to check for ready tuples costs the skip list time in proportion to the inputs", _linear),
        Claim(
            "with more inputs the skip list's throughput falls, T-Gate's grows",
            _capacity,
            "here the consumer is the busiest thread, and the more inputs, the less of what it reads next is in its cache",
        ),
        Claim("with 20 inputs T-Gate sorts 1.5 times as many: 2.2 M and 1.5 M tuples/s", _faster),
        Claim(
            "and sooner: 1 ms, and 1.6 ms for the skip list",
            _late,
            "inserting keeps two cores busy, and lists are as full as they may be: what a tuple waits for is the turn of other inputs",
        ),
    ),
    plots=(
        Plot("throughput", "tuples per second, a core for each thread", "inputs", "capacity", "list", log="xy"),
        Plot("latency", "latency (ms)", "inputs", "latency ms", "list", log="xy"),
    ),
    summary=summary,
)
