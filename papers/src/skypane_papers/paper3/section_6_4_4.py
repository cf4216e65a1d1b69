"""Section 6.4.4: the cost of a tuple at a split node, with and without keeping the load balanced."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from time import process_time
from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa

from skypane.control.keys import FrequencyAware, HashRing, SpaceSaving, basic
from skypane.control.splitting import POLICIES
from skypane.control.splitting.routing import Routing
from skypane.control.splitting.splitting_policy import SplittingSample, UpcomingBatch
from skypane.types import IntArray
from skypane.workloads.cabs import Cabs
from skypane_papers.figure import TABLE, Cause, Claim, Figure, Finding, Plot
from skypane_papers.rows import at

NODES: Final = 16
BATCH: Final = 100_000
SAMPLE: Final = 16
"""One tuple in so many is counted by the sketch."""
CUT: Final = 100
SLIDE: Final = 1_000_000
"""Length of a pane in microseconds."""
REPEATS: Final = 9

Router = Callable[[pa.RecordBatch], IntArray]
"""Returns the node of each row of a batch."""


def by_basic_hashing() -> Router:
    """Return a router of each key by its hash modulo the nodes."""
    return lambda batch: basic(_keys(batch), NODES)


@dataclass
class FrequencyAwareRouter:
    """Counts a sample of the keys, and cuts the most frequent ones of the batches before."""

    def __post_init__(self) -> None:
        self.sketch, self.ring = SpaceSaving(2_048), HashRing(tuple(range(NODES)))
        self.frequencies = self.sketch.init()

    def __call__(self, batch: pa.RecordBatch) -> IntArray:
        keys = _keys(batch)
        plan = FrequencyAware(CUT).decide(self.frequencies, self.ring)
        self.frequencies = self.sketch.observe(self.frequencies, keys[::SAMPLE])
        return plan.route(keys)


@dataclass
class PaneRouter:
    """Routes panes by a splitting policy, which gets the number of rows of each."""

    policy_name: str

    def __post_init__(self) -> None:
        self.policy = POLICIES[self.policy_name]
        self.state = self.policy.init()

    def __call__(self, batch: pa.RecordBatch) -> IntArray:
        panes = batch["time"].cast(pa.int64()).to_numpy() // SLIDE
        if self.policy_name == "PB_RR":
            turns: IntArray = panes % NODES
            return turns
        starts = np.flatnonzero(np.diff(panes, prepend=panes[0] - 1))  # batches are in order
        numbers, counts = panes[starts], np.diff(starts, append=len(panes))
        known = UpcomingBatch(
            dict(zip(numbers.tolist(), counts.tolist(), strict=True)), NODES, open_from=int(numbers[0])
        )
        self.state, decision = self.policy.decide(self.state, known)
        sizes = [share.rows for shares in decision.value.shares.values() for share in shares]
        self.state = self.policy.observe(self.state, SplittingSample(None, tuple(sizes)))
        return _owners(decision.value, numbers, starts, counts)


def _owners(routing: Routing, panes: IntArray, starts: IntArray, counts: IntArray) -> IntArray:
    """Return the node of each row of ascending panes: the first rows of a pane to its first share, and so on."""
    owners = np.empty(int(counts.sum()), np.int64)
    for pane, start, count in zip(panes.tolist(), starts.tolist(), counts.tolist(), strict=True):
        at_row = start
        for share in routing.shares[pane]:
            owners[at_row : at_row + share.rows] = share.worker
            at_row += share.rows
        owners[at_row : start + count] = routing.shares[pane][-1].worker
    return owners


ROUTERS: Final[dict[str, Callable[[], Router]]] = {
    "basic hashing": by_basic_hashing,
    "frequency-aware": FrequencyAwareRouter,
    "plain panes": lambda: PaneRouter("PB_RR"),
    "rate-aware panes": lambda: PaneRouter("AS"),
}


def _keys(batch: pa.RecordBatch) -> IntArray:
    """Return the area of 100 m of each report, as the query's group."""
    east, north = (np.floor(batch[name].to_numpy() * 1_000).astype(np.int64) for name in ("longitude", "latitude"))
    keys: IntArray = north * 1_000_000 + east
    return keys


