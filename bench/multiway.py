"""Merging many inputs into one order: T-Gate and the columnar ready merge, with heapq, a lock and queues beside them.

    python -m bench.multiway [--quick] [--inputs N ...] [--tuples N]

T-Gate: two producer threads and one consumer, without the GIL. The columnar merge: pushes of `PUSH` tuples from all inputs.
MQ is the usual way (paper 2, section 5.3): a queue behind a lock per input, and a look at each queue for every tuple.
All take turns; medians of M tuples per wall second, and per CPU second of this process.
"""

from __future__ import annotations

import argparse
import heapq
import statistics
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.record import markdown_table, replace_between
from skypane.multiway import Ready, ReadyMerge, TGate
from skypane.types import IntArray

BATCH = 500
"""Tuples of one input that are inserted in a call."""
PUSH = 100_000

Inputs = Sequence[IntArray]


def inputs_of(count: int, tuples: int) -> list[IntArray]:
    """Return the times of each input, in order; all are about as fast."""
    rng = np.random.default_rng(count)
    each = tuples // count
    return [np.sort(rng.integers(0, 100 * each, each)) for _ in range(count)]


def by_tgate(inputs: Inputs) -> int:
    """Merge by T-Gate; return how many tuples came out."""
    gate = TGate(len(inputs), ready=Ready.LAST_HELD, room=len(inputs[0]))  # no producer waits for room
    size = max(20, BATCH * 20 // len(inputs))

    def produce(mine: range) -> None:
        at = dict.fromkeys(mine, 0)
        while at:
            for source in list(at):
                times = inputs[source][at[source] : at[source] + size]
                at[source] += gate.insert_tuples(source, times, times)
                if at[source] == len(inputs[source]):
                    del at[source]
                    gate.leave(source)

    half = len(inputs) // 2
    producers = [threading.Thread(target=produce, args=(mine,)) for mine in (range(half), range(half, len(inputs)))]
    for producer in producers:
        producer.start()
    done, total = 0, sum(map(len, inputs))
    while done < total:
        done += len(gate.get_ready_tuples(4_096).times)
    for producer in producers:
        producer.join()
    return done


def by_columns(inputs: Inputs) -> int:
    """Merge by columns."""
    merge = ReadyMerge(len(inputs), Ready.DEFINITION_1)
    state, done, each = merge.init(), 0, max(1, PUSH // len(inputs))
    length = len(inputs[0])
    for begin, end in pairwise([*range(0, length, each), length]):
        times = np.concatenate([mine[begin:end] for mine in inputs])
        owners = np.repeat(np.arange(len(inputs)), end - begin)
        state, ready = merge.push(state, pa.table({"payload": times}), times, owners)
        done += ready.num_rows
    _, rest = merge.leave(state, range(len(inputs)))
    return done + (0 if rest is None else rest.num_rows)


def by_heap(inputs: Inputs) -> int:
    """Merge by Python's heapq.merge, of lists that are complete."""
    return sum(1 for _ in heapq.merge(*(mine.tolist() for mine in inputs)))


def by_queues(inputs: Inputs) -> int:
    """Merge by queues behind locks: the least of all their heads, each time."""
    queues = [deque(mine.tolist()) for mine in inputs]
    locks, done = [threading.Lock() for _ in inputs], 0
    while True:
        least, of = None, -1
        for number, queue in enumerate(queues):
            with locks[number]:
                if queue and (least is None or queue[0] < least):
                    least, of = queue[0], number
        if of < 0:
            return done
        queues[of].popleft()
        done += 1


WAYS: dict[str, tuple[Callable[[Inputs], int], int]] = {
    "T-Gate": (by_tgate, 1),
    "columnar merge": (by_columns, 1),
    "heapq.merge": (by_heap, 4),
    "MQ in Python": (by_queues, 100),
}
"""Each way, and which part of the tuples it gets: the slow ones fewer."""


def line(count: int, tuples: int, rounds: int) -> list[str]:
    """Return a line of the table."""
    rates: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    for turn in range(rounds + 1):
        for way, (run, part) in WAYS.items():
            inputs = inputs_of(count, tuples // part)
            total = sum(map(len, inputs))
            wall, cpu = time.perf_counter(), time.process_time()
            assert run(inputs) == total
            taken = time.perf_counter() - wall, time.process_time() - cpu
            if turn:
                rates[way].append((total / taken[0] / 1e6, total / taken[1] / 1e6))
    medians = {way: [statistics.median(kind) for kind in zip(*found, strict=True)] for way, found in rates.items()}
    times = medians["columnar merge"][1] / medians["heapq.merge"][1]
    return [f"{count:,}", *(f"{wall:.2f} / {cpu:.2f}" for wall, cpu in medians.values()), f"{times:.1f}"]


def main() -> None:
    """Measure, print, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few tuples, nothing recorded")
    parser.add_argument("--inputs", type=int, nargs="+", default=[2, 20, 200, 1_000])
    parser.add_argument("--tuples", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    tuples, rounds = (200_000, 1) if arguments.quick else (arguments.tuples, arguments.rounds)
    lines = []
    for count in arguments.inputs:
        lines.append(line(count, tuples, rounds))
        print(lines[-1], flush=True)
    head = ["inputs", *(f"{way}, M/s wall / CPU" for way in WAYS), "columnar / heapq, CPU"]
    table = markdown_table(head, lines)
    print(table)
    if not arguments.quick:
        replace_between(Path("docs/multiway.md"), "multiway", table)


if __name__ == "__main__":
    main()
