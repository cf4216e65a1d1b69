"""The begin of a stream, in every cut: rows lost of the first 10,000, by AqKSlack, KSlack and the paper's K.

    python -m measure.yardstick.begin [docs]

writes a table into docs/progress-yardstick.md. The streams are those of the yardstick. Batches are of 1, 20 and 60 seconds of
arrival, or the first 10,000 rows in one, after which the next 10,000 count as well, in batches of 20 s; a backlog is read from 4 or 16 partitions, of which the fastest progresses twice as fast as the
slowest; and after 3,000 rows there is an outage, whose 30,000 rows come at once: there 43,000 rows count.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from measure.tables import markdown_table, replace_between
from measure.yardstick.streams import RATE, SECOND, Stream, streams
from skypane.operators.advance import Reading, advance
from skypane.operators.entry.pane_counts import counts_of
from skypane.operators.entry.row_runs import ReadingOrder, RunRecorder, in_order
from skypane.progress import AqKSlack, KSlack, PaneArrivals, ProgressPolicy, SourceCount
from skypane.progress.kslack import tuple_grain
from skypane.types import IntArray
from skypane.windows import Windows
from skypane.wording import percent

FIRST, BUDGET = 10_000, 0.01
OUTAGE = (3_000, 33_000)
SECONDS = (1, 20, 60)
PARTITIONS = (4, 16)
HEAD = (
    "stream",
    *(f"{seconds} s" for seconds in SECONDS),
    "in one",
    *(f"{n} partitions" for n in PARTITIONS),
    "an outage",
)

Batch = Sequence[IntArray]
"""The places of the rows of a batch in their stream, for each partition."""


def batches(stream: Stream) -> Iterator[tuple[list[Batch], int]]:
    """Yield the batches of each cut, and how many rows count."""
    rows = len(stream.event)
    at = np.arange(rows) * SECOND // RATE if stream.arrival is None else stream.arrival
    for seconds in SECONDS:
        yield _cut(at, 0, rows, seconds), FIRST
    yield [[np.arange(min(rows, FIRST))], *_cut(at, min(rows, FIRST), rows, 20)], 2 * FIRST
    for partitions in PARTITIONS:
        yield _unequal(min(rows, 3 * FIRST), partitions), FIRST
    first, last = OUTAGE
    yield [*_cut(at, 0, first, 1), [np.arange(first, min(last, rows))], *_cut(at, last, rows, 1)], last + FIRST


def _cut(at: IntArray, first: int, last: int, seconds: int) -> list[Batch]:
    number = (at[first:last] - at[0]) // (seconds * SECOND)
    edges = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), len(number)]
    return [[np.arange(first + begin, first + end)] for begin, end in pairwise(edges) if end > begin]


def _unequal(rows: int, partitions: int) -> list[Batch]:
    home = np.random.default_rng(3).integers(0, partitions, rows)
    own = [np.flatnonzero(home == number) for number in range(partitions)]
    taken = [int(2_000 / partitions * share) for share in np.linspace(1.0, 0.5, partitions)]
    last = max(-(-len(places) // size) for places, size in zip(own, taken, strict=True))
    return [
        [places[number * size : (number + 1) * size] for places, size in zip(own, taken, strict=True)]
        for number in range(last)
    ]


def lost(policy: ProgressPolicy, stream: Stream, windows: Windows, cut: Iterable[Batch], first: int) -> float:
    """Return the share of the first rows that a policy loses."""
    state, seen = policy.init(), 0
    for batch in cut:
        if seen >= first:
            break
        rows = np.concatenate(batch)
        times, panes = stream.event[rows], windows.panes_at(stream.event[rows])
        recorder = RunRecorder()
        recorder.add(panes, times, np.repeat(np.arange(len(batch)), [len(part) for part in batch]))
        order = in_order(recorder.units() or (), {})
        reading = Reading(order=None if order is None else partial(ReadingOrder, order.runs, order.ends))
        counts = counts_of(panes, times)
        state = advance(policy, windows, state, counts, _sources(stream, rows, times), reading=reading).state
        seen += len(rows)
    return float(state.dropped / seen)


def _sources(stream: Stream, rows: IntArray, times: IntArray) -> dict[str, SourceCount]:
    if stream.source is None:
        return {}
    source = stream.source[rows]
    return {
        f"source {number}": SourceCount(int((source == number).sum()), 0, int(times[source == number].max()))
        for number in np.unique(source).tolist()
    }


def lost_by_the_paper(stream: Stream, windows: Windows, cut: Iterable[Batch], first: int) -> float:
    """Return the share of the first rows that come after the paper's punctuation, row by row, has closed their pane."""
    parts, seen = [], 0
    for batch in cut:
        if seen >= first:
            break
        parts.append(stream.event[np.concatenate(batch)])
        seen += len(parts[-1])
    given, late, at = list(tuple_grain(np.concatenate(parts).tolist())), 0, len(parts[0])
    for times in parts[1:]:
        late += PaneArrivals.of_times(times, windows).late(given[at - 1])
        at += len(times)
    return late / seen


class Losses(NamedTuple):
    """Shares of the first rows that AqKSlack, KSlack and the paper's K lose."""

    adaptive: float
    kslack: float
    paper: float


def scored(stream: Stream) -> Iterator[Losses]:
    """Yield what is lost in each cut."""
    windows = stream.windows[len(stream.windows) // 2]
    for cut, first in batches(stream):
        yield Losses(
            lost(AqKSlack(BUDGET), stream, windows, cut, first),
            lost(KSlack(), stream, windows, cut, first),
            lost_by_the_paper(stream, windows, cut, first),
        )


def main(arguments: Sequence[str]) -> None:
    """Print the table, or write it into the page."""
    lines = []
    for stream in streams():
        lines.append([stream.name, *(", ".join(percent(share) for share in cell) for cell in scored(stream))])
        print(" | ".join(lines[-1]), flush=True)
    if arguments == ["docs"]:
        replace_between(Path("docs/progress-yardstick.md"), "begin", markdown_table(HEAD, lines))


if __name__ == "__main__":
    main(sys.argv[1:])
