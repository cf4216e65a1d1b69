"""A cause of losses or delays, in the words of its one line: what, how many, since when, why, and what to set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from skypane.types import TICKS_PER_SECOND
from skypane.wording import counted, stamp

_SECOND: Final = TICKS_PER_SECOND["us"]


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause that holds after a batch.

    name      which cause: a key of skypane.diagnosis.evidence.FAMILIES
    about     the reason, source or input that it concerns; "" for the stream
    what      what is counted, a plural, such as "late rows"
    number    how many of them since the cause began
    batch     the batch with which it began, and `since`, when that did, in seconds since the epoch
    last      the last batch in which it showed
    stated    the number at the time of the texts: they are renewed once it has doubled, so that they stay the same for long
    why       the reason, for people
    remedy    what to set or repair
    reason    the reason for which its rows are rejected, or "held"; "" if no rows are concerned
    query     the query of several that it concerns; "" for all
    examples  up to three of its rows, as texts
    """

    name: str
    about: str
    what: str
    number: int
    batch: int
    since: float
    last: int
    stated: int
    why: str
    remedy: str
    reason: str = ""
    query: str = ""
    examples: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        """The name, the subject and the query, by which causes of successive batches are the same."""
        return self.name, self.about, self.query

    @property
    def begun(self) -> str:
        """Since when it holds: "batch 12 (2026-11-30 04:20 UTC)"."""
        return f"batch {self.batch} ({stamp(round(self.since * _SECOND))} UTC)"

    @property
    def line(self) -> str:
        """The cause in one line."""
        of = f"{self.query}: " if self.query else ""
        rows = f"; for example {' | '.join(self.examples)}" if self.examples else ""
        return f"{of}{counted(self.number, self.what)} since {self.begun}: {self.why}; {self.remedy}{rows}"
