"""In the driver: how far each input is read in a micro-batch, and which task reads which of them.

A batch's budget of rows is shared fairly (control/admission/sharing.py). Tasks are the readers of paper 3, and Algorithm 1
says which inputs each of them reads. Here what every input brings is known before it is read, and handing an input to
another task is no more than naming its place to it; so last rates (ARD) are the right ones, and nothing is forecast.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skypane.control.admission import Admission, Seen
from skypane.control.admission.sharing import fair_shares
from skypane.runtime.spark.sources.many.growing import Growing
from skypane.runtime.spark.sources.many.listing import FileInput, discovered
from skypane.types import CheckpointError

ON_LOSS = ("fail", "skip")
_LOOK = 1 << 16
"""Bytes of an input that are looked at for the length of its lines, before any were read."""


@dataclass(frozen=True, slots=True)
class Range:
    """Bytes [start, end) of an input: whole lines."""

    input: FileInput
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Offsets:
    """How far all inputs are read.

    at     name -> bytes; inputs that have left keep their place, for when they come back
    turn   whose turn it is to get what does not divide
    lost   how often an input was found shorter than it was read, and was begun anew
    """

    at: Mapping[str, int]
    turn: int = 0
    lost: int = 0

    @classmethod
    def of(cls, offset: Mapping[str, Any]) -> Offsets:
        """Return the offsets that Spark's log holds."""
        return cls(dict(offset["at"]), int(offset["turn"]), int(offset["lost"]))

    def to_json(self) -> dict[str, Any]:
        return {"at": dict(self.at), "turn": self.turn, "lost": self.lost}


class Planner:
    """Plans micro-batches. What it keeps from one to the next makes them better, not right: it may be lost."""

    def __init__(self, listing: Callable[[], Sequence[FileInput]], readers: int, on_loss: str = "fail") -> None:
        self.listing = listing
        self.on_loss = on_loss
        self.law = Admission(most=readers, strategy="ARD")
        self.state = self.law.init()
        #: bytes of a line, smoothed, of inputs that were read
        self.line: dict[str, float] = {}
        #: name -> where to stop, if what comes from now on is not wanted
        self.until: dict[str, int] | None = None

    def stop_here(self, start: Offsets) -> None:
        """Read from now on only what is there now."""
        self.until = None
        self.until = dict(self.latest(start, None).at)

    def latest(self, start: Offsets, rows: int | None) -> Offsets:
        """Return how far to read from `start`, at most `rows` rows, or all; `start` itself if nothing has come."""
        begins, sizes, lost = self._open(start)
        if rows is None:
            ends = {name: Growing(one.path).complete(begins[name]) for name, one in sizes.items()}
        else:
            ends = self._shared(begins, sizes, rows, start.turn)
        if self.until is not None:
            ends = {name: min(end, self.until[name]) for name, end in ends.items() if name in self.until}
        moved = {name: end for name, end in ends.items() if end != start.at.get(name, 0)}
        if not moved:
            return start
        return Offsets({**start.at, **moved}, start.turn + (rows or 0), start.lost + lost)

    def _open(self, start: Offsets) -> tuple[dict[str, int], dict[str, FileInput], int]:
        """Return where each input goes on, those that have something to read, and how many were found shorter."""
        begins: dict[str, int] = {}
        inputs: dict[str, FileInput] = {}
        lost = 0
        for name, one in discovered(self.listing()).items():
            begins[name], size = start.at.get(name, 0), Growing(one.path).size()
            if size is not None and size < begins[name]:
                if self.on_loss == "fail":
                    raise CheckpointError(
                        f"input {name}: {one.path} has {size:,} bytes, of which {begins[name]:,} were read: it was cut, or "
                        'another file is in its place; put it back, name the new one differently, or set on_loss="skip" '
                        "to read what is there from its beginning"
                    )
                begins[name], lost = 0, lost + 1
            if size is not None and size > begins[name]:
                inputs[name] = one
        return begins, inputs, lost

    def _shared(
        self, begins: Mapping[str, int], inputs: Mapping[str, FileInput], rows: int, turn: int
    ) -> dict[str, int]:
        """Return where the inputs' fair shares of the rows end; how many rows wait is judged by the length of lines."""
        limits = self.until or {}
        wanted = {}
        for name, one in inputs.items():
            waiting = min(Growing(one.path).size() or 0, limits.get(name, math.inf)) - begins[name]
            wanted[name] = math.ceil(max(waiting, 0) / self._line(name, one, begins[name]))
        ends = {}
        for name, share in fair_shares(wanted, rows, turn).items():
            end, lines = Growing(inputs[name].path).after(begins[name], share)
            ends[name] = end
            if lines:
                length = (end - begins[name]) / lines
                self.line[name] = (self.line.get(name, length) + length) / 2
        return ends

    def _line(self, name: str, one: FileInput, start: int) -> float:
        """Return how many bytes a line of an input has, as far as that is known."""
        if name not in self.line:
            block = Growing(one.path).read(start, start + _LOOK)
            lines = block.count(b"\n")
            if not lines:
                return float(len(block))
            self.line[name] = (block.rfind(b"\n") + 1) / lines
        return self.line[name]

    def assigned(self, start: Offsets, end: Offsets) -> list[tuple[Range, ...]]:
        """Return what each task reads of a batch, none nothing."""
        inputs = discovered(self.listing())
        ranges: dict[str, Range] = {}
        for name, to in end.at.items():
            begin = start.at.get(name, 0)
            if to == begin:
                continue
            if name not in inputs:
                raise CheckpointError(
                    f"input {name} is not there any more, and a batch that has begun needs its bytes up to {to:,}; put it "
                    "back into the list, or the file into its place, until the batch is done"
                )
            ranges[name] = Range(inputs[name], begin if begin < to else 0, to)
        brought = {name: float(part.end - part.start) for name, part in ranges.items()}
        self.state, decision = self.law.decide(
            self.law.observe(self.state, Seen(brought)), {name: one.meta for name, one in inputs.items()}
        )
        tasks = (tuple(ranges[name] for name in names if name in ranges) for names in decision.value.readers.values())
        return [task for task in tasks if task]
