"""Which rows are late, and which are abandoned as too far in the future, from the policy's own words, row by row.

A row is late if, before its batch, the punctuation had come to the first moment after it at which a window begins or ends. It is
abandoned as ahead.py defines.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from tests.differential.case import SOURCE, Case, IntArray, Policy, Windows
from tests.differential.definition.ahead import DAY, SUPPORT, Ahead, Pauses, Row, by_pane
from tests.differential.definition.frontier import Frontier
from tests.differential.definition.windows import times, usable


class Gone(NamedTuple):
    """Indices of the usable rows of a case that are in no answer, ascending."""

    late: IntArray
    future: IntArray


def has_words(policy: Policy) -> bool:
    """Whether the policy is one that is defined here, whatever the order of the rows in a batch; KSlack is if they come at once."""
    return policy.word in _CLOCKS and policy.word != "KSlack"


def gone(case: Case) -> Gone:
    """Return which rows of a case are late, and which are abandoned, where all that is open is answered at its end."""
    stream = Stream(case.policy, case.windows)
    begin = 0
    for number, rows in enumerate(case.batches):
        stream.take(_rows(rows, begin, case))
        if number in case.drains:
            stream.drain()
        begin += rows.num_rows
    stream.drain()
    return Gone(*(np.array(sorted(some), np.int64) for some in (stream.late, stream.future)))


def _rows(rows: pa.Table, begin: int, case: Case) -> list[Row]:
    """Return the usable rows of a batch, which begins with row `begin` of the case."""
    mine = usable(rows, case.spec)
    entered = rows.take(pa.array(mine))
    sources = entered.column(SOURCE).to_pylist() if SOURCE in rows.column_names else [None] * len(mine)
    when = times(entered).tolist()
    panes = [last_bound(time, case.windows) for time in when]
    return [Row(*one) for one in zip(panes, when, (begin + mine).tolist(), sources, strict=True)]


def last_bound(time: int, windows: Windows) -> int:
    """Return the last moment up to a time at which a window begins or ends: where the pane of the time begins."""
    since = time - windows.offset
    begins = since // windows.slide * windows.slide
    ends = (since - windows.length) // windows.slide * windows.slide + windows.length
    return windows.offset + max(begins, ends)


def next_bound(time: int, windows: Windows) -> int:
    """Return the first moment after a time at which a window begins or ends."""
    since = time - windows.offset
    begins = (since // windows.slide + 1) * windows.slide
    ends = ((since - windows.length) // windows.slide + 1) * windows.slide + windows.length
    return windows.offset + min(begins, ends)


def last_end(time: int, windows: Windows) -> int:
    """Return the end of the last window that holds a time."""
    return windows.offset + (time - windows.offset) // windows.slide * windows.slide + windows.length


class Stream:
    """What a stream has come to, batch by batch: `late` and `future` are the indices of the rows that are gone."""

    def __init__(self, policy: Policy, windows: Windows) -> None:
        numbers = dict(policy.numbers)
        self._windows = windows
        self._clock = _CLOCKS[policy.word](numbers)
        self._ahead = Ahead(numbers)
        self._pauses = Pauses()
        self._seen = 0
        self._entered: dict[int, int] = {}  # times of rows that are in an answer, or will be unless they are abandoned
        self.late: list[int] = []
        self.future: list[int] = []

    def take(self, rows: list[Row]) -> None:
        """Take the usable rows of a batch; a batch without any changes nothing."""
        if not rows:
            return
        punctuation = self._clock.punctuation
        for row in rows:
            if next_bound(row.time, self._windows) <= punctuation:
                self.late.append(row.place)
            else:
                self._entered[row.place] = row.time
        believed, given_up = self._ahead.taken(self._clock.reached, rows)
        self._give_up(given_up)
        self._believe(believed, rows)

    def drain(self) -> None:
        """Answer all that is open: what is held is accepted or abandoned, and nothing older than what was answered is awaited."""
        reached = self._clock.reached
        if reached is not None and self._ahead.held:
            believed, given_up = self._ahead.settled(reached, self._seen, self._pauses)
            self._give_up(given_up)
            self._believe(believed, [])
        if self._entered:
            end = last_end(max(self._entered.values()), self._windows)
            self._clock.punctuation = max(self._clock.punctuation, end)

    def _give_up(self, rows: list[Row]) -> None:
        self.future += [row.place for row in rows]
        for row in rows:
            del self._entered[row.place]

    def _believe(self, rows: list[Row], came: list[Row]) -> None:
        """Move on by accepted rows, of which some, or others, came just now."""
        if rows:
            self._pauses.take(self._clock.newest, self._seen, rows)
            self._seen += len(rows)
            self._clock.take(rows, came)


class _Clock:
    """The punctuation, as a policy says it."""

    def __init__(self, numbers: Mapping[str, Any]) -> None:
        self.numbers = numbers
        self.newest: int | None = None
        self.punctuation: float = -math.inf

    @property
    def reached(self) -> int | None:
        """How far the stream has come: to its newest time, or further, if a drain has answered more; None: it has not begun."""
        return None if self.newest is None else int(max(self.newest, self.punctuation))

    def take(self, rows: Sequence[Row], came: Sequence[Row]) -> None:
        """Take accepted rows, one at least, late ones with them; `came`: all rows of the batch."""
        before = self.newest
        self.newest = self.moved(before, rows, came)
        self.punctuation = max(self.punctuation, self.proposed(before, self.newest, rows, came))

    def moved(self, before: int | None, rows: Sequence[Row], came: Sequence[Row]) -> int:
        """Return the newest time after a batch: that of any row."""
        del came
        newest = max(row.time for row in rows)
        return newest if before is None else max(before, newest)

    def proposed(self, before: int | None, newest: int, rows: Sequence[Row], came: Sequence[Row]) -> float:
        """Return the punctuation that this batch gives; `before` and `newest`: the newest times before it and after."""
        raise NotImplementedError


class _Watermark(_Clock):
    """A fixed delay behind the newest time; a batch behind, if that is requested."""

    def proposed(self, before: int | None, newest: int, rows: Sequence[Row], came: Sequence[Row]) -> float:
        del rows, came
        known = before if self.numbers.get("behind") else newest
        return -math.inf if known is None else known - int(self.numbers["delay"])


class _KSlack(_Clock):
    """Behind the newest time by the longest delay seen: how far a row lies behind the newest time before its batch.

    A delay beyond `max_slack` does not count; of a pane that reaches from below it to beyond it `max_slack` does. With `max_ahead`
    clocks that are ahead of the others do not move the newest time.
    """

    slack = 0

    def __init__(self, numbers: Mapping[str, Any]) -> None:
        super().__init__(numbers)
        self._frontier = Frontier(int(numbers.get("support", SUPPORT)))

    def moved(self, before: int | None, rows: Sequence[Row], came: Sequence[Row]) -> int:
        bounded = self.numbers.get("max_ahead", DAY) is not None
        return self._frontier.take(rows, came) if bounded else super().moved(before, rows, came)

    def proposed(self, before: int | None, newest: int, rows: Sequence[Row], came: Sequence[Row]) -> float:
        del came
        for mine in by_pane(rows).values():
            self.slack = max(self.slack, 0 if before is None else self._delay(before, mine))
        return newest - self.slack

    def _delay(self, before: int, rows: Sequence[Row]) -> int:
        """Return the longest delay of the rows of a pane that counts, or less than 0."""
        most = self.numbers.get("max_slack", DAY)
        nearest, longest = (before - of(row.time for row in rows) for of in (max, min))
        if most is None:
            return longest
        return min(int(most), longest) if nearest <= most else 0


class _Readiness(_Clock):
    """The least of the newest times of the sources that are named, or active: not silent for `idle_after` batches, nor too far behind.

    A source whose rows are ahead of what is accepted is as far as the stream is when they come; when they are followed, that shows
    nothing of it. A drain brings no rows, and does not count as a batch.
    """

    def __init__(self, numbers: Mapping[str, Any]) -> None:
        super().__init__(numbers)
        self.sources: dict[str | None, int] = {}
        self.heard: dict[str | None, int] = {}
        self.batches = 0

    def proposed(self, before: int | None, newest: int, rows: Sequence[Row], came: Sequence[Row]) -> float:
        del before, rows
        named = self.numbers["sources"]
        self.batches += bool(came)
        for row in came:
            time = min(row.time, newest)
            self.sources[row.source] = max(self.sources.get(row.source, time), time)
            self.heard[row.source] = self.batches
        self.sources = {
            name: time for name, time in self.sources.items() if name in named or self._active(name, newest - time)
        }
        if any(name not in self.sources for name in named):
            return -math.inf
        return min(self.sources.values(), default=newest)

    def _active(self, name: str | None, behind: int) -> bool:
        most = self.numbers.get("max_behind", DAY)
        return self.batches - self.heard[name] < self.numbers["idle_after"] and (most is None or behind <= most)


_CLOCKS: Final[Mapping[str, type[_Clock]]] = {"Watermark": _Watermark, "KSlack": _KSlack, "Readiness": _Readiness}
