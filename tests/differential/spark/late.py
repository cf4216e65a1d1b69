"""Which rows are late, from the policy's own words, row by row: nothing here knows panes.

A row is late if, before its batch, the punctuation had come to the first moment after it at which a window begins or ends.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from tests.differential.case import Case, IntArray, Policy, Windows
from tests.differential.definition.windows import times, usable


def late(case: Case) -> IntArray:
    """Return the indices of the usable rows of a case that are late, ascending."""
    clock, found, begin = _Clock(case.policy), [np.empty(0, np.int64)], 0
    newest = -math.inf
    for number, rows in enumerate(case.batches):
        mine = usable(rows, case.asked)
        when = times(rows.take(pa.array(mine)))
        gone = np.array([_next_bound(time, case.windows) <= clock.punctuation for time in when.tolist()], np.bool_)
        found.append(begin + mine[gone])
        newest = max(newest, when[~gone].max(initial=-(2**62)))
        clock.take(when)
        if number in case.drains and newest > -(2**62):
            clock.punctuation = max(clock.punctuation, last_end(int(newest), case.windows))
        begin += rows.num_rows
    return np.concatenate(found)


def _next_bound(time: int, windows: Windows) -> int:
    """Return the first moment after a time at which a window begins or ends."""
    since = time - windows.offset
    begins = (since // windows.slide + 1) * windows.slide
    ends = ((since - windows.length) // windows.slide + 1) * windows.slide + windows.length
    return windows.offset + min(begins, ends)


def last_end(time: int, windows: Windows) -> int:
    """Return the end of the last window that holds a time."""
    return windows.offset + (time - windows.offset) // windows.slide * windows.slide + windows.length


@dataclass
class _Clock:
    """Watermark and KSlack without bounds, in their own words."""

    policy: Policy
    newest: int | None = None
    slack: int = 0
    punctuation: float = -math.inf

    def take(self, when: IntArray) -> None:
        """Take the times of a batch."""
        if not len(when):
            return
        if self.policy.word == "Watermark":
            self.slack = dict(self.policy.numbers)["delay"]
        elif self.newest is not None:
            self.slack = max(self.slack, self.newest - int(when.min()))
        self.newest = max(int(when.max()), int(when.max()) if self.newest is None else self.newest)
        self.punctuation = max(self.punctuation, self.newest - self.slack)
