"""Random times for the policies alone, against their words: far more of them than there can be cases with rows and queries.

    python -m tests.differential.policies [--seconds S] [--cases N] [--seed SEED]    exit code 1 at the first failure

Panes are about as long as `max_ahead`, delays and pauses, so that rows lie on both sides of each bound.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from tests.differential import objects
from tests.differential.alone import run
from tests.differential.case import Policy, Windows
from tests.differential.definition.ahead import Row
from tests.differential.definition.late import Stream, last_bound, last_end

from skypane import windows as cut
from skypane.progress import PaneArrivals
from skypane.progress.far_future import FutureDecision
from skypane.progress.pane_arrivals import SourceCount

Rng = np.random.Generator


@dataclass(frozen=True)
class Times:
    """A policy, and the rows of each batch; after some there is a drain, after the last one always."""

    seed: int
    policy: Policy
    windows: Windows
    batches: tuple[tuple[Row, ...], ...]
    drains: frozenset[int]


def drawn(seed: int) -> Times:
    """Return the times of a seed."""
    rng = np.random.default_rng([seed, 4])
    n, length = int(rng.integers(1, 30 if rng.random() < 0.7 else 200)), int(rng.choice([1, 3, 5, 10, 20]))
    windows = Windows(length, int(rng.integers(1, length + 1)), int(rng.integers(0, 3)))
    gaps = rng.choice([0, 1, 2, int(rng.choice([5, 20, 100]))], n, p=[0.3, 0.3, 0.2, 0.2])
    sources = rng.choice(["a", "b", "c"], n, p=[0.2, 0.4, 0.4])
    ahead = np.where(sources == "a", rng.choice([0, 0, 50, 200]), 0)  # of the clock of one source
    when = (np.cumsum(gaps) + rng.choice([0, 0, 0, -7, 30], n) + ahead).tolist()
    last = int(rng.integers(0, 9))
    batch = np.sort(rng.integers(0, last + 1, n)) if rng.random() < 0.7 else np.arange(n)
    batches: list[list[Row]] = [[] for _ in range(int(batch.max()) + 1)]
    for index, (number, moment) in enumerate(zip(batch.tolist(), when, strict=True)):
        batches[number].append(Row(last_bound(moment, windows), moment, index, str(sources[index])))
    drains = frozenset(rng.integers(0, 9, 2).tolist() if rng.random() < 0.4 else [])
    return Times(seed, _policy(rng), windows, tuple(map(tuple, batches)), drains)


def _policy(rng: Rng) -> Policy:
    word = str(rng.choice(["Watermark", "KSlack", "Readiness"]))
    numbers: dict[str, Any] = {
        "max_ahead": int(rng.choice([1, 3, 5, 10, 30])) if rng.random() < 0.9 else None,
        "support": int(rng.choice([1, 2, 3, 5, 32])),
        "patience": int(rng.choice([1, 3, 10, 1_000])),
    }
    if word == "Watermark":
        numbers |= {"delay": int(rng.choice([0, 2, 10])), "behind": bool(rng.random() < 0.3)}
    elif word == "KSlack":
        numbers["max_slack"] = None if rng.random() < 0.5 else int(rng.choice([0, 3, 10]))
    else:
        numbers |= {
            "idle_after": int(rng.choice([1, 2, 5])),
            "max_behind": None if rng.random() < 0.4 else int(rng.choice([1, 5, 30])),
            "sources": ("a", "b", "c") if rng.random() < 0.3 else (),
        }
    return Policy(word, tuple(numbers.items()), total=False)


def failure(case: Times) -> str | None:
    """Return which rows are gone by the policy, and which by its words, if they are not the same."""
    words = Stream(case.policy, case.windows)
    package = _Package(case)
    for number, rows in enumerate(case.batches):
        for one in (words, package):
            one.take(list(rows))
            if number in case.drains or number == len(case.batches) - 1:
                one.drain()
    found, wanted = ((sorted(one.late), sorted(one.future)) for one in (package, words))
    return None if found == wanted else f"late and future are {found}, wanted {wanted}"


@dataclass
class _Package:
    """What the package's policy makes of the times, with the rows that it holds beside it, as its engines do."""

    case: Times
    late: list[int] = field(default_factory=list)
    future: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        one = self.case.windows
        self._windows = cut.Windows(one.length, one.slide, one.offset)
        self._policy = objects.policy(self.case.policy)
        self._state = self._policy.init()
        self._entered: dict[int, Row] = {}
        self._held: list[Row] = []

    def take(self, rows: list[Row]) -> None:
        """Take a batch."""
        if not rows:
            return
        punctuation = self._state.punctuation
        first_open = -math.inf if punctuation is None else self._windows.first_open(punctuation)
        closed = {row.place for row in rows if self._windows.pane_at(row.time) < first_open}
        arrivals = self._arrivals(rows)
        self._state, decision = self._policy.decide(self._state, arrivals)
        self.late += closed
        self._entered |= {row.place: row for row in rows if row.place not in closed}
        future = decision.value.future
        self._give_up(future)
        self._held += [row for row in rows if future.limit is not None and row.pane > future.limit]

    def drain(self) -> None:
        """Answer all that is open."""
        self._state, decision = self._policy.settle(self._state)
        self._give_up(decision.value.future)
        self._held = []
        if self._entered:
            newest = max(row.time for row in self._entered.values())
            self._state = self._policy.close(self._state, last_end(newest, self.case.windows))

    def _give_up(self, future: FutureDecision) -> None:
        panes = {pane.start for pane in future.abandoned.panes}
        self.future += [row.place for row in self._held if row.pane in panes]
        self._held = [row for row in self._held if row.pane not in panes]
        for index in self.future:
            self._entered.pop(index, None)

    def _arrivals(self, rows: list[Row]) -> PaneArrivals:
        sources: dict[str, SourceCount] = {}
        for row in rows:
            one = SourceCount(1, 0, row.time)
            sources[str(row.source)] = sources[str(row.source)].merge(one) if row.source in sources else one
        return replace(PaneArrivals.at_once([row.time for row in rows], self._windows), sources=sources)


def main() -> int:
    """Run what the arguments say; return the exit code."""
    return run("policies", drawn, failure)


if __name__ == "__main__":
    sys.exit(main())
