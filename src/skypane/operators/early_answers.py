"""Early answers: an open window is answered from the rows that have come so far, and once more at its end.

    rows enter -> the newest time has moved by `every` since the last early answers
               -> each open window that has begun and has new rows is answered, as its next version
    the punctuation passes the end of a window -> it is answered as its next version, which is not early any more

The newest time is that of the progress policy (ProgressState.newest), and held rows are in no early answer. No clock is
involved, so a stream that is replayed batch by batch gives the same versions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Self

from skypane.operators.amendments import PaneSteps
from skypane.operators.entry.pane_counts import PaneCount
from skypane.operators.open_panes import OpenPanes, P, WindowTask
from skypane.progress.progress_policy import ProgressState
from skypane.types import ConfigError, Micros


@dataclass(frozen=True, slots=True)
class EarlyRule:
    """How often open windows are answered.

    every    event time by which the newest time moves between two early answers
    changes  whether a version is answered as its difference from the one that it replaces
    """

    every: Micros
    changes: bool = False

    def __post_init__(self) -> None:
        if self.every <= 0:
            raise ConfigError(f"early must be longer than 0, got {self.every} microseconds")


@dataclass(frozen=True, slots=True)
class EarlyAnswers(Generic[P]):
    """The early answers of the open windows, as an immutable value.

    newest    the newest time of the stream at the last early answers; None before the first
    versions  the last version of each open window that has one
    fresh     open panes that rows have entered since then, or that are held
    shown     the partials from which these versions were answered, by pane; empty unless versions are changes
    """

    newest: Micros | None = None
    versions: Mapping[int, int] = field(default_factory=dict)
    fresh: frozenset[int] = frozenset()
    shown: Mapping[int, tuple[P, ...]] = field(default_factory=dict)

    def next_versions(self, tasks: Sequence[WindowTask[P]], panes: OpenPanes[P], *, early: bool) -> list[WindowTask[P]]:
        """Return tasks of open windows as versions that follow those that the windows have."""
        if not self.versions and not early:
            return [*tasks]
        before = replace(panes, panes=dict(self.shown)).tasks(task.window for task in tasks)
        return [self._next(task, was, early=early) for task, was in zip(tasks, before, strict=True)]

    def _next(self, task: WindowTask[P], was: WindowTask[P], *, early: bool) -> WindowTask[P]:
        version = self.versions.get(task.window, -1) + 1
        # The rows of the version before are removed in the new one.
        replaced = replace(was, version=version, early=True) if version and was.panes else None
        return replace(task, version=version, early=early, replaced=replaced)

    def due(self, rule: EarlyRule, newest: Micros | None) -> bool:
        """Return whether the newest time has moved far enough for the next early answers."""
        return newest is not None and (self.newest is None or newest - self.newest >= rule.every)

    def changed(self, panes: OpenPanes[P], newest: Micros) -> list[int]:
        """Return the open windows that have begun, and have rows that are in no version of them, oldest first."""
        windows = panes.windows
        fresh = {window for pane in self.fresh & panes.panes.keys() for window in windows.windows_of(pane)}
        return [
            window
            for window in panes.unanswered()
            if windows.bounds(window)[0] <= newest and (window in fresh or window not in self.versions)
        ]

    def entered(self, counts: Iterable[PaneCount], still: OpenPanes[P]) -> Self:
        """Return the value after a batch whose rows entered panes, and that leaves the panes `still` open."""
        fresh = self.fresh.union(count.pane for count in counts) & still.panes.keys()
        following = still.next_window
        if following is None:
            return replace(self, fresh=fresh)
        oldest = still.windows.panes_of(following).start
        return replace(
            self,
            fresh=fresh,
            versions={window: version for window, version in self.versions.items() if window >= following},
            shown={pane: partials for pane, partials in self.shown.items() if pane >= oldest},
        )


@dataclass(frozen=True, slots=True)
class EarlyStep(Generic[P]):
    """The effect of a batch on early answers.

    due    the windows to answer at their end, as the versions that follow the early ones
    tasks  the open windows to answer early, oldest first
    early  the value after the batch
    """

    due: list[WindowTask[P]]
    tasks: list[WindowTask[P]]
    early: EarlyAnswers[P]


def early_step(
    rule: EarlyRule,
    early: EarlyAnswers[P],
    panes: PaneSteps[P],
    entered: Collection[PaneCount],
    due: Sequence[WindowTask[P]],
    progress: ProgressState,
) -> EarlyStep[P]:
    """Return the effect of a batch.

    early     the value before the batch
    entered   the rows that entered, by pane
    due       the windows to answer at their end
    progress  the state of the progress policy after the batch
    """
    ended = early.next_versions(due, panes.now, early=False)
    after, newest = early.entered(entered, panes.still), progress.newest
    if newest is None or not after.due(rule, newest):
        return EarlyStep(ended, [], after)
    held = {panes.still.windows.pane_at(pane.start) for pane in progress.held.panes}
    known = panes.still.without(held)
    tasks = after.next_versions(known.tasks(after.changed(known, newest)), known, early=True)
    answered = EarlyAnswers(
        newest,
        {**after.versions, **{task.window: task.version for task in tasks}},
        after.fresh & held,
        known.panes if rule.changes else {},
    )
    return EarlyStep(ended, tasks, answered)
