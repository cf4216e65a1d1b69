"""The merge of many inputs into one order, and the designs of paper 2 that aggregate them.

    python -m measure.bench.multiway [--quick] [--inputs N ...] [--tuples N]

The merges are: T-Gate with two producer threads and one consumer, where "compiled" producers are loops without the GIL
and the others call from Python with a batch of an input at a time; the columnar merge, with pushes of `PUSH` tuples
from all inputs; heapq.merge and Java's PriorityQueue over heads of complete arrays. The designs run query k-OI of paper
2 (count by 243 meters, ten windows per tuple) on two producer threads and an output thread. All take turns; figures are
medians of M tuples per wall second and per CPU second of the process.
"""

from __future__ import annotations

import argparse
import heapq
import re
import shutil
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from measure.results.record import Comparison, Found, Table, Times
from skypane.kernels.compiled import kernel
from skypane.types import IntArray
from skypane_papers.multiway import Ready, ReadyMerge, TGate
from skypane_papers.multiway.kernels import tgate
from skypane_papers.multiway_runs import Run, measured

BATCH = 500
"""Tuples of one input that are inserted in a call."""
PUSH = 100_000
SEGMENT = 256
"""Nodes of a segment of T-Gate's arena."""
REST = 1e-4
"""Seconds that the consumer rests for which nothing is ready."""

Inputs = Sequence[IntArray]


def inputs_of(count: int, tuples: int) -> list[IntArray]:
    """Return the times of each input, in order; all are about as fast."""
    rng = np.random.default_rng(count)
    each = tuples // count
    return [np.sort(rng.integers(0, 100 * each, each)) for _ in range(count)]


def by_tgate(inputs: Inputs) -> int:
    """Merge by T-Gate, called from Python; return how many tuples came out."""
    gate = TGate(len(inputs), ready=Ready.LAST_HELD, room=len(inputs[0]))  # enough room that no producer waits
    size = _call(inputs)

    def produce(first: int, end: int) -> None:
        at = dict.fromkeys(range(first, end), 0)
        while at:
            for source in list(at):
                times = inputs[source][at[source] : at[source] + size]
                at[source] += gate.insert_tuples(source, times, times)
                if at[source] == len(inputs[source]):
                    del at[source]
                    gate.leave(source)

    return _merged(inputs, produce, lambda: len(gate.get_ready_tuples(4_096).times))


