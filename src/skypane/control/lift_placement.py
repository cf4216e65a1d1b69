"""Place the lifting of a batch's rows: in tasks of a Spark job, or in the driver, to which Spark sends a few rows as they are.

The driver saves the transfer of the rows to Python workers. Which of the two is faster depends on the machine, so each is
measured, by the seconds of the pane level in batches of few rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from statistics import median_low
from typing import Final

from skypane.control.measurements import BatchMeasurements, LiftPlace
from skypane.policy import Decision, Policy
from skypane.snapshots import JsonState
from skypane.wording import count, seconds

BY_WORKERS: Final[Decision[LiftPlace]] = Decision("lift", "spark", "nothing is known of the rows")
"""The decision without a policy."""
ROWS: Final = 20_000
"""Rows that are expected at most in a batch that the driver lifts."""
RECENT: Final = 9
"""Batches that are kept."""
FEWEST: Final = 8
"""Batches before the first one in the driver: until then a stream may still read a backlog."""
ENOUGH: Final = 3
"""Batches by which a place is judged."""
FORGOTTEN: Final = 500
"""Batches after which a place that was slower is tried again."""


@dataclass(frozen=True, slots=True)
class UpcomingRows:
    """The facts known of the rows of a batch before they are read.

    seconds   since the start of the batch before, in which they have come; None: there was none
    tied      whether the rows have to be lifted by workers: an exchange moves them, or a policy counts the workers
    """

    seconds: float | None
    tied: bool = False


@dataclass(frozen=True, slots=True)
class LiftState(JsonState):
    """The last batches.

    rates    rows per second of the last batches, oldest first
    lasted   seconds of the last small batches at each place, oldest first
    since    batches since the last one of these at each place
    """

    rates: tuple[float, ...] = ()
    lasted: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    since: Mapping[str, int] = field(default_factory=dict)

    def at(self, place: LiftPlace) -> tuple[float, ...]:
        """Return the seconds at a place, none if they were too long ago."""
        return self.lasted.get(place, ()) if self.since.get(place, 0) < FORGOTTEN else ()


@dataclass(frozen=True, slots=True)
class LiftPlacement(Policy[LiftState, BatchMeasurements, UpcomingRows, LiftPlace]):
    """Decides where the rows of a batch are lifted.

    place   where the rows of all batches are lifted that workers need not lift; None: where that takes fewer seconds
    """

    State = LiftState
    place: LiftPlace | None = None

    def init(self) -> LiftState:
        return LiftState()

    def observe(self, state: LiftState, measured: BatchMeasurements) -> LiftState:
        """Return the state after a batch; the first one after a start shows how workers start, and nothing else."""
        if not measured.interval or measured.interval <= 0:
            return state
        rows = sum(task.rows for task in measured.tasks)
        since = {place: batches + 1 for place, batches in state.since.items()}
        state = replace(state, rates=(*state.rates, rows / measured.interval)[-RECENT:], since=since)
        if not rows or rows > ROWS or measured.exchanged:
            return state
        place = measured.lifted
        lasted = (*state.at(place), measured.lift_seconds)[-RECENT:]
        return replace(state, lasted={**state.lasted, place: lasted}, since={**since, place: 0})

    def decide(self, state: LiftState, known: UpcomingRows) -> tuple[LiftState, Decision[LiftPlace]]:
        """Return where the next batch is lifted."""
        expected = 0.0 if known.seconds is None else max(state.rates, default=0.0) * known.seconds
        place, because = self._place(state, known, expected)
        figures = {name: median_low(lasted) for name, lasted in state.lasted.items() if lasted}
        return state, Decision("lift", place, because, {"expected": expected, **figures})

    def _place(self, state: LiftState, known: UpcomingRows, expected: float) -> tuple[LiftPlace, str]:
        if known.tied:
            return "spark", "an exchange or an elastic policy needs the workers"
        if self.place is not None:
            return self.place, "as configured"
        if known.seconds is None or len(state.rates) < FEWEST:
            return "spark", f"{len(state.rates)} of {FEWEST} batches seen"
        rows = f"about {count(round(expected))} rows"
        if expected > ROWS:
            return "spark", f"{rows} are expected, more than {count(ROWS)}"
        driver, spark = state.at("driver"), state.at("spark")
        if len(spark) < ENOUGH or len(driver) < ENOUGH:
            place: LiftPlace = "spark" if len(spark) < ENOUGH else "driver"
            return place, f"{rows} are expected: measured in {ENOUGH} batches"
        ours, theirs = median_low(driver), median_low(spark)
        because = f"{rows} are expected: {seconds(ours)} in the driver, {seconds(theirs)} in a job with workers"
        return ("driver" if ours < theirs else "spark"), because