def split(batch: pa.RecordBatch, router: Router) -> int:
    """Split a batch among the nodes and write what each gets as Arrow IPC; return the number of bytes."""
    nodes = router(batch)
    order = np.argsort(nodes, kind="stable")
    moved = batch.take(pa.array(order))
    ends = np.searchsorted(nodes[order], np.arange(NODES + 1))
    return sum(moved.slice(start, end - start).serialize().size for start, end in pairwise(ends))


def measure(quick: bool, seed: int = 0) -> pd.DataFrame:
    """Return a row for each way: CPU ns of a tuple, of which to find its node; ways in turn, medians."""
    batches = list(_batches(2 if quick else 10, seed))
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ROUTERS}
    for repeat in range(2 if quick else REPEATS + 1):
        for name, made in ROUTERS.items():
            spent = _spent(batches, made)
            if repeat:  # the first run warms up
                times[name].append(spent)
    medians = {name: np.median(np.array(spent), axis=0) for name, spent in times.items()}
    return pd.DataFrame(
        [{"way": name, "ns per tuple": whole, "routing, ns": routing} for name, (whole, routing) in medians.items()]
    )


def _spent(batches: list[pa.RecordBatch], made: Callable[[], Router]) -> tuple[float, float]:
    router, rows, routing = made(), sum(batch.num_rows for batch in batches), 0.0

    def timed(batch: pa.RecordBatch) -> IntArray:
        nonlocal routing
        start = process_time()
        nodes = router(batch)
        routing += process_time() - start
        return nodes

    start = process_time()
    for batch in batches:
        split(batch, timed)
    return (process_time() - start) / rows * 1e9, routing / rows * 1e9


def _batches(count: int, seed: int) -> Iterator[pa.RecordBatch]:
    reports = pa.Table.from_batches(list(Cabs(rows=count * BATCH, cabs=20_000, seed=seed).by_event()))
    for start in range(0, count * BATCH, BATCH):
        yield reports.slice(start, BATCH).combine_chunks().to_batches()[0]


def _overhead(better: str, plain: str, told: float) -> Callable[[pd.DataFrame], Finding]:
    def judge(rows: pd.DataFrame) -> Finding:
        ours, theirs = (at(rows, "ns per tuple", way=way) for way in (better, plain))
        more = ours / theirs - 1
        base = (ours - theirs) / told
        return Finding(f"{more:+.0%}: {ours:.0f} and {theirs:.0f} ns; {told:.0%} of {base:.0f} ns", more <= told + 0.05)

    return judge


_BASE: Final = Cause(
    "a tuple in a batch of columns costs so little otherwise that the same nanoseconds are a larger share", TABLE
)
FIGURE = Figure(
    title="the cost of a tuple at a split node, with balanced load and without",
    regime=(
        f"A split node sends the reports of 20,000 cabs to {NODES} nodes in batches of {BATCH:,}: it finds the node of each tuple, "
        f"and writes what each node gets as Arrow IPC. CPU time; the ways in turn, medians of {REPEATS}. The sketch counts one key "
        f"in {SAMPLE}; the {CUT} most frequent keys are cut; panes are {SLIDE // 1_000_000} s."
    ),
    measure=measure,
    seeds=3,
    timing=True,
    claims=(
        Claim(
            "frequency-aware partitioning costs about 17 % more than basic hashing",
            _overhead("frequency-aware", "basic hashing", 0.17),
            _BASE,
        ),
        Claim(
            "rate-aware panes cost about 4 % more than panes in turn",
            _overhead("rate-aware panes", "plain panes", 0.04),
            _BASE,
        ),
    ),
    plots=(Plot("", "CPU ns of a tuple", "way", "ns per tuple", bars=True),),
)
