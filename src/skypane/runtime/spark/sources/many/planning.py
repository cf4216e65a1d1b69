"""In the driver: how far each input is read in a micro-batch, and which task reads which of them.

A batch's budget of rows is shared fairly (control/admission/sharing.py). Tasks are the readers of paper 3, and Algorithm 1
says which inputs each of them reads. Here what every input brings is known before it is read, and handing an input to
another task is no more than naming its place to it. So nothing is forecast, and what moves first is what evens out best:
the slowest inputs (ARI). ARD's fastest ones are too large to fit elsewhere, and stay.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from skypane.control.admission import Admission, Seen
from skypane.control.admission.readers import Readers, Waiting
from skypane.control.admission.sharing import fair_shares
from skypane.control.law import Decision
from skypane.metrics import InputSeen
from skypane.runtime.spark.sources.many.kinds import Found, Input, Listed, Range
from skypane.runtime.spark.sources.many.listing import discovered
from skypane.runtime.spark.sources.many.sizing import Sizing
from skypane.runtime.spark.sources.many.watching import Watch
from skypane.types import CheckpointError

ON_LOSS = ("fail", "skip")

_EVEN = 0.02
"""Share by which a task may have more rows than an even share. It could be less: then more inputs change their task."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Offsets:
    """How far all inputs are read.

    at     name -> its place; inputs that have left keep theirs, for when they come back
    turn   whose turn it is to get what does not divide
    lost   how often something that was to be read was not there any more, and was skipped
    begun  name -> where the batch that ends here began to read, of inputs that did not begin where the last one ended:
           the first one of what is new there is later than 0, or something was skipped
    logs   name -> its folder, of receivers' logs with a name of their own: by it a receiver finds what was read
    """

    at: Mapping[str, int]
    turn: int = 0
    lost: int = 0
    begun: Mapping[str, int] = field(default_factory=dict)
    logs: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, offset: Mapping[str, Any]) -> Offsets:
        """Return the offsets that Spark's log holds."""
        more = {name: dict(offset.get(name, {})) for name in ("begun", "logs")}
        return cls(dict(offset["at"]), int(offset["turn"]), int(offset["lost"]), **more)

    def to_json(self) -> dict[str, Any]:
        more = {name: dict(said) for name in ("begun", "logs") if (said := getattr(self, name))}
        return {"at": dict(self.at), "turn": self.turn, "lost": self.lost, **more}


