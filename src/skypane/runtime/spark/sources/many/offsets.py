"""How far all inputs are read: one entry of Spark's offset log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from skypane.metrics import PROMISED, SEEN, WAITING


@dataclass(frozen=True, slots=True)
class Offsets:
    """How far all inputs are read.

    at     name -> offset; inputs that were removed keep theirs for their return
    turn   rotates the inputs that get the remainder of an uneven division
    lost   how often rows to be read no longer existed and were skipped
    begun  name -> the offset at which the batch that ends here began, for inputs that did not continue where the last
           batch ended: a new input that begins after 0, or an input of which rows were skipped
    logs   name -> folder, for receivers' logs with names of their own: a receiver looks up there what was read
    waiting   column of event time -> the event time in microseconds since which rows waited when the batch that ends
              here was planned, of the input that was farthest behind; {} if it is unknown, or neither this batch nor
              the one before left rows
    marks  name -> what an input keeps beside its offset (MarkedInput)
    more      whether the batch that ends here left rows, if event times of waiting rows are estimated
    seen      when the last row before here was seen, in microseconds since the epoch
    promised  the bound on latency by which the number of readers was chosen, in seconds
    """

    at: Mapping[str, int]
    turn: int = 0
    lost: int = 0
    begun: Mapping[str, int] = field(default_factory=dict)
    logs: Mapping[str, str] = field(default_factory=dict)
    waiting: Mapping[str, int] = field(default_factory=dict)
    more: bool = False
    marks: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    seen: int | None = None
    promised: float | None = None

    @classmethod
    def of(cls, offset: Mapping[str, Any]) -> Offsets:
        """Return the offsets from an entry of Spark's offset log."""
        more = {name: dict(offset.get(name, {})) for name in ("begun", "logs", WAITING, "marks")}
        return cls(dict(offset["at"]), int(offset["turn"]), int(offset["lost"]), **more, more="more" in offset,
                   seen=offset.get(SEEN), promised=offset.get(PROMISED))  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        more = {name: dict(values) for name in ("begun", "logs", WAITING, "marks") if (values := getattr(self, name))}
        left = {"more": True} if self.more else {}
        latency = {SEEN: self.seen, PROMISED: self.promised}
        latency = {name: value for name, value in latency.items() if value is not None}
        return {"at": dict(self.at), "turn": self.turn, "lost": self.lost, **more, **left, **latency}
