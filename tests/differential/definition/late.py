"""Which rows are late, from the policy's own words, row by row: nothing here knows panes.

A row is late if, before its batch, the punctuation had come to the first moment after it at which a window begins or ends.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
from tests.differential.case import SOURCE, Case, IntArray, Policy, Windows
from tests.differential.definition.windows import times, usable

_BEGINNING: Final = -(2**62)


def has_words(policy: Policy) -> bool:
    """Whether the policy is one that is said here: without bounds, which go by panes."""
    numbers = dict(policy.numbers)
    bounded = numbers.get("max_ahead") is not None or numbers.get("max_slack") is not None
    return policy.word in _CLOCKS and not bounded


def late(case: Case) -> IntArray:
    """Return the indices of the usable rows of a case that are late, ascending."""
    clock = _CLOCKS[case.policy.word](dict(case.policy.numbers))
    found, begin, newest = [np.empty(0, np.int64)], 0, _BEGINNING
    for number, rows in enumerate(case.batches):
        mine = usable(rows, case.asked)
        entered = rows.take(pa.array(mine))
        when = times(entered)
        gone = np.array([next_bound(time, case.windows) <= clock.punctuation for time in when.tolist()], np.bool_)
        found.append(begin + mine[gone])
        newest = max(newest, int(when[~gone].max(initial=_BEGINNING)))
        if len(when):
            clock.take(when.tolist(), entered)
        if number in case.drains and newest > _BEGINNING:
            clock.punctuation = max(clock.punctuation, last_end(newest, case.windows))
        begin += rows.num_rows
    return np.concatenate(found)


def next_bound(time: int, windows: Windows) -> int:
    """Return the first moment after a time at which a window begins or ends."""
    since = time - windows.offset
    begins = (since // windows.slide + 1) * windows.slide
    ends = ((since - windows.length) // windows.slide + 1) * windows.slide + windows.length
    return windows.offset + min(begins, ends)


def last_end(time: int, windows: Windows) -> int:
    """Return the end of the last window that holds a time."""
    return windows.offset + (time - windows.offset) // windows.slide * windows.slide + windows.length


class _Clock:
    """The punctuation, as a policy says it; a batch has a row at least."""

    def __init__(self, numbers: Mapping[str, Any]) -> None:
        self.numbers = numbers
        self.newest: int | None = None
        self.punctuation: float = -math.inf

    def take(self, when: list[int], rows: pa.Table) -> None:
        """Take the rows of a batch, late ones with them."""
        before = self.newest
        self.newest = max(when) if before is None else max(before, *when)
        self.punctuation = max(self.punctuation, self.said(before, self.newest, when, rows))

    def said(self, before: int | None, newest: int, when: list[int], rows: pa.Table) -> float:
        """Return the punctuation that this batch gives; `before` and `newest`: the newest times before it and after."""
        raise NotImplementedError


class _Watermark(_Clock):
    """A fixed delay behind the newest time; a batch behind, if that is asked for."""

    def said(self, before: int | None, newest: int, when: list[int], rows: pa.Table) -> float:
        del when, rows
        known = before if self.numbers.get("behind") else newest
        return -math.inf if known is None else known - int(self.numbers["delay"])


class _KSlack(_Clock):
    """Behind the newest time by the longest delay seen: how far a row lies behind the newest time before its batch."""

    slack = 0

    def said(self, before: int | None, newest: int, when: list[int], rows: pa.Table) -> float:
        del rows
        if before is not None:
            self.slack = max(self.slack, before - min(when))
        return newest - self.slack


class _Readiness(_Clock):
    """The least of the newest times of the sources that are named, or have not been left behind by `idle_after`."""

    def __init__(self, numbers: Mapping[str, Any]) -> None:
        super().__init__(numbers)
        self.sources: dict[str, int] = {}

    def said(self, before: int | None, newest: int, when: list[int], rows: pa.Table) -> float:
        del before
        named = self.numbers["sources"]
        for source, time in zip(rows.column(SOURCE).to_pylist(), when, strict=True):
            self.sources[source] = max(self.sources.get(source, time), time)
        since = newest - int(self.numbers["idle_after"])
        self.sources = {name: time for name, time in self.sources.items() if time >= since or name in named}
        if any(name not in self.sources for name in named):
            return -math.inf
        return min(self.sources.values(), default=newest)


_CLOCKS: Final[Mapping[str, type[_Clock]]] = {"Watermark": _Watermark, "KSlack": _KSlack, "Readiness": _Readiness}
