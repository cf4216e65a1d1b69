"""What a receiver says of one input: counts since it started, and how it stands."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from skypane.naming import shortened

WAITING, RECEIVING, FAILED = "waiting", "receiving", "failed"


@dataclass(slots=True)
class Seen:
    """One input. Written by its receiver, read by whoever looks.

    lines       that are in the log since the start
    received    bytes of them
    again       messages that a sender says it may have sent before: they may be in the log twice
    unfinished  ends of connections within a line, which is no line then
    failures    how often it has failed; `reason` is the last one's, in a sentence
    """

    name: str
    now: Callable[[], float] = field(default=time.monotonic, repr=False)
    state: str = WAITING
    reason: str = ""
    lines: int = 0
    received: int = 0
    again: int = 0
    unfinished: int = 0
    failures: int = 0
    last: float | None = None

    def wrote(self, lines: bytes) -> None:
        """Count what is in the log now."""
        self.lines += lines.count(b"\n")
        self.received += len(lines)
        self.last = self.now()
        self.answers()

    def answers(self) -> None:
        """Note that the other side is there, whether or not it has something to tell."""
        self.state, self.reason = RECEIVING, ""

    def failed(self, reason: str) -> None:
        """Note why nothing comes."""
        self.state, self.reason = FAILED, shortened(reason)
        self.failures += 1

    @property
    def silent(self) -> float | None:
        """Seconds since the last line; None before the first."""
        return None if self.last is None else self.now() - self.last
