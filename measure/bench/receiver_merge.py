"""The merge of a receiver's inputs by the columnar merge and by T-Gate; and sorted runs of in_order functions.

    python -m measure.bench.receiver_merge [--quick] [--inputs N ...] [--lines N]

One thread, as in the receiver: a step gives the merge the times of the lines that have come from each input, and takes
the inputs of the lines that are ready, in order. Figures are nanoseconds of CPU per line, the median of rounds in turn;
lines are read and written alike in both ways, and are left out. The second table is the order of rows of 1,000 keys that
lie in sorted runs, as `in_order` and `collect_list` merge partials: the whole merge, and of it the order alone, by np.lexsort,
which they use, and by the radix sort of the columnar merge.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa

from measure.results.record import Found, Table
from skypane.kernels.merging import sorted_order
from skypane.multiway import ReadyMerge
from skypane.operators.aggregates.wide_states import InOrderPart
from skypane.types import IntArray
from skypane_papers.multiway import TGate

PAGE: Final = "multiway.md"
STEPS: Final = (1_000, 10_000, 100_000)
"""Lines of all inputs in a step: ten steps a second of an input list with so many lines in a tenth of a second."""
KEYS: Final = 1_000
RUNS: Final = (2, 16, 60)

Step = list[IntArray]
"""The times of each input."""


def steps_of(inputs: int, step: int, lines: int) -> list[Step]:
    """Return steps of inputs whose rates differ by a factor of up to ten."""
    rng = np.random.default_rng(inputs)
    shares = rng.uniform(0.1, 1.0, inputs)
    each = np.maximum(1, step * shares / shares.sum()).astype(int).tolist()
    return [
        [np.sort(rng.integers(begin * 1_000, (begin + 1) * 1_000, count)) for count in each]
        for begin in range(max(1, lines // sum(each)))
    ]


def by_columns(steps: list[Step]) -> Iterator[IntArray]:
    """Yield the inputs of the ready lines of each step, by the columnar merge, as the receiver calls it."""
    merge = ReadyMerge(len(steps[0]))
    state = merge.init()
    for step in steps:
        inputs, times = np.repeat(np.arange(len(step)), [len(one) for one in step]), np.concatenate(step)
        state, ready = merge.push(state, pa.table({"input": inputs, "time": times}), times, inputs)
        yield ready.column("input").to_numpy()
    _, rest = merge.leave(state, range(len(steps[0])))
    yield np.empty(0, np.int64) if rest is None else rest.column("input").to_numpy()


def by_tgate(steps: list[Step]) -> Iterator[IntArray]:
    """Yield the same by T-Gate."""
    gate = TGate(len(steps[0]), room=4 * max(len(one) for one in steps[0]) + 1_024)
    most = 4 * sum(len(one) for one in steps[0])
    for step in steps:
        for number, times in enumerate(step):
            assert gate.insert_tuples(number, times, times) == len(times)
        yield gate.get_ready_tuples(most).inputs
    for number in range(len(steps[0])):
        gate.leave(number)
    while len(rest := gate.get_ready_tuples(most).inputs):
        yield rest


WAYS: Final[dict[str, Callable[[list[Step]], Iterator[IntArray]]]] = {"columnar": by_columns, "T-Gate": by_tgate}


def cpu(call: Callable[[], object]) -> float:
    """Return the CPU seconds of a call."""
    begin = time.process_time()
    call()
    return time.process_time() - begin


def _run(way: Callable[[list[Step]], Iterator[IntArray]], steps: list[Step]) -> None:
    for _ in way(steps):
        pass


def merging(inputs: int, step: int, lines: int, rounds: int) -> list[str]:
    """Return a line of the table of merges."""
    steps = steps_of(inputs, step, lines)
    total = sum(len(one) for each in steps for one in each)
    first, second = (np.concatenate(list(way(steps))) for way in WAYS.values())
    assert len(first) == total
    assert (first == second).all()
    spent: dict[str, list[float]] = {name: [] for name in WAYS}
    for _ in range(rounds):
        for name, way in WAYS.items():
            spent[name].append(cpu(partial(_run, way, steps)) / total * 1e9)
    medians = [statistics.median(found) for found in spent.values()]
    return [f"{inputs:,}", f"{step:,}", *(f"{one:,.0f}" for one in medians), f"{medians[1] / medians[0]:.1f}"]


def ordering(runs: int, rows: int, rounds: int) -> list[str]:
    """Return a line of the table of orders: `runs` runs, each sorted by key and time."""
    rng = np.random.default_rng(runs)
    keys, times = [], []
    for _ in range(runs):
        key, when = rng.integers(0, KEYS, rows // runs), rng.integers(0, 3_600_000_000, rows // runs)
        order = np.lexsort((when, key))
        keys.append(key[order])
        times.append(when[order])
    key, when = np.concatenate(keys), np.concatenate(times)
    assert (np.lexsort((when, key)) == _by_key(key, when)).all()
    part = InOrderPart("t", ("v",), len, pa.int64())
    rows_of = [pa.table({"t": one, "v": rng.normal(size=len(one))}) for one in times]
    states = pa.concat_arrays([part.lift(table, one, KEYS) for table, one in zip(rows_of, keys, strict=True)])
    owners = np.tile(np.arange(KEYS), runs)
    merged, by_lexsort, by_radix = [], [], []
    for _ in range(rounds):
        merged.append(cpu(lambda: part.combine(states, owners, KEYS)) / len(key) * 1e9)
        by_lexsort.append(cpu(lambda: np.lexsort((when, key))) / len(key) * 1e9)
        by_radix.append(cpu(lambda: _by_key(key, when)) / len(key) * 1e9)
    medians = [statistics.median(found) for found in (merged, by_lexsort, by_radix)]
    return [f"{runs:,}", *(f"{one:,.0f}" for one in medians), f"{medians[1] / medians[2]:.1f}"]


def _by_key(keys: IntArray, times: IntArray) -> IntArray:
    """Return the order by (key, time, place): sorted_order sorts by its second column first."""
    return sorted_order(keys, times)


def main(argv: Sequence[str] | None = None) -> Found:
    """Measure, print, return the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few lines")
    parser.add_argument("--inputs", type=int, nargs="+", default=[3, 20, 300])
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args(argv)
    lines, rounds = (100_000, 1) if arguments.quick else (arguments.lines, arguments.rounds)
    tables = [
        Table(
            PAGE,
            "received",
            ["inputs", "lines a step", "columnar, ns a line", "T-Gate, ns a line", "T-Gate / columnar"],
            [merging(inputs, step, lines, rounds) for inputs in arguments.inputs for step in STEPS],
        ),
        Table(
            PAGE,
            "runs",
            ["runs", "merge of partials, ns a row", "lexsort, ns a row", "radix sort, ns a row", "lexsort / radix"],
            [ordering(runs, lines, rounds) for runs in RUNS],
        ),
    ]
    print(*(table.text for table in tables), sep="\n")
    return [*tables]


if __name__ == "__main__":
    main()