def by_compiled_tgate(inputs: Inputs) -> int:
    """Merge by T-Gate, its producers compiled too."""
    ring = -(-len(inputs[0]) // SEGMENT) + 2
    gate = tgate.new_gate(len(inputs), 1, ring, SEGMENT, tgate.LAST_HELD)
    table, size, columns = np.array(inputs), _call(inputs), [np.empty(4_096, np.int64) for _ in range(3)]
    return _merged(
        inputs,
        lambda first, end: insert_all(gate, first, end, table, size),
        lambda: tgate.get_ready_tuples(gate, 0, *columns),
    )


@kernel
def insert_all(gate: Any, first: int, end: int, times: Any, size: int) -> None:
    """Insert all tuples of some inputs, `size` of each in turn."""
    for begin in range(0, times.shape[1], size):
        for source in range(first, end):
            part = times[source, begin : begin + size]
            tgate.insert_tuples(gate, source, part, part)
    for source in range(first, end):
        tgate.leave_gate(gate, source)


def _call(inputs: Inputs) -> int:
    """Return how many tuples of one input are inserted in a call."""
    return max(20, BATCH * 20 // len(inputs))


def _merged(inputs: Inputs, produce: Callable[[int, int], None], take: Callable[[], int]) -> int:
    """Run two producers, each with half of the inputs, and a consumer."""
    half = len(inputs) // 2
    producers = [threading.Thread(target=produce, args=part) for part in ((0, half), (half, len(inputs)))]
    for producer in producers:
        producer.start()
    done, total = 0, sum(map(len, inputs))
    while done < total:
        count = take()
        done += count
        if not count:
            time.sleep(REST)
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


WAYS: dict[str, tuple[Callable[[Inputs], int], int]] = {
    "T-Gate, compiled": (by_compiled_tgate, 1),
    "T-Gate, called": (by_tgate, 1),
    "columnar merge": (by_columns, 1),
    "heapq.merge": (by_heap, 4),
}
"""Each way, and which part of the tuples it gets: the slow one fewer."""


OF_RECORDS = 16
"""The first Java with records."""


def compiling_java() -> str | None:
    """Return a Java that compiles records; None where there is none, as in a runtime alone."""
    if (java := shutil.which("java")) is None:
        return None
    done = subprocess.run([java, "--list-modules"], capture_output=True, text=True, check=False)  # noqa: S603
    compiler = re.search(r"^jdk\.compiler@(\d+)", done.stdout, re.MULTILINE)
    return java if compiler and int(compiler[1]) >= OF_RECORDS else None


def by_java(java: str, count: int, tuples: int) -> Times:
    """Return the seconds of Java's PriorityQueue, the best of five rounds; raise RuntimeError if its program fails."""
    program = Path(__file__).with_name("PriorityQueueMerge.java")
    done = subprocess.run(  # noqa: S603 - our own program
        [java, program, str(count), str(tuples)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{program.name} ended with {done.returncode}: {done.stderr[-400:]}")
    return Times(tuples // count * count / float(done.stdout) / 1e6)


def merging(count: int, tuples: int, rounds: int) -> Comparison:
    """Return all merges of so many inputs, in turn."""
    sides: dict[str, list[Times]] = {way: [] for way in (*WAYS, QUEUE)}
    rows = {way: tuples // part // count * count for way, (_, part) in WAYS.items()} | {QUEUE: tuples // count * count}
    java = compiling_java()
    for turn in range(rounds + 1):
        for way, (run, part) in WAYS.items():
            inputs = inputs_of(count, tuples // part)
            wall, cpu = time.perf_counter(), time.process_time()
            assert run(inputs) == rows[way]
            taken = Times(time.perf_counter() - wall, time.process_time() - cpu)
            if turn:
                sides[way].append(taken)
        if turn and java is not None:
            sides[QUEUE].append(by_java(java, count, tuples))
    measured = {way: found for way, found in sides.items() if found}
    missing = {way: "there is no Java with a compiler here" for way in sides if way not in measured}
    return Comparison("merge of inputs", f"{count:,} inputs", rows, "columnar merge", measured, missing)


QUEUE = "PriorityQueue"
RATIOS = (
    ("T-Gate, compiled", "heapq.merge"),
    ("T-Gate, compiled", QUEUE),
    ("columnar merge", "heapq.merge"),
    ("columnar merge", QUEUE),
)
"""Ways whose rates are divided by those of others in the same run."""
MERGES = [
    "inputs",
    *(f"{way}, M/s wall / CPU" for way in WAYS),
    f"{QUEUE}, M/s",
    *(f"{way.partition(',')[0].removesuffix(' merge')} / {other.partition('.')[0]}" for way, other in RATIOS),
]


def merge_line(found: Comparison) -> list[str]:
    """Return a line of the table of merges; a dash for what was not measured."""
    rates = {way: found.rate(way) / 1e6 for way in found.sides}
    cpus = {way: found.rows_of(way) / cpu / 1e6 for way in WAYS if (cpu := found.cpu(way))}
    return [
        found.case.removesuffix(" inputs"),
        *(f"{rates[way]:.2f} / {cpus[way]:.2f}" for way in WAYS),
        f"{rates[QUEUE]:.2f}" if QUEUE in rates else "-",
        *(f"{rates[way] / rates[other]:.1f}" if other in rates else "-" for way, other in RATIOS),
    ]


AGGREGATES = ("MQ", "MQLF", "TuMLSC", "TuMLMC-1", "WiML", "ColumnarTuMLSC", "ColumnarWiML")


def aggregating(count: int, tuples: int, rounds: int) -> list[str]:
    """Return a line of the table of designs."""
    runs: dict[str, list[Run]] = {design: [] for design in AGGREGATES}
    for _ in range(rounds):
        for design, found in runs.items():
            found.append(measured(design, "k-OI", count, tuples if design.startswith("Columnar") else tuples // 4))
    rates = {
        design: [statistics.median(run.tuples / seconds(run) / 1e6 for run in found) for seconds in (_wall, _cpu)]
        for design, found in runs.items()
    }
    times = rates["ColumnarWiML"][1] / rates["MQ"][1]
    return [f"{count:,}", *(f"{wall:.2f} / {cpu:.2f}" for wall, cpu in rates.values()), f"{times:.0f}"]


def _wall(run: Run) -> float:
    return run.wall


def _cpu(run: Run) -> float:
    return run.cpu


def main(argv: Sequence[str] | None = None) -> Found:
    """Measure, print, return the tables and the comparison of merges."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few tuples")
    parser.add_argument("--inputs", type=int, nargs="+", default=[2, 20, 200, 1_000])
    parser.add_argument("--tuples", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args(argv)
    tuples, rounds = (200_000, 1) if arguments.quick else (arguments.tuples, arguments.rounds)
    merges, designs = [], []
    for count in arguments.inputs:
        merges.append(merging(count, tuples, rounds))
        print(merge_line(merges[-1]), flush=True)
    for count in arguments.inputs:
        designs.append(aggregating(count, tuples, rounds))
        print(designs[-1], flush=True)
    head = ["inputs", *(f"{design}, M/s wall / CPU" for design in AGGREGATES), "ColumnarWiML / MQ, CPU"]
    tables = [
        Table("multiway.md", "multiway", MERGES, [merge_line(one) for one in merges]),
        Table("multiway.md", "designs", head, designs),
    ]
    print(*(table.text for table in tables), sep="\n")
    return [*tables, *merges]


if __name__ == "__main__":
    main()