class Planner:
    """Plans micro-batches. What it keeps from one to the next makes them better, not right: it may be lost."""

    def __init__(self, listing: Callable[[], Sequence[Listed]], readers: int | Readers, on_loss: str = "fail") -> None:
        self.listing = listing
        self.on_loss = on_loss
        most = readers.most if isinstance(readers, Readers) else readers
        self.law = Admission(most=most, strategy="ARI", even=_EVEN)
        self.sizing = Sizing(readers) if isinstance(readers, Readers) else None
        self.state = self.law.init()
        #: what the last look found, by name
        self.found: dict[str, Found] = {}
        #: places that a row takes, smoothed, of inputs that were read
        self.per_row: dict[str, float] = {}
        #: name -> where to stop, if what comes from now on is not wanted
        self.until: dict[str, int] | None = None
        self.watch = Watch()
        #: from where to where the batch goes that was planned last
        self.batch = (Offsets({}), Offsets({}))

    def stop_here(self, start: Offsets) -> None:
        """Read from now on only what is there now."""
        self.until = None
        self.until = dict(self.latest(start, None).at)

    def latest(self, start: Offsets, rows: int | None) -> Offsets:
        """Return how far to read from `start`, at most `rows` rows, or all; `start` itself if nothing has come."""
        end = self._latest(start, rows)
        self.batch = (start, end)
        return end

    def begun(self, now: float) -> None:
        """Note that the batch that was assigned begins, at a time in seconds."""
        if self.sizing is not None:
            self.sizing.begun(now)

    def finished(self, now: float) -> None:
        """Note that Spark asks for another batch: what the last one was for its readers is known."""
        if self.sizing is not None:
            self.sizing.finished(now)

    @property
    def sized(self) -> Decision[int] | None:
        """What was decided on the number of readers, where it is."""
        return None if self.sizing is None else self.sizing.decision

    def seen(self, now: float) -> list[InputSeen]:
        """Return what there is to be seen of each input; `now` is a time in seconds."""
        self.watch.look(now, self.found, self.per_row)
        before, after = self.batch
        for name, one in self.found.items():
            if one.last > (place := after.at.get(name, one.first)):
                self._per_row(one.input, place)
        readers = {name: reader.number for reader in self.state.readers for name in reader.streams}
        return self.watch.table(self.found, self.per_row, before.at, after.at, readers)

    def _latest(self, start: Offsets, rows: int | None) -> Offsets:
        self.found = discovered(self.listing(), start.at)
        begins, lost = self._begins(start)
        lasts = {name: one.last if self.until is None else min(one.last, self.until.get(name, 0))
                 for name, one in self.found.items()}  # fmt: skip
        waiting = {name: last for name, last in lasts.items() if last > begins[name]}
        if rows is None:
            ends = {name: self.found[name].input.complete(begins[name], last) for name, last in waiting.items()}
        else:
            ends = self._shared(begins, waiting, rows, start.turn)
        moved = {name: end for name, end in (begins | ends).items() if end != start.at.get(name, 0)}
        if not moved:
            return start
        begun = {name: begins[name] for name in moved if begins[name] != start.at.get(name, 0)}
        return Offsets(
            {**start.at, **moved}, start.turn + (rows or 0), start.lost + lost, begun, self._logs(start.logs)
        )

    def _logs(self, before: Mapping[str, str]) -> dict[str, str]:
        """Return the folders of logs with a name of their own; a log that is called otherwise now has its new name."""
        there = {name: one.input.log for name, one in self.found.items() if one.input.log is not None}
        gone = {name: log for name, log in before.items() if log not in there.values()}
        return gone | {name: log for name, log in there.items() if log != name}

    def _begins(self, start: Offsets) -> tuple[dict[str, int], int]:
        """Return where each input goes on, and of how many something was lost."""
        begins: dict[str, int] = {}
        lost = 0
        for name, one in self.found.items():
            begins[name] = start.at.get(name, one.first)
            if one.lost:
                if self.on_loss == "fail":
                    raise CheckpointError(f'input {name}: {one.lost}, or set on_loss="skip" to read what is there')
                _log.warning("Skipped what was lost of input %s: %s", name, one.lost)
                begins[name], lost = one.first, lost + 1
        return begins, lost

    def _shared(self, begins: Mapping[str, int], lasts: Mapping[str, int], rows: int, turn: int) -> dict[str, int]:
        """Return where the inputs' fair shares of the rows end; how many wait is judged by the places that rows take."""
        wanted = {name: math.ceil((last - begins[name]) / self._per_row(self.found[name].input, begins[name]))
                  for name, last in lasts.items()}  # fmt: skip
        ends = {}
        for name, share in fair_shares(wanted, rows, turn).items():
            ends[name], read = self.found[name].input.after(begins[name], share, lasts[name])
            if read:
                length = (ends[name] - begins[name]) / read
                self.per_row[name] = (self.per_row.get(name, length) + length) / 2
        return ends

    def _per_row(self, one: Input, start: int) -> float:
        if one.name not in self.per_row:
            self.per_row[one.name] = one.per_row(start)
        return self.per_row[one.name]

    def assigned(self, start: Offsets, end: Offsets) -> list[tuple[Range, ...]]:
        """Return what each task reads of a batch, none nothing."""
        wanted = {name: (end.begun.get(name, start.at.get(name, 0)), to) for name, to in end.at.items()}
        wanted = {name: (begin, to) for name, (begin, to) in wanted.items() if to > begin}
        if not wanted.keys() <= self.found.keys():
            self.found = discovered(self.listing())
        ranges = {name: part for name, (begin, to) in wanted.items() if (part := self._range(name, begin, to))}
        silent = dict.fromkeys(self.found, 0.0)
        brought = silent | {
            name: (part.end - part.start) / self._per_row(part.input, part.start) for name, part in ranges.items()
        }
        if self.sizing is not None:
            self._size(self.sizing, brought, end)
        self.state, decision = self.law.decide(
            self.law.observe(self.state, Seen(brought)), {name: one.input.meta for name, one in self.found.items()}
        )
        tasks = (tuple(ranges[name] for name in names if name in ranges) for names in decision.value.readers.values())
        return [task for task in tasks if task]

    def _size(self, sizing: Sizing, brought: Mapping[str, float], end: Offsets) -> None:
        """Let as many readers read as the bound on latency asks for; which of them reads what is shared out anew then."""
        rows = sum(brought.values())
        left = (
            max(one.last - end.at.get(name, one.first), 0) / self.per_row.get(name, 1.0)
            for name, one in self.found.items()
        )
        readers = sizing.decided(rows, Waiting(sum(self.watch.forecasts.values()), rows + sum(left)))
        if readers != self.law.most:
            self.law = replace(self.law, most=readers)
            self.state = self.law.init()

    def _range(self, name: str, begin: int, to: int) -> Range | None:
        """Return what is read of an input; None if it is lost, and may be skipped."""
        one = self.found.get(name)
        if one is not None and (self.on_loss == "fail" or one.first <= begin):
            return Range(one.input, begin, to)
        if self.on_loss == "fail":
            raise CheckpointError(
                f"input {name} is not there any more, and a batch that has begun needs it up to {to:,}; put it back into "
                "the list, or into its place, until the batch is done"
            )
        _log.warning("Skipped what was lost of input %s in [%d, %d)", name, begin, to)
        return Range(one.input, one.first, to) if one is not None and one.first < to else None
