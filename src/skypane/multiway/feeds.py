"""A query over windows of many feeds, in one process: answers as soon as no feed can change them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from skypane.multiway.ready_merge import ReadyMerge
from skypane.operators.entry.pane_counts import by_pane
from skypane.operators.entry.reject_reasons import is_null, rankable
from skypane.operators.open_panes import OpenPanes
from skypane.operators.query import Query
from skypane.operators.window_query import WindowAnswer, WindowQuery, WindowWorker
from skypane.types import TICKS_PER_SECOND, BadInputError, ConfigError, IntArray
from skypane.windows import Windows

_NEVER = np.iinfo(np.int64).min
_GONE = np.iinfo(np.int64).max


class Feeds:
    """A query over windows of the rows of several feeds, each in order of its times.

    names    the feeds; rows of one time are in this order
    query    such as sp.Aggregate("room", n=sp.count())
    windows  Windows.of("1 minute", "10 seconds")
    time     the column of event time, a timestamp

        feeds = Feeds(["basel", "bern"], query, windows, time="at")
        for answer in feeds.push("basel", rows): ...

    A window is answered once, when every feed has sent a row from its end on, or has left. Rows that wait for other
    feeds are kept in memory: `waiting` is their number.
    """

    def __init__(self, names: Sequence[str], query: Query, windows: Windows, *, time: str) -> None:
        if len(set(names)) < max(len(names), 1):
            raise ConfigError(f"names must be one or more different names, got {list(names)}")
        self.names = tuple(names)
        self.query = query
        self.windows = windows
        self.time = time
        #: rows that the query cannot rank (null or NaN), by reason; they are in no answer
        self.rejected: dict[str, int] = {}
        self._merge = ReadyMerge(len(names))
        self._state = self._merge.init()
        self._panes: OpenPanes[pa.Table] = OpenPanes.empty(windows)
        self._worker: WindowWorker | None = None

    @property
    def waiting(self) -> int:
        """How many rows wait for other feeds."""
        return self._state.waiting

    def push(self, name: str, rows: pa.Table) -> list[WindowAnswer]:
        """Add rows of a feed, oldest first; return the answers of the windows that they complete, in order.

        All feeds have the same columns. Raises BadInputError, and adds none of the rows, if one has no time, or is
        older than a row before it.
        """
        number = self._number(name)
        times = self._times(name, rows)
        if self._worker is None:
            self.query.validate(rows.schema)
            query = WindowQuery(self.query, self.windows, rows.schema.field(self.time).type.tz)
            query.output_schema(rows.schema)
            self._worker = query.worker()
        self._state, ready = self._merge.push(self._state, rows, times, np.full(len(times), number))
        return list(self._answers(ready))

    def leave(self, name: str) -> list[WindowAnswer]:
        """Stop waiting for a feed; return the answers of the windows that are complete without it, in order."""
        self._state, ready = self._merge.leave(self._state, [self._number(name)])
        return list(self._answers(ready))

    def _number(self, name: str) -> int:
        if name not in self.names:
            raise ConfigError(f"unknown feed {name!r}; there are {', '.join(self.names)}")
        return self.names.index(name)

    def _times(self, name: str, rows: pa.Table) -> IntArray:
        """Return the times of rows in microseconds."""
        if self.time not in rows.column_names or not pa.types.is_timestamp(rows.schema.field(self.time).type):
            raise ConfigError(f"rows of {name} need a column {self.time!r} of timestamps")
        column = rows.column(self.time)
        if column.null_count:
            at = int(np.flatnonzero(is_null(column))[0])
            raise BadInputError(f"row {at} of {name} has no {self.time}; leave out rows without a time")
        ticks: IntArray = column.cast(pa.int64()).to_numpy()
        per_second = TICKS_PER_SECOND[column.type.unit]
        return ticks * (1_000_000 // per_second) if per_second <= 1_000_000 else ticks // (per_second // 1_000_000)

    def _answers(self, ready: pa.Table | None) -> Iterator[WindowAnswer]:
        """Yield the answers of complete windows, after these rows."""
        if ready is not None and ready.num_rows:
            self._add(ready)
        newest = int(self._state.newest.min())
        if newest == _NEVER or self._worker is None:
            return
        due = self._panes.all_windows() if newest == _GONE else self._panes.closed_by(newest)
        self._panes = OpenPanes.empty(self.windows) if newest == _GONE else self._panes.retire(newest)
        yield from self._worker.answers(due, lambda partial: partial)

    def _add(self, ready: pa.Table) -> None:
        """Add rows to their panes."""
        rows, reasons = rankable(ready, tuple(self.query.required))
        for reason, count in reasons.items():
            self.rejected[reason] = self.rejected.get(reason, 0) + count
        times = self._times("the merge", rows)
        lifted = [
            (part.pane, self.query.lift(part.rows)) for part in by_pane(rows, self.windows.panes_at(times), times)
        ]
        panes = self._panes.add(lifted)
        again = [(pane, self.query.combine(list(panes.panes[pane]))) for pane in panes.scattered(None)]
        self._panes = panes.replace(again)
