"""Evaluation of the batches of an acceptance run: exactly-once reads, tasks, balance, starvation and latency."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skypane.types import FloatArray

VISIBLE = 1.0
"""Seconds after which what was sent is certainly there for a batch to find."""


@dataclass(frozen=True)
class Verdict:
    """The figures of a run.

    missing, twice   rows, of `rows` that were sent
    tasks            most tasks of a batch
    excess           of batches with a hundred rows and more, how much the busier task had beyond an even share
    beyond           the same beyond the packing bound: an even share, or the largest input, which is not cut in two
    starved          most batches in a row in which an input had rows waiting, and none was read
    waits            seconds from a row's sending to the end of its batch; those of the hottest input
    """

    inputs: int
    rows: int
    missing: int
    twice: int
    batches: int
    tasks: int
    excess: FloatArray
    beyond: FloatArray
    starved: int
    waits: FloatArray
    hot: FloatArray

    @property
    def exact(self) -> bool:
        return self.missing == 0 and self.twice == 0


def verdict(out: Path, expected: Mapping[str, int], away: frozenset[str] = frozenset()) -> Verdict:
    """Return what the files of batches in `out` come to; inputs that were taken `away` cannot be starved."""
    tables = [pq.read_table(path) for path in sorted(out.glob("*.parquet"))]
    tables = [table for table in tables if len(table)]
    batch = np.repeat(np.arange(len(tables)), [len(table) for table in tables])
    rows = pa.concat_tables(tables)
    named = rows["input"].combine_chunks().dictionary_encode()
    names: list[str] = named.dictionary.to_pylist()
    of = named.indices.to_numpy()
    n, at, done, task = (rows[name].to_numpy() for name in ("n", "at", "done", "task"))
    planned = np.array([table["planned"][0].as_py() for table in tables])
    sent = np.array([expected.get(name, 0) for name in names])
    distinct = len(np.unique(np.stack([of, n]), axis=1).T)
    known = int(sent.sum())
    loads = [np.unique(task[batch == each], return_counts=True)[1] for each in range(len(tables))]
    hottest = int(np.argmax(np.bincount(of)))
    large = [each for each in range(len(tables)) if loads[each].sum() >= 100]
    least = [max(loads[each].sum() / 2, np.bincount(of[batch == each]).max()) for each in large]
    return Verdict(
        inputs=len(expected),
        rows=sum(expected.values()),
        missing=sum(expected.values()) - known + max(known - distinct, 0),
        twice=len(n) - distinct + int((n >= sent[of]).sum()),
        batches=len(tables),
        tasks=max(map(len, loads)),
        excess=np.array([loads[each].max() / (loads[each].sum() / 2) - 1 for each in large]),
        beyond=np.array([loads[each].max() / bound - 1 for each, bound in zip(large, least, strict=True)]),
        starved=max(_starved(batch[of == each], at[of == each], planned)
                    for each, name in enumerate(names) if name not in away),
        waits=done - at,
        hot=(done - at)[of == hottest],
    )  # fmt: skip


def _starved(batch: np.ndarray, at: FloatArray, planned: FloatArray) -> int:
    """Return how many batches in a row an input had rows that waited, and got none."""
    oldest = np.full(len(planned), np.inf)
    np.minimum.at(oldest, batch, at)
    got = np.isfinite(oldest)
    waited = np.minimum.accumulate(oldest[::-1])[::-1] < planned - VISIBLE
    longest = run = 0
    for starved in waited & ~got:
        run = run + 1 if starved else 0
        longest = max(longest, run)
    return longest
