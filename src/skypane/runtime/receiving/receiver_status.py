"""Status of one received input, and of the merge of all: its state, and counts since the receiver started."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from skypane.naming import shortened

WAITING, RECEIVING, FAILED = "waiting", "receiving", "failed"


@dataclass(slots=True)
class ReceivedInput:
    """Status of one input; its receiver writes it, any thread may read it.

    lines       lines written to the log since the start
    received    bytes of these lines
    again       messages that the sender marked as possible duplicates: they may be in the log twice
    unfinished  connections that ended within a line; this part of a line is dropped
    failures    number of failures; `reason` describes the last one
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
        """Count lines that were written to the log."""
        self.lines += lines.count(b"\n")
        self.received += len(lines)
        self.last = self.now()
        self.answers()

    def answers(self) -> None:
        """Record that the other side responds, with or without data."""
        self.state, self.reason = RECEIVING, ""

    def failed(self, reason: str) -> None:
        """Record why nothing is received."""
        self.state, self.reason = FAILED, shortened(reason)
        self.failures += 1

    @property
    def silent(self) -> float | None:
        """Seconds since the last line; None before the first."""
        return None if self.last is None else self.now() - self.last


@dataclass(frozen=True, slots=True)
class MergeStatus:
    """Status of a merge.

    lines     merged since the start
    waiting   lines that are read and wait
    waits_for the input that is furthest behind; empty if no line waits
    rejected  lines without a place in the order since the start, by input and reason
    reason    why nothing is merged; empty if the last step has succeeded
    """

    lines: int = 0
    waiting: int = 0
    waits_for: str = ""
    rejected: Mapping[tuple[str, str], int] = field(default_factory=lambda: MappingProxyType({}))
    reason: str = ""
