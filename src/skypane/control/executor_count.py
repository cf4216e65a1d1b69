"""How many executors an application requests from its cluster, so that all tasks of a batch run at once.

A cluster takes seconds to start an executor, and the executor's Python needs seconds of a core before it lifts a row. An
executor that is no longer needed is therefore held for as long as a start takes: a start is saved if it is needed again
meanwhile. Whatever the numbers of workers do, starts and held executors together cost at most twice what they would cost
if the numbers to come were known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from skypane.policy import Decision, Policy
from skypane.snapshots import JsonState
from skypane.wording import counted, seconds

START_SECONDS: Final = 10.0
"""About what an executor costs before its first answer; `python -m measure.elastic.cold_executor` measures it."""


@dataclass(frozen=True, slots=True)
class ExecutorNeed:
    """The facts known before a batch.

    tasks  tasks of a stage that are to run at once
    slots  tasks that an executor runs at once
    there  executors that are there
    now    seconds of a clock that never goes back
    """

    tasks: int
    slots: int
    there: int
    now: float

    @property
    def executors(self) -> int:
        """The smallest number of executors that run all tasks at once."""
        return max(1, -(-self.tasks // self.slots))


class Need(NamedTuple):
    """A number of executors, and the time until which they were needed."""

    until: float
    executors: int


@dataclass(frozen=True, slots=True)
class HeldExecutors(JsonState):
    """The executors that are needed, and larger numbers that were, oldest and largest first."""

    needed: int = 0
    earlier: tuple[Need, ...] = ()


@dataclass(frozen=True)
class ExecutorCount(Policy[HeldExecutors, None, ExecutorNeed, int]):
    """Requests the largest number of executors that was needed within the last `hold` seconds.

    More are requested at once. A number is needed until the next decision.
    """

    hold: float = START_SECONDS

    State = HeldExecutors

    def init(self) -> HeldExecutors:
        return HeldExecutors()

    def decide(self, state: HeldExecutors, known: ExecutorNeed) -> tuple[HeldExecutors, Decision[int]]:
        """Return the executors to request from now on; those beyond are released."""
        needed = known.executors
        held = self._held(state, needed, known.now)
        total = held[0].executors if held else needed
        figures = {"needed": float(needed), "there": float(known.there), "slots": float(known.slots)}
        because = f"{counted(known.tasks, 'tasks')} at once, {known.slots} an executor: {counted(needed, 'executors')}"
        if total > needed:
            because += f", {total} until {seconds(self.hold)} after they were needed"
        return HeldExecutors(needed, held), Decision("executors", total, f"{because}; {known.there} there", figures)

    def _held(self, state: HeldExecutors, needed: int, now: float) -> tuple[Need, ...]:
        """Return the larger numbers that are held; one that a later number exceeds is never the largest again."""
        kept: list[Need] = []
        for need in (*state.earlier, Need(now, state.needed)):
            while kept and kept[-1].executors <= need.executors:
                kept.pop()
            kept.append(need)
        return tuple(need for need in kept if need.executors > needed and need.until > now - self.hold)
