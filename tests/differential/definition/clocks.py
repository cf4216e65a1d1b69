"""Which clocks are off, from the words of skypane.progress.clock_offsets: again from the first row of a source each time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

SECOND: Final = 1_000_000


class Lead(NamedTuple):
    """How far a source was ahead of most others in a batch, the newest time of the stream after it, and how far right clocks may be."""

    lead: int
    newest: int
    near: int


@dataclass
class Clocks:
    """All leads of all sources, of which there are fewer than are remembered."""

    bound: int
    leads: dict[str, list[Lead]] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)
    newest: int | None = None

    def take(self, shown: Mapping[str, int], newest: int, rows: Mapping[str, int] | None = None) -> None:
        """Take the newest time of each source of a batch, by its own clock, and its rows, one of each if not given."""
        moved = 0 if self.newest is None else newest - self.newest
        self.newest = newest
        self.last |= {source: time - newest for source, time in shown.items()}
        assert len(self.last) <= 64
        if len(self.last) < 3:
            return
        usual = _middle(self.last.values())
        spread = _middle(abs(lead - usual) for lead in self.last.values())
        for source, time in shown.items():
            number = rows[source] if rows else 1
            near = max(self.bound, 2 * spread, min(moved, 2 * moved // number))
            lead = time - newest - (usual if abs(usual) > self.bound else 0)
            self.leads.setdefault(source, []).append(Lead(lead, newest, near))

    def offsets(self) -> dict[str, int]:
        """Return by how much each clock that is off is ahead."""
        found = {source: offset(leads, self.bound) for source, leads in self.leads.items()}
        return {source: by for source, by in found.items() if by is not None}


def _middle(values: Iterable[int]) -> int:
    """Return the middle one, of two the smaller."""
    ordered = sorted(values)
    return ordered[(len(ordered) - 1) // 2]


def offset(leads: Iterable[Lead], bound: int) -> int | None:
    """Return the offset that these leads of one source show, or None."""
    known: int | None = None
    seen: list[Lead] = []  # since the source was last within the bound, or refuted its offset
    windows: list[Lead] = []  # the largest lead of each window of a run that is alike, and the newest time at its end
    since, refuted = 0, 0
    for one in leads:
        near = one.near if known is None else bound
        if not seen and abs(one.lead) <= near:
            continue
        if not seen:
            since = one.newest
        elif _refutes(one.lead, known, bound, near):
            refuted += 1
        else:
            refuted = 0
        seen.append(one)
        if refuted == 2:
            known, seen, windows, refuted = None, [], [], 0
        elif len(seen) % 4 == 0:
            best = one._replace(lead=max(each.lead for each in seen[-4:]))
            if abs(best.lead) <= near:
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


def _refutes(lead: int, known: int | None, bound: int, near: int) -> bool:
    if known is None:
        return abs(lead) <= near
    return abs(lead) <= min(bound, abs(known) // 4) or lead > known + bound
