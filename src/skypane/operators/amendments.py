"""Late rows that amend answered windows: the panes that are kept for them, and the versions of the answers.

    closed pane -> kept -> a late row re-enters it -> each answered window that holds it is answered again

A window can be amended until the punctuation is `within` past its end. A row may enter as long as all windows that hold
its pane can be amended or are not answered yet; otherwise it is late. For this, panes are kept from the first window on
that can be amended. If they take too many bytes, the oldest are discarded first, and their windows are final.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Self

from skypane.operators.entry.entry_rules import EntryRules
from skypane.operators.entry.pane_counts import PaneCount
from skypane.operators.open_panes import OpenPanes, P, WindowTask
from skypane.types import ConfigError, Micros
from skypane.windows import Windows

MAX_BYTES = 1 << 30
"""Default of the bytes of partials kept: a day of panes of a minute takes this with partials of 700 KiB each."""


@dataclass(frozen=True, slots=True)
class AmendRule:
    """How long windows can be amended.

    within     event time behind the punctuation
    max_bytes  bytes of partials kept for it
    changes    whether a version is answered as its difference from the one that it replaces
    """

    within: Micros
    max_bytes: int = MAX_BYTES
    changes: bool = False

    def __post_init__(self) -> None:
        if self.within <= 0:
            raise ConfigError(f"within must be longer than 0, got {self.within} microseconds")
        if self.max_bytes < 1:
            raise ConfigError(f"max_bytes must be at least 1, got {self.max_bytes}")


@dataclass(frozen=True, slots=True)
class AmendCounts:
    """Counts of the rows and windows that a batch amended, and of the panes kept after it.

    rows      rows that entered an answered window
    windows   windows that were answered for the second time or later, or that had no rows when they were passed
    panes     panes kept that no open window needs
    bytes     bytes of their partials
    discarded panes that this batch discarded because of max_bytes

    Since the job has amended windows:
    all_answered   windows answered
    all_amended    those of them that late rows have amended, once or more, or that were first answered because of them
    """

    rows: int = 0
    windows: int = 0
    panes: int = 0
    bytes: int = 0
    discarded: int = 0
    all_answered: int = 0
    all_amended: int = 0


@dataclass(frozen=True, slots=True)
class PaneSteps(Generic[P]):
    """The open panes of a batch: before it, with its partials, and after its windows were answered."""

    before: OpenPanes[P]
    now: OpenPanes[P]
    still: OpenPanes[P]


@dataclass(frozen=True, slots=True)
class ClosedPanes(Generic[P]):
    """Partials of the panes that only answered windows hold, as an immutable value.

    panes     the partials of each pane
    versions  the last version of each window that was amended or answered early; others have version 0
    first     the first window that can be amended; None before the first punctuation
    regular   the version at its end of each window that was answered early
    answered  windows answered since panes are kept
    amended_once   those of them that were amended, once or more, or that had no rows when they were passed
    """

    windows: Windows
    panes: Mapping[int, tuple[P, ...]] = field(default_factory=dict)
    versions: Mapping[int, int] = field(default_factory=dict)
    first: int | None = None
    regular: Mapping[int, int] = field(default_factory=dict)
    answered: int = 0
    amended_once: int = 0

    @classmethod
    def begun(cls, panes: OpenPanes[P]) -> Self:
        """Return the value for a stream that has not kept panes so far: its answered windows are final."""
        return cls(panes.windows, first=panes.next_window)

    def rules(self, gate: EntryRules) -> EntryRules:
        """Return the entry rules by which rows of the kept panes enter."""
        return gate if self.first is None else replace(gate, amends_from=self.windows.panes_of(self.first - 1).stop)

    def partials_of(self, panes: Iterable[int]) -> list[tuple[int, P]]:
        """Return the kept partials of these panes, which rows re-enter."""
        return [(pane, partial) for pane in sorted(set(panes)) for partial in self.panes.get(pane, ())]

    def amended(
        self, before: OpenPanes[P], now: OpenPanes[P], entered: Iterable[PaneCount], *, changes: bool
    ) -> list[WindowTask[P]]:
        """Return the answered windows that hold a pane which rows have entered, with their new versions, oldest first.

        before   the open panes before the batch
        now      the same with the batch's partials, and with those of the panes that its rows re-enter
        changes  whether the tasks have the panes of the versions that they replace
        """
        answered = before.next_window
        if answered is None:
            return []
        holding = (self.windows.windows_of(pane) for pane in {count.pane for count in entered})
        windows = sorted({window for held in holding for window in range(held.start, min(held.stop, answered))})
        if not windows:
            return []
        filled = sorted(self.panes.keys() | before.panes.keys())
        tasks = replace(now, panes={**self.panes, **now.panes}).tasks(windows)
        tasks = [replace(task, version=self._next_version(task.window, filled)) for task in tasks]
        if not changes:
            return tasks
        old = replace(now, panes={**self.panes, **before.panes}).tasks(windows)
        return [_replacing(task, was) for task, was in zip(tasks, old, strict=True)]

    def after_early(self, due: Iterable[WindowTask[P]]) -> Self:
        """Return the value with the versions of windows that are answered at their end, after early answers."""
        versions = {task.window: task.version for task in due if task.version}
        return replace(self, versions={**self.versions, **versions}, regular={**self.regular, **versions})

    def _is_amended(self, window: int) -> bool:
        return window in self.versions and self.versions[window] != self.regular.get(window)

    def _next_version(self, window: int, filled: Sequence[int]) -> int:
        """Return the version of a window that is answered again; one that had no rows so far is answered first now."""
        if window in self.versions:
            return self.versions[window] + 1
        span = self.windows.panes_of(window)
        return int(bisect_left(filled, span.start) < bisect_left(filled, span.stop))

    def after(self, now: OpenPanes[P], still: OpenPanes[P], amended: Collection[WindowTask[P]], due: int) -> Self:
        """Return the value after a batch that answers `due` windows for the first time, without late rows.

        The panes of `now` that are not in `still` are kept.
        """
        panes = {pane: partials for pane, partials in self.panes.items() if pane not in now.panes}
        panes |= {pane: partials for pane, partials in now.panes.items() if pane not in still.panes}
        return replace(
            self,
            panes=panes,
            versions={**self.versions, **{task.window: task.version for task in amended}},
            answered=self.answered + due + sum(task.version == 0 for task in amended),
            amended_once=self.amended_once + sum(not self._is_amended(task.window) for task in amended),
        )

    def limited(self, rule: AmendRule, punctuation: Micros | None, size: Callable[[P], int]) -> tuple[Self, int]:
        """Return the value without what the rule no longer keeps, and the number of panes discarded for their bytes."""
        if punctuation is None:
            return self, 0
        kept = self.from_window(self.windows.last_closed(punctuation - rule.within) + 1)
        sizes = {pane: sum(map(size, partials)) for pane, partials in kept.panes.items()}
        total, first = sum(sizes.values()), None
        for pane in sorted(sizes):
            if total <= rule.max_bytes:
                break
            total -= sizes[pane]
            first = pane // self.windows.panes_per_slide + 1
        if first is None:
            return kept, 0
        smaller = kept.from_window(first)
        return smaller, len(kept.panes) - len(smaller.panes)

    def from_window(self, window: int) -> Self:
        """Return the value without the panes and versions that only windows before `window` need."""
        first = window if self.first is None else max(self.first, window)
        oldest = self.windows.panes_of(first).start
        return replace(
            self,
            panes={pane: partials for pane, partials in self.panes.items() if pane >= oldest},
            versions={number: version for number, version in self.versions.items() if number >= first},
            first=first,
            regular={number: version for number, version in self.regular.items() if number >= first},
        )


def _replacing(task: WindowTask[P], was: WindowTask[P]) -> WindowTask[P]:
    """Return a task that is answered as the difference from `was`; the rows of `was` are removed in its version."""
    return replace(task, replaced=replace(was, version=task.version)) if was.panes else task


@dataclass(frozen=True, slots=True)
class Amendment(Generic[P]):
    """The effect of a batch on answered windows: those to answer again, what is kept from now on, and the counts."""

    tasks: list[WindowTask[P]]
    closed: ClosedPanes[P]
    counts: AmendCounts


def amendment(
    rule: AmendRule,
    closed: ClosedPanes[P],
    panes: PaneSteps[P],
    entered: Collection[PaneCount],
    due: int,
    punctuation: Micros | None,
    size: Callable[[P], int],
) -> Amendment[P]:
    """Return the effect of a batch.

    closed       what was kept before the batch
    entered      the rows that entered, by pane
    due          windows that it answers for the first time because the punctuation has passed them
    punctuation  the punctuation after the batch
    size         returns the bytes of a partial
    """
    tasks = closed.amended(panes.before, panes.now, entered, changes=rule.changes)
    kept, discarded = closed.after(panes.now, panes.still, tasks, due).limited(rule, punctuation, size)
    amended = {pane for task in tasks for pane, _ in task.panes}
    counts = AmendCounts(
        rows=sum(count.rows for count in entered if count.pane in amended),
        windows=len(tasks),
        panes=len(kept.panes),
        bytes=sum(size(partial) for partials in kept.panes.values() for partial in partials),
        discarded=discarded,
        all_answered=kept.answered,
        all_amended=kept.amended_once,
    )
    return Amendment(tasks, kept, counts)
