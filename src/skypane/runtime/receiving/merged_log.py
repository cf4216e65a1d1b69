"""Merge the logs of all inputs into one log in the order of event time, without loss and in bounded memory.

    input basel   1   4 5           read up to 5
    input bern      3     6         read up to 6       1 3 4 5 are merged, 6 and 7 wait
    input chur    2         7       read up to 7

A line waits until every input has sent a line that belongs after it, so the merged log does not depend on when lines
arrive; lines of one time are in the order of the inputs. Inputs are merged from their logs, where a line is before it is
acknowledged: an input that is far ahead of the others stays on disk, and delays no acknowledgement.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np
import pyarrow as pa

from skypane.multiway.ready_merge import MergeState, ReadyMerge
from skypane.operators.entry.reject_reasons import LATE
from skypane.runtime.growing_files import GrowingFile
from skypane.runtime.receiving.checksums import check
from skypane.runtime.receiving.merge_commit import MergeCommit
from skypane.runtime.receiving.receiver_status import MergeStatus
from skypane.runtime.receiving.segments import between, end_of, first_of
from skypane.runtime.receiving.time_order import TimedLines, TimeOrder
from skypane.runtime.receiving.waiting_lines import TakenLines, WaitingLines, interleaved
from skypane.types import IntArray, Micros

OUT_OF_ORDER: Final = "out of order"
"""The reason of a line that is older than the line before it of its input."""

MEMORY: Final = 64 << 20
"""Bytes of lines of all inputs that are read ahead of the merge."""
_LEAST: Final = 1 << 16
_NEVER: Final = int(np.iinfo(np.int64).min)
_GONE: Final = int(np.iinfo(np.int64).max)
_TICKS: Final = 32
"""Parts of idle_after after which the newest time is noted."""


class MergedLog:
    """The merge of a receiver's inputs; one thread calls it.

    folder   the receiver's folder, where each input has a log
    names    the inputs, in the order of ties
    memory   bytes of lines that are read ahead; an input's longest line may exceed its share

    Inputs that were merged before and are not among `names` any more are merged to the end of their logs.
    """

    def __init__(
        self, folder: Path, names: Sequence[str], order: TimeOrder, segment_bytes: int, *, memory: int = MEMORY
    ) -> None:
        self._folder = folder
        self._order = order
        self._listed = len(names)
        self._commit = MergeCommit(folder, segment_bytes)
        self.names = (*names, *sorted(set(self._commit.place.at) - set(names)))
        self._share = max(memory // len(self.names), _LEAST)
        self._lines = 0
        self._rejected: Counter[tuple[str, str]] = Counter()
        self._begin()
        _compile()

    def _begin(self) -> None:
        """Begin from the last committed place."""
        place = self._commit.place
        self._merge = ReadyMerge(len(self.names))
        newest = _NEVER if place.time is None else place.time
        self._state = MergeState(np.full(len(self.names), newest))
        self._waiting = [WaitingLines(self._offset(name, place.at.get(name))) for name in self.names]
        #: the newest time that each input has sent
        self._sent = np.array([place.newest.get(name, _NEVER) for name in self.names])
        #: when each input has last sent a line with a place in the order
        self._heard: list[float] | None = None
        #: since when an input waits for lines by which one that leaps ahead is judged
        self._doubted: dict[int, float] = {}
        #: the newest time of all inputs, and when it was that
        self._high = _NEVER
        self._highs: deque[tuple[float, Micros]] = deque()

    def _offset(self, name: str, at: int | None) -> int:
        return (first_of(str(self._folder / name)) or 0) if at is None else at

    @property
    def at(self) -> Mapping[str, int]:
        """Up to which offset each input's log is merged, by name."""
        return self._commit.place.at

    @property
    def status(self) -> MergeStatus:
        """The status after the last step."""
        rows = [one.rows for one in self._waiting]
        slowest = self.names[int(np.argmin(self._state.newest))] if any(rows) else ""
        return MergeStatus(self._lines, sum(rows), slowest, MappingProxyType(dict(self._rejected)))

    def step(self, ends: Mapping[str, int], now: float, clock: Micros) -> bool:
        """Merge what can be merged; return whether there is more to read.

        ends   the durable end of each listed input's log
        now    seconds by a clock that only advances, which measure idle_after
        clock  the time of day in microseconds since 1970, which measures max_ahead

        Raises OSError if the merged log cannot be written, and CheckpointError if an input's log cannot be read; the
        next call after again() repeats the step.
        """
        heard = self._heard = self._heard or [now] * len(self.names)
        until = [ends[name] if name in ends else end_of(str(self._folder / name)) or 0 for name in self.names]
        released = [self._pushed(self._read(until, now, clock), now, heard)]
        released += [self._advanced(until, now, heard)]
        self._take([table for table in released if table is not None])
        return any(
            one.read < end and one.size < self._share and number not in self._doubted
            for number, (one, end) in enumerate(zip(self._waiting, until, strict=True))
        )

    def again(self) -> None:
        """Begin again from what is durable, after a step that failed."""
        self._commit.recovered()
        self._begin()

    def close(self) -> None:
        """Close the logs; waiting lines are merged after the next start."""
        self._commit.close()

    def _read(self, until: Sequence[int], now: float, clock: Micros) -> list[tuple[int, IntArray]]:
        """Read the next lines of each input; return the times of those that have a place in the order."""
        came = []
        for number, (one, end) in enumerate(zip(self._waiting, until, strict=True)):
            if one.read >= end or one.size >= self._share:
                continue
            text, lines = self._next(number, end, now, clock)
            lines = self._judged(number, lines)
            one.add(text[: int(lines.lengths.sum())], lines.lengths, lines.reasons)
            placed = np.ones(len(lines.times), np.bool_)
            placed[list(lines.reasons)] = False
            came.append((number, lines.times[placed]))
        return came

    def _next(self, number: int, end: int, now: float, clock: Micros) -> tuple[bytes, TimedLines]:
        """Return the next text of an input, and those of its lines that can be judged: at least one, or it has no more text."""
        folder, begin = str(self._folder / self.names[number]), self._waiting[number].read
        since, text = self._doubted.pop(number, now), b""
        while True:
            text += _next_lines(folder, begin + len(text), end, self._share)
            all_read = begin + len(text) >= end
            waited = all_read and now - since >= self._order.wait
            lines = self._order.read(text, clock).judged(int(self._sent[number]), clock, waited=waited)
            count = len(lines.lengths)
            if all_read and lines.lengths.sum() < len(text):
                self._doubted[number] = now if count else since
            if count or all_read:
                return text, lines

    def _judged(self, number: int, lines: TimedLines) -> TimedLines:
        """Reject lines that are older than one before them of this input, or than lines that were merged without it."""
        times, bad = lines.times.copy(), list(lines.reasons)
        times[bad] = _NEVER
        before = np.maximum.accumulate(np.concatenate([[self._sent[number]], times]))
        behind = times < before[:-1]
        late = ~behind & (times < self._state.newest[number])
        behind[bad] = late[bad] = False
        reasons = lines.reasons | dict.fromkeys(np.flatnonzero(behind).tolist(), OUT_OF_ORDER)
        reasons |= dict.fromkeys(np.flatnonzero(late).tolist(), LATE)
        return lines._replace(reasons=reasons)

    def _pushed(self, came: list[tuple[int, IntArray]], now: float, heard: list[float]) -> pa.Table | None:
        """Give the merge the times that have come; return the inputs of the lines that are ready, in order."""
        came = [(number, times) for number, times in came if len(times)]
        if not came:
            return None
        for number, times in came:
            self._sent[number] = times[-1]
            heard[number] = now
            self._high = max(self._high, int(times[-1]))
        inputs = np.repeat([number for number, _ in came], [len(times) for _, times in came])
        times = np.concatenate([times for _, times in came])
        rows = pa.table({"input": inputs, "time": times})
        self._state, ready = self._merge.push(self._state, rows, times, inputs)
        return ready

    def _advanced(self, until: Sequence[int], now: float, heard: list[float]) -> pa.Table | None:
        """Stop waiting for inputs that have ended, and for silent ones where lines have waited long enough."""
        done = [one.read >= end for one, end in zip(self._waiting, until, strict=True)]
        gone = [number for number in range(self._listed, len(self.names)) if done[number]]
        silent = [
            number for number, all_read in enumerate(done) if all_read and now - heard[number] >= self._order.wait
        ]
        time = self._waited(now)
        if silent and time is not None:
            others = np.delete(self._state.newest, silent)
            time = min(time + 1, int(others.min(initial=_GONE)))  # lines of `time` itself have waited as long
            self._state, ready = self._merge.advance(self._state, silent, time)
        else:
            ready = None
        if not gone:
            return ready
        self._state, rest = self._merge.leave(self._state, gone)
        found = [table for table in (ready, rest) if table is not None]
        return pa.concat_tables(found) if found else None

    def _waited(self, now: float) -> Micros | None:
        """Return the newest time that had been read idle_after ago; None if nothing had."""
        wait = self._order.wait
        if self._high > _NEVER and (not self._highs or now - self._highs[-1][0] >= wait / _TICKS):
            self._highs.append((now, self._high))
        while len(self._highs) > 1 and self._highs[1][0] <= now - wait:
            self._highs.popleft()
        return self._highs[0][1] if self._highs and self._highs[0][0] <= now - wait else None

    def _take(self, released: Sequence[pa.Table]) -> None:
        """Write the lines that are ready, and rejected lines that none before them keeps waiting."""
        columns = [np.concatenate([table[name].to_numpy() for table in released] or [np.empty(0, np.int64)])
                   for name in ("input", "time")]  # fmt: skip
        inputs, times = columns
        counts = np.bincount(inputs, minlength=len(self.names)).tolist()
        taken = [one.take(count) for one, count in zip(self._waiting, counts, strict=True)]
        if not any(len(one.lengths) for one in taken):
            return
        merged = interleaved(taken, inputs)
        rejected = [line for name, one in zip(self.names, taken, strict=True) for line in _rejected(name, one)]
        newest = np.full(len(self.names), _NEVER)
        np.maximum.at(newest, inputs, times)
        came = {self.names[number]: int(newest[number]) for number in np.flatnonzero(newest > _NEVER).tolist()}
        at = {name: one.at for name, one in zip(self.names, self._waiting, strict=True)}
        self._commit.write(at, came, merged, b"".join(rejected))
        self._lines += len(inputs)
        for name, one in zip(self.names, taken, strict=True):
            self._rejected.update((name, reason.partition(":")[0]) for reason in one.reasons.values() if reason)


