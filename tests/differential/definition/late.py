"""Which rows are late under the policies that are stated in a sentence: a watermark, and K-slack without bounds.

A row is late if its pane is closed before its batch: if the pane's end is no later than the punctuation. After a batch this is the
newest time less a delay: a fixed one, or the longest that any row has been behind the newest time before its batch. A drain puts it
at the end of the last window with a row. It never goes back.
"""

from __future__ import annotations

import numpy as np
from tests.differential.case import TIME, Case, IntArray, Windows
from tests.differential.definition.values import micros
from tests.differential.definition.windows import usable, windows_of

_NEVER = -(2**62)


def late(case: Case) -> IntArray | None:
    """Return the places of the rows that are late, ascending; None under any other policy."""
    numbers = dict(case.policy.numbers)
    if numbers["max_ahead"] is not None or numbers.get("max_slack") is not None:
        return None
    if case.policy.word not in ("Watermark", "KSlack"):
        return None
    at = usable(case.rows, case.asked)
    when = np.array(micros(case.rows.column(TIME)), object)[at].astype(np.int64)
    punctuation = newest = end = _NEVER
    slack, found = numbers.get("delay", 0), []
    for batch in range(int(case.batch.max(initial=0)) + 1):
        mine = case.batch[at] == batch
        rows, times = at[mine], when[mine]
        closed = np.array([pane_end(time, case.windows) <= punctuation for time in times.tolist()], np.bool_)
        found += rows[closed].tolist()
        end = max([end, *(_last_end(time, case.windows) for time in times[~closed].tolist())])
        if len(times):
            if case.policy.word == "KSlack" and newest != _NEVER:
                slack = max(slack, newest - int(times.min()))
            before, newest = newest, max(newest, int(times.max()))
            punctuation = max(punctuation, (before if numbers.get("behind") else newest) - slack)
        if batch in case.drains:
            punctuation = max(punctuation, end)
    return np.array(found, np.int64)


def pane_end(time: int, windows: Windows) -> int:
    """Return the next time after `time` at which a window begins or ends."""
    since = (time - windows.offset) % windows.slide
    head = windows.length % windows.slide
    return time - since + (head if since < head else windows.slide)


def _last_end(time: int, windows: Windows) -> int:
    return windows.offset + windows_of(time, windows)[-1] * windows.slide + windows.length
