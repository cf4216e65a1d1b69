"""Plan micro-batches in the driver: how far each input is read, and by which task.

A batch's budget of rows is shared in step by event time (control/admission/alignment.py), where event times of waiting
rows can be estimated (event_times.py), else fairly (control/admission/sharing.py). Tasks are the readers of paper 3; its
Algorithm 1 assigns inputs to them. Their number follows from the rates that are forecast, or that meta-data state for a
time to come (control/admission/ahead.py, readers.py). Within a batch, two things differ from the paper: the rows of each
input are known before they are read, and an input moves to another task at no cost, since the task only receives its
offset. So the assignment needs no forecasts, and moves the slowest inputs first (ARI), which balances best. ARD starts
with the fastest inputs, which are too large to fit elsewhere and therefore stay. Readers that are left without an input
share the rows of those that can be divided.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from skypane.addresses import without_secrets
from skypane.control.admission import Admission, PeriodObservation
from skypane.control.admission.ahead import LEAD
from skypane.control.admission.readers import Backlog, Readers
from skypane.control.admission.sharing import fair_shares
from skypane.metrics import InputMetrics
from skypane.policy import Decision
from skypane.runtime.growing_files import LOOK
from skypane.runtime.spark.sources.many.discovery import discovered
from skypane.runtime.spark.sources.many.event_times import EventTimes, Waiting
from skypane.runtime.spark.sources.many.input_kind import (
    CheckedInput,
    DivisibleInput,
    Input,
    InputExtent,
    InputSpec,
    MarkedInput,
    OffsetRange,
    OrderedInput,
    PlannedInput,
    SettledInput,
)
from skypane.runtime.spark.sources.many.input_metrics import GrowthTracker
from skypane.runtime.spark.sources.many.lacking_columns import LackingColumns
from skypane.runtime.spark.sources.many.offsets import Offsets
from skypane.runtime.spark.sources.many.reader_count import ReaderCount
from skypane.runtime.spark.sources.many.sightings import Sightings
from skypane.types import CheckpointError, Duration, micros

ON_LOSS = ("fail", "skip")

_EVEN = 0.02
"""Share by which a task may exceed an even share of rows; a smaller one would move more inputs between tasks."""

_NAMED = 8
"""Names of inputs that a report lists, at most."""

_log = logging.getLogger(__name__)


def divided(tasks: Sequence[tuple[OffsetRange, ...]], readers: int) -> list[tuple[OffsetRange, ...]]:
    """Return tasks after inputs that can be divided are, among as many readers as have nothing to read."""
    large = [part for task in tasks for part in task if isinstance(part.input, DivisibleInput)]
    parts = [1] * len(large)
    for _ in range(readers - len(tasks) if large else 0):
        parts[max(range(len(large)), key=lambda at: (large[at].end - large[at].start) / parts[at])] += 1
    first: list[tuple[OffsetRange, ...]] = []
    others: list[tuple[OffsetRange, ...]] = []
    counts = iter(parts)
    for task in tasks:
        kept = []
        for part in task:
            one = part.input
            some = one.divided(part.start, part.end, next(counts)) if isinstance(one, DivisibleInput) else [part]
            kept.append(some[0])
            others += [(more,) for more in some[1:]]
        first.append(tuple(kept))
    return first + others


def _settled(one: InputExtent, place: int) -> tuple[InputExtent, int]:
    """Return the extent of an input that is read up to `place` without an incomplete row at its end, and the length of that.

    It does not wait to be read before it is complete. Inputs that keep marks have whole rows only, or know where these end.
    """
    if isinstance(one.input, SettledInput):
        last, unended = one.input.settled(place) or (one.last, 0)
        return replace(one, last=last), unended
    if not place < one.last <= place + LOOK or isinstance(one.input, MarkedInput):
        return one, 0
    return (one, 0) if one.input.complete(place, one.last) > place else (replace(one, last=place), one.last - place)


class Planner:
    """Plans micro-batches. Its state between batches improves plans but does not affect correctness: it may be lost."""

    def __init__(
        self,
        listing: Callable[[], Sequence[InputSpec]],
        readers: int | Readers,
        on_loss: str = "fail",
        times: EventTimes | None = None,
        lead: Duration = LEAD,
        lacking: LackingColumns | None = None,
    ) -> None:
        self.listing = listing
        #: looks for the columns of the schema in the inputs
        self.lacking = lacking
        self.on_loss = on_loss
        #: estimates event times of waiting rows; None: inputs are read regardless of event time
        self.times = times
        limit = readers.max_readers if isinstance(readers, Readers) else readers
        self.policy = Admission(max_readers=limit, strategy="ARI", even=_EVEN)
        self.sizing = ReaderCount(readers) if isinstance(readers, Readers) else None
        self.state = self.policy.init()
        #: inputs of the last discovery, by name
        self.found: dict[str, InputExtent] = {}
        #: offset units of a row, smoothed, of inputs that were read
        self.per_row: dict[str, float] = {}
        #: name -> last offset to read, if later rows are not wanted
        self.until: dict[str, int] | None = None
        #: name -> the place of the last row to read, of inputs whose end is known only so
        self.newest: dict[str, Any] = {}
        self.watch = GrowthTracker(lead=lead)
        self.sightings = Sightings()
        #: how the inputs of the last batch were assigned to readers
        self.assignment: Decision[int] | None = None
        #: start and end of the batch that was planned last
        self.batch = (Offsets({}), Offsets({}))
        #: the rows that inputs have lost last, in words
        self.lost: dict[str, str] = {}
        #: whether it was reported that no input exists
        self.absence_reported = False

    def stop_here(self, start: Offsets) -> None:
        """Stop at the rows that exist now."""
        self.until, self.newest = None, {}
        self.until = dict(self.latest(start, None).at)
        inputs = {name: one.input for name, one in self.found.items()}
        self.newest = {name: one.newest() for name, one in inputs.items() if isinstance(one, OrderedInput)}

    def latest(self, start: Offsets, rows: int | None) -> Offsets:
        """Return how far to read from `start`, at most `rows` rows (None: all); `start` itself without new rows."""
        end = self._latest(start, rows)
        self.batch = (start, end)
        return end

    def sighted(self, start: Offsets, end: Offsets, now: float) -> Offsets:
        """Return what latest() has returned with the time at which its last row came, and the bound on latency.

        now   the time in seconds since the epoch
        """
        self.sightings.look(now, self.found)
        if end == start:
            return start
        moved = {name: to for name, to in end.at.items() if to != start.at.get(name)}
        bound = None if self.sizing is None else micros(self.sizing.policy.latency) / 1e6
        return replace(end, seen=round(self.sightings.seen(moved, now) * 1e6), promised=bound)

    def begun(self, now: float) -> None:
        """Record that the assigned batch begins at the time `now` in seconds."""
        if self.sizing is not None:
            self.sizing.begun(now)

    def finished(self, now: float) -> None:
        """Record that Spark requests another batch, which ends the measurement of the last one."""
        if self.sizing is not None:
            self.sizing.finished(now)

    @property
    def decisions(self) -> list[Decision[Any]]:
        """The last decisions: on the rate ahead, if meta-data state one; on the number of readers; on their inputs."""
        count = None if self.sizing is None else self.sizing.decision
        made: tuple[Decision[Any] | None, ...] = (self.watch.ahead.decision, count, self.assignment)
        return [decision for decision in made if decision is not None]

    def seen(self, now: float, clock: float | None = None) -> list[InputMetrics]:
        """Return the metrics of each input; `now` is a time in seconds, `clock` the same in seconds since the epoch."""
        self.watch.look(now, self.found, self.per_row, clock)
        before, after = self.batch
        for name, one in self.found.items():
            if one.last > (place := after.at.get(name, one.first)):
                self._per_row(one.input, place)
        ends = {name: _settled(one, after.at.get(name, one.first)) for name, one in self.found.items()}
        found = {name: one for name, (one, _) in ends.items()}
        unended = {name: length for name, (_, length) in ends.items()}
        readers = {name: reader.number for reader in self.state.readers for name in reader.streams}
        waiting = {} if self.times is None else self.times.seconds_left()
        rows = self.watch.table(found, self.per_row, before.at, after.at, readers, waiting)
        return [replace(row, lost=self.lost.get(row.input), unended=unended.get(row.input, 0)) for row in rows]

    def _latest(self, start: Offsets, rows: int | None) -> Offsets:
        listing = self.listing()
        self.found = discovered(listing, start.at, start.marks)
        self._report_absence(listing)
        if self.lacking is not None:
            self.lacking.look(self.found)
        begins, lost = self._begins(start)
        lasts = {name: self._last(name, one) for name, one in self.found.items()}
        longer = {name: last for name, last in lasts.items() if last > begins[name]}
        if rows is None:
            ends = {name: self.found[name].input.complete(begins[name], last) for name, last in longer.items()}
        else:
            ends = self._shared(begins, longer, rows, start)
        moved = {name: end for name, end in (begins | ends).items() if end != start.at.get(name, 0)}
        if not moved:
            return start
        begun = {name: begins[name] for name in moved if begins[name] != start.at.get(name, 0)}
        end = Offsets({**start.at, **moved}, start.turn + (rows or 0), start.lost + lost, begun, self._logs(start.logs),
                      marks={**start.marks, **self._marks(moved)})  # fmt: skip
        if self.times is None or rows is None:
            return end
        return replace(end, waiting=self.times.waiting_since(), more=self.times.more)

    def _report_absence(self, listing: Sequence[InputSpec]) -> None:
        """Report once that no input exists: perhaps they are yet to come, perhaps a name is mistyped."""
        if self.found or self.absence_reported:
            return
        self.absence_reported = True
        names = sorted({without_secrets(claim) for one in listing for claim in one.claims})
        shown = ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
        _log.warning("no input exists yet: %s; check the names, or wait until one does", shown)

    def _last(self, name: str, one: InputExtent) -> int:
        """Return up to where rows of an input are wanted."""
        if self.until is None:
            return one.last
        if isinstance(one.input, OrderedInput) and name in self.newest:
            return one.input.last_up_to(self.newest[name])
        return min(one.last, self.until.get(name, 0))

    def _marks(self, moved: Mapping[str, int]) -> dict[str, list[Any]]:
        """Return the marks of inputs that are read up to these offsets."""
        inputs = {name: self.found[name].input for name in moved}
        return {name: list(one.mark(moved[name])) for name, one in inputs.items() if isinstance(one, MarkedInput)}

    def _logs(self, before: Mapping[str, str]) -> dict[str, str]:
        """Return the folders of logs with names of their own; a renamed log is listed under its new name only."""
        there = {name: one.input.log for name, one in self.found.items() if one.input.log is not None}
        gone = {name: log for name, log in before.items() if log not in there.values()}
        return gone | {name: log for name, log in there.items() if log != name}

    def _begins(self, start: Offsets) -> tuple[dict[str, int], int]:
        """Return where each input continues, and the number of inputs that lost rows."""
        begins: dict[str, int] = {}
        lost = 0
        for name, one in self.found.items():
            begins[name] = start.at.get(name, one.first)
            if one.lost:
                if self.on_loss == "fail":
                    raise CheckpointError(f'input {name}: {one.lost}, or set on_loss="skip" to read what is there')
                _log.warning("Skipped lost rows of input %s: %s", name, one.lost)
                self.lost[name] = one.lost
                begins[name], lost = one.first, lost + 1
            if self.on_loss == "fail" and isinstance(one.input, CheckedInput) and (unclear := one.input.unclear):
                raise CheckpointError(
                    f'input {name}: {unclear}, or set on_loss="skip" to continue without them, with one row that does not parse'
                )
        return begins, lost

    def _shared(self, begins: Mapping[str, int], lasts: Mapping[str, int], rows: int, start: Offsets) -> dict[str, int]:
        """Return where the inputs' shares of the rows end; backlogs are estimated from the size of rows."""
        wanted = {name: math.ceil((last - begins[name]) / self._per_row(self.found[name].input, begins[name]))
                  for name, last in lasts.items()}  # fmt: skip
        ends = {}
        for name, share in self._shares(begins, lasts, wanted, rows, start).items():
            ends[name], read = self.found[name].input.after(begins[name], share, lasts[name])
            if read:
                length = (ends[name] - begins[name]) / read
                self.per_row[name] = (self.per_row.get(name, length) + length) / 2
        return ends

    def _shares(
        self, begins: Mapping[str, int], lasts: Mapping[str, int], wanted: Mapping[str, int], rows: int, start: Offsets
    ) -> dict[str, int]:
        """Return the rows of each input; event times matter only in a batch that leaves rows, and in the one after it."""
        if self.times is None:
            return fair_shares(wanted, rows, start.turn)
        if sum(wanted.values()) <= rows and not start.more:
            self.times.all_read()
            return fair_shares(wanted, rows, start.turn)
        waiting = {name: Waiting(self.found[name].input, begins[name], lasts[name], wanted[name]) for name in wanted}
        return self.times.shares(waiting, rows, start.turn)

    def _per_row(self, one: Input, start: int) -> float:
        if one.name not in self.per_row:
            self.per_row[one.name] = one.per_row(start)
        return self.per_row[one.name]

    def assigned(self, start: Offsets, end: Offsets) -> list[tuple[OffsetRange, ...]]:
        """Return the ranges of each task of a batch, without tasks that have nothing to read."""
        wanted = {name: (end.begun.get(name, start.at.get(name, 0)), to) for name, to in end.at.items()}
        wanted = {name: (begin, to) for name, (begin, to) in wanted.items() if to > begin}
        if not wanted.keys() <= self.found.keys():
            self.found = discovered(self.listing(), marks=start.marks)
        ranges = {
            name: part for name, (begin, to) in wanted.items() if (part := self._range(name, begin, to, start, end))
        }
        silent = dict.fromkeys(self.found, 0.0)
        brought = silent | {
            name: (part.end - part.start) / self._per_row(self.found[name].input, part.start)
            for name, part in ranges.items()
        }
        if self.sizing is not None:
            self._size(self.sizing, brought, end)
        self.state, decision = self.policy.decide(
            self.policy.observe(self.state, PeriodObservation(brought)),
            {name: one.input.meta for name, one in self.found.items()},
        )
        self.assignment = Decision(
            "assignment", len(decision.value.readers), decision.because, decision.figures
        )  # without the names of all inputs, which the table has
        tasks = (tuple(ranges[name] for name in names if name in ranges) for names in decision.value.readers.values())
        return divided([task for task in tasks if task], self.policy.max_readers or 1)

    def _size(self, sizing: ReaderCount, brought: Mapping[str, float], end: Offsets) -> None:
        """Set the number of readers that the bound on latency requires; a new number assigns all inputs again."""
        rows = sum(brought.values())
        left = (
            max(one.last - end.at.get(name, one.first), 0) / self.per_row.get(name, 1.0)
            for name, one in self.found.items()
        )
        readers = sizing.decided(rows, Backlog(self.watch.ahead.rate, rows + sum(left), self.watch.ahead.because))
        if readers != self.policy.max_readers:
            self.policy = replace(self.policy, max_readers=readers)
            self.state = self.policy.init()

    def _range(self, name: str, begin: int, to: int, start: Offsets, end: Offsets) -> OffsetRange | None:
        """Return the range to read of an input; None if it is lost and skipped."""
        one = self.found.get(name)
        if one is not None and (self.on_loss == "fail" or one.first <= begin):
            planned = one.input
            if isinstance(planned, PlannedInput):
                planned = planned.planned(
                    start.marks.get(name, ()), end.marks.get(name, ()), skip=self.on_loss == "skip"
                )
            return OffsetRange(planned, begin, to)
        if self.on_loss == "fail":
            raise CheckpointError(
                f"input {name} is missing, but a started batch needs it up to {to:,}; restore it, or list it again, "
                "until the batch is done"
            )
        _log.warning("Skipped lost rows of input %s in [%d, %d)", name, begin, to)
        self.lost[name] = f"from {begin} to {to}"
        return OffsetRange(one.input, one.first, to) if one is not None and one.first < to else None