def _compile() -> None:
    """Compile the kernels of the merge, or load them, before lines arrive: this takes seconds the first time."""
    merge = ReadyMerge(1)
    merge.push(merge.init(), pa.table({"time": [0, 1]}), np.array([0, 1]), np.array([0, 0]))


def _next_lines(folder: str, start: int, end: int, most: int) -> bytes:
    """Return whole lines of [start, end) of a log, at most `most` bytes, or one line that is longer."""
    part = between(folder, start, end)[0]
    file, begin, stop = GrowingFile(part.path), start - part.begin, min(end, part.end) - part.begin
    text = file.read(begin, min(begin + most, stop))
    whole = text[: text.rfind(b"\n") + 1] or file.read(begin, file.after(begin, 1, stop)[0])
    check(part.path, begin, begin + len(whole))
    return whole


def _rejected(name: str, taken: TakenLines) -> list[bytes]:
    """Return the rejected lines of an input as lines of JSON, with the offset in its log and the reason; no empty ones."""
    ends = np.cumsum(taken.lengths).tolist()
    found = []
    for at, reason in taken.reasons.items():
        if reason:
            begin = ends[at - 1] if at else 0
            line = taken.text[begin : ends[at]].rstrip(b"\r\n").decode(errors="backslashreplace")
            row = {"input": name, "offset": taken.offset + begin, "reason": reason, "line": line}
            found.append(json.dumps(row).encode() + b"\n")
    return found
