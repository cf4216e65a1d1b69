"""Evidence of a cause, which a rule finds in the metrics of the last batches, and the order of all causes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from skypane.metrics import BatchMetrics, QueryMetrics
from skypane.types import Micros
from skypane.wording import span

MINUTE: Final[Micros] = 60_000_000
HALF: Final[Micros] = 30 * MINUTE
HOUR: Final[Micros] = 2 * HALF
DAY: Final[Micros] = 24 * HOUR
YEAR: Final[Micros] = 365 * DAY

FAMILIES: Final[Mapping[str, str]] = {
    # what is lost
    "rows lost at the source": "lost",
    "rejected rows": "rejected",
    "times in the wrong unit": "unit",
    "drained too early": "late",
    "late in the wrong unit": "late",
    "read again": "late",
    "input behind": "late",
    "clock ahead": "late",
    "clock behind": "late",
    "uploads": "late",
    "source behind": "late",
    "max_slack too small": "late",
    "out of order": "late",
    "windows amended": "amended",
    "clock off": "clock",
    "time zone": "zone",
    # what may be lost
    "rows held": "held",
    "disk nearly full": "disk",
    # what is delayed
    "no rows": "stopped",
    "punctuation waits": "stuck",
    "input gone": "gone",
    "input silent": "silent",
    "source silent": "silent",
    "inputs fall behind": "behind",
    # what takes long
    "slow sink": "slow",
    "slow checkpoint": "slow",
    "skew": "slow",
    "slow panes": "slow",
    "slow windows": "slow",
    "slow source": "slow",
}
"""All causes in order of weight, each with its family: of those of one family about the same, the first one is reported."""


HELD: Final = "held"
"""The reason of rows that are held, among the reasons of rejected ones."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A cause that shows in the last batches; fields as in Cause.

    number   how many in these batches, of which `fresh` in the last one; None: the number is how many there are now
    begin    the place of the first of these batches in the history
    """

    name: str
    about: str
    what: str
    number: int
    fresh: int | None
    begin: int
    why: str
    remedy: str
    reason: str = ""

    @property
    def shows(self) -> bool:
        """Whether the cause shows in the last batch."""
        return self.fresh is None or self.fresh > 0


class Step(NamedTuple):
    """A batch, and what it was for one query: for a stream's only query the batch itself."""

    batch: BatchMetrics
    own: BatchMetrics | QueryMetrics


Steps = Sequence[Step]


def since(values: Sequence[object]) -> int:
    """Return the place from which on all values are true; the number of values if the last one is not."""
    return next((at + 1 for at in reversed(range(len(values))) if not values[at]), 0)


def learned(steps: Steps, length: Micros) -> int:
    """Return the place of the first batch by which a stream is older than `length`, so that no policy can learn it any more."""
    first = steps[0].own.newest
    if steps[0].batch.batch_id or first is None:
        return 0
    return next((at for at, step in enumerate(steps) if (step.own.newest or first) - first >= length), len(steps))


def about(length: Micros) -> str:
    """Return a length in words, rounded, with a remark if it may be the offset of a time zone."""
    if is_zone(length):
        return f"{span(_halves(length) * HALF)} (a whole number of half hours, as between time zones)"
    size = abs(length)
    if size >= 2 * YEAR:
        return f"{size // YEAR} years"
    return span(round(size / DAY) * DAY if size >= 2 * DAY else round(size, 2 - len(str(size))))


def is_zone(length: Micros, tolerance: Micros = 3 * MINUTE) -> bool:
    """Return whether a length may be the offset of a time zone: half hours, up to 14 hours."""
    halves = _halves(length)
    return 1 <= halves <= 28 and abs(abs(length) - halves * HALF) <= min(tolerance, halves * 3 * MINUTE)


def _halves(length: Micros) -> int:
    return round(abs(length) / HALF)
