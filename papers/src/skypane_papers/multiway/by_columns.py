"""The columnar designs, which take batches; S-Merge and Update are one pass over columns each."""

from __future__ import annotations

from collections import deque
from threading import Lock

import numpy as np
import pyarrow as pa

from skypane.multiway.ready_merge import ReadyMerge
from skypane.types import ConfigError, IntArray
from skypane_papers.multiway.aggregation import Aggregation, Winset
from skypane_papers.multiway.design import Multiway
from skypane_papers.multiway.order import check_order
from skypane_papers.multiway.pane_windows import PaneWindows

_NEVER = np.iinfo(np.int64).min
_GONE = np.iinfo(np.int64).max


class ColumnarTuMLSC(Multiway):
    """Inputs enqueue batches; the output thread merges them by columns and updates panes in time order.

    room   maximum number of waiting tuples per input
    ahead  panes beyond those of a window that may have tuples
    """

    def __init__(self, inputs: int, aggregation: Aggregation, *, room: int = 65_536, ahead: int = 64) -> None:
        super().__init__(inputs, aggregation)
        self._merge = ReadyMerge(inputs)
        self._state = self._merge.init()
        self._room = room
        #: batches in order of arrival: input, and times, keys, values; None: the input has left
        self._came: deque[tuple[int, tuple[IntArray, IntArray, IntArray] | None]] = deque()
        self._put, self._taken = np.zeros(inputs, np.int64), np.zeros(inputs, np.int64)
        self._ahead = ahead
        self._windows: PaneWindows | None = None
        self._ready = (np.empty(0, np.int64),) * 3
        self._ended = False

    def _add(self, source: int, times: IntArray, keys: IntArray, values: IntArray) -> int:
        done = min(len(times), int(self._room - self._put[source] + self._taken[source]))
        if done:
            self._came.append((source, (times[:done], keys[:done], values[:done])))
            self._put[source] += done
        return done

    def _leave(self, source: int) -> None:
        self._came.append((source, None))

    def next_winset(self) -> Winset | None:
        """Merge batches and update panes with ready tuples until a window is complete; return the window."""
        while True:
            times, keys, values = self._ready
            if not len(times):
                if self._ended:
                    return None if self._windows is None else self._windows.next(_GONE)
                if not self._came:
                    return None
                self._take()
                continue
            if self._windows is None:
                self._windows = PaneWindows(self.aggregation, int(times[0]), 1, self._ahead)
            found = self._windows.next(int(times[0]))
            if found is not None:
                return found
            within = int(np.searchsorted(times, self._windows.end))
            done = self._windows.update(0, times[:within], keys[:within], values[:within])
            self._ready = times[done:], keys[done:], values[done:]

    def _take(self) -> None:
        """Merge all batches that have arrived."""
        batches: list[tuple[IntArray, IntArray, IntArray]] = []
        owners: list[IntArray] = []
        gone = []
        while self._came:
            source, batch = self._came.popleft()
            if batch is None:
                gone.append(source)
            else:
                batches.append(batch)
                owners.append(np.full(len(batch[0]), source))
        found = []
        if batches:
            columns = [np.concatenate(column) for column in zip(*batches, strict=True)]
            sources = np.concatenate(owners)
            rows = pa.table(dict(zip("tkvs", [*columns, sources], strict=True)))
            self._state, ready = self._merge.push(self._state, rows, columns[0], sources)
            found.append(ready)
        if gone:
            self._state, rest = self._merge.leave(self._state, gone)
            if rest is not None:
                found.append(rest)
        self._ended = bool((self._state.newest == _GONE).all())
        together = pa.concat_tables(found) if found else None
        if together is not None and together.num_rows:
            times, keys, values, sources = (column.to_numpy() for column in together.columns)
            self._taken += np.bincount(sources, minlength=self.inputs)
            self._ready = times, keys, values


class ColumnarWiML(Multiway):
    """Each thread adds its inputs' batches to its own panes; windows are combined from the panes, without a merge.

    threads  how many may add at once: input i adds to table i modulo threads, and waits while another input does
    ahead    panes beyond those of a window that may have tuples

    No tuples are accepted until each input has offered some or has left, because the start of the first window is not
    known before. After that an input may not send tuples older than those that it offered.
    """

    def __init__(self, inputs: int, aggregation: Aggregation, *, threads: int = 1, ahead: int = 64) -> None:
        super().__init__(inputs, aggregation)
        if aggregation.in_order:
            raise ConfigError(
                f"function {aggregation.function} needs tuples in order, but WiML does not merge them; "
                "use ColumnarTuMLSC"
            )
        if threads < 1 or ahead < 1:
            raise ConfigError(f"threads and ahead must be at least 1, got threads={threads}, ahead={ahead}")
        self._threads = threads
        self._tables = [Lock() for _ in range(threads)]
        self._ahead = ahead
        self._windows: PaneWindows | None = None
        #: time before which an input sends no more tuples
        self._until = np.full(inputs, _NEVER)

    def _add(self, source: int, times: IntArray, keys: IntArray, values: IntArray) -> int:
        check_order(f"input {source}", self._until[source], times[:1])
        windows, table = self._windows, source % self._threads
        done = 0
        if windows is not None:
            with self._tables[table]:
                done = windows.update(table, times, keys, values)
        if len(times):
            self._until[source] = times[min(done, len(times) - 1)]
        return done

    def _leave(self, source: int) -> None:
        self._until[source] = _GONE

    def next_winset(self) -> Winset | None:
        """Return the next window that all inputs have passed."""
        until = int(self._until.min())
        if self._windows is None:
            if until in (_NEVER, _GONE):
                return None
            self._windows = PaneWindows(self.aggregation, until, self._threads, self._ahead)
        return self._windows.next(until)
