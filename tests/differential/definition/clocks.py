"""Which clocks are off, from the words of skypane.progress.clock_offsets: again from the first row of a source each time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

SECOND: Final = 1_000_000


class Lead(NamedTuple):
    """How far a source was ahead of the stream in a batch, and the newest time of the stream after it."""

    lead: int
    newest: int


@dataclass
class Clocks:
    """All leads of all sources."""

    bound: int
    leads: dict[str, list[Lead]] = field(default_factory=dict)

    def take(self, shown: Mapping[str, int], newest: int) -> None:
        """Take the newest time of each source of a batch, by its own clock."""
        for source, time in shown.items():
            self.leads.setdefault(source, []).append(Lead(time - newest, newest))

    def offsets(self) -> dict[str, int]:
        """Return by how much each clock that is off is ahead."""
        found = {source: offset(leads, self.bound) for source, leads in self.leads.items()}
        return {source: by for source, by in found.items() if by is not None}


def offset(leads: Iterable[Lead], bound: int) -> int | None:
    """Return the offset that these leads of one source show, or None."""
    known: int | None = None
    seen: list[Lead] = []  # since the source was last within the bound, or refuted its offset
    windows: list[Lead] = []  # the largest lead of each window of a run that is alike, and the newest time at its end
    since, refuted = 0, 0
    for one in leads:
        if not seen and abs(one.lead) <= bound:
            continue
        if not seen:
            since = one.newest
        elif _refutes(one.lead, known, bound):
            refuted += 1
        else:
            refuted = 0
        seen.append(one)
        if refuted == 2:
            known, seen, windows, refuted = None, [], [], 0
        elif len(seen) % 4 == 0:
            best = Lead(max(lead for lead, _ in seen[-4:]), one.newest)
            if abs(best.lead) <= bound:
                known, seen, windows, refuted = None, [], [], 0
                continue
            windows.append(best)
            if max(windows).lead - min(windows).lead > bound:
                windows, since = [best], one.newest
            elif (
                len(windows) >= 3
                and one.newest - since >= 10 * bound
                and (known is None or abs(best.lead - known) > bound // 4)
            ):
                known = best.lead // SECOND * SECOND
    return known


def _refutes(lead: int, known: int | None, bound: int) -> bool:
    if known is None:
        return abs(lead) <= bound
    return abs(lead) <= min(bound, abs(known) // 4) or lead > known + bound
