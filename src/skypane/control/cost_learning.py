"""Learn the costs of the set-up on which a query runs from its batches, so that nobody has to calibrate.

Samples of a cost that a batch gives, as factors of the calibrated one:

    exchange   a pane-level stage with an exchange: the seconds beyond its longest task, less those in stages without one
    job        a window-level job: the seconds beyond its longest task; never more than a pane-level stage has beyond its
               own
    threads    the seconds for windows in threads beyond those of their work, which is measured without waiting for the
               interpreter lock; those for the rows of a front beyond their work by the costs learned so far
    answers    the driver's seconds for windows, or for the rows of a front; never more than workers were busy with them

The cost in force is the calibrated one, times the median of the last factors. Whether a batch is a sample depends on
what was known before it ran, never on the seconds that it took: otherwise only rare slow batches would count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from statistics import median, median_low
from typing import Any, Final, NamedTuple

from skypane.control.costs import DEFAULT_COSTS, Costs
from skypane.control.measurements import BatchMeasurements
from skypane.control.placement import DueRows, DueWindows, seconds_alone, seconds_in_threads, seconds_of_tasks
from skypane.policy import Decision, Policy
from skypane.snapshots import JsonState, from_json
from skypane.wording import seconds

RECENT: Final = 9
"""Samples that are kept of each kind."""
ENOUGH: Final = 5
"""Samples from which a cost is moved: two slow batches, such as the first that use a kernel, do not move a median."""
FORGOTTEN: Final = 500
"""Batches with windows after which a kind without new samples is forgotten, so that a wrong cost is tried again. An
exchange is tried by its own policy."""
LEAST: Final = 0.1
MOST: Final = 100.0
"""Limits of a factor. A cost of 0 stays 0, and a prohibitive one prohibitive."""
COMPARABLE: Final = 2.0
"""Factor within which the rows of two stages must be for the difference of their overheads to be that of an exchange."""
FRONT_SECONDS: Final = 0.05
"""Expected seconds of a front's step from which it is a sample; shorter ones mostly read and write files."""


class StageOverhead(NamedTuple):
    """Rows of a pane-level stage without an exchange, and its seconds beyond its longest task."""

    rows: int
    seconds: float


@dataclass(frozen=True, slots=True)
class LearnedState(JsonState):
    """The last samples.

    calibrated  the costs, of which the samples are factors, as JSON
    factors     the last samples of each kind, oldest first; "workers": busy seconds of workers, as factors of the driver's
    stages      the last stages without an exchange
    exchanged   consecutive batches with an exchange
    since       batches with windows, or rows of a front, since the last sample of each kind
    """

    calibrated: Mapping[str, Any]
    factors: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    stages: tuple[StageOverhead, ...] = ()
    exchanged: int = 0
    since: Mapping[str, int] = field(default_factory=dict)

    def sampled(self, kind: str, factor: float | None) -> LearnedState:
        """Return the state with one more sample, unless it is None."""
        if factor is None:
            return self
        samples = (*self.factors.get(kind, ()), min(max(factor, LEAST), MOST))[-RECENT:]
        return replace(self, factors={**self.factors, kind: samples}, since={**self.since, kind: 0})

    def aged(self) -> LearnedState:
        """Return the state one batch later, without kinds that have not been sampled for long."""
        since = {kind: batches + 1 for kind, batches in self.since.items()}
        kept = {kind for kind, batches in since.items() if batches < FORGOTTEN or kind == "exchange"}
        return replace(
            self,
            since={kind: batches for kind, batches in since.items() if kind in kept},
            factors={kind: samples for kind, samples in self.factors.items() if kind in kept},
        )

    def factor(self, kind: str) -> float | None:
        """Return the median of a kind's samples; None if there are too few."""
        samples = self.factors.get(kind, ())
        return median(samples) if len(samples) >= ENOUGH else None


@dataclass(frozen=True, slots=True)
class CostLearning(Policy[LearnedState, BatchMeasurements, None, Costs]):
    """Decide the costs by which the other policies decide."""

    State = LearnedState
    calibrated: Costs = DEFAULT_COSTS

    def init(self) -> LearnedState:
        return LearnedState(self.calibrated.to_json())

    def restore(self, snapshot: Any) -> LearnedState:
        """Return the state that snapshot() wrote; the initial one if the costs have been calibrated again since."""
        state = from_json(LearnedState, snapshot)
        return state if state.calibrated == self.calibrated.to_json() else self.init()

    def observe(self, state: LearnedState, measured: BatchMeasurements) -> LearnedState:
        """Return the state after a batch; the first batch after a start shows how workers start, and nothing else."""
        if measured.interval is None:
            return state
        return self._after_answers(self._after_lift(state, measured), measured)

    def decide(self, state: LearnedState, known: None = None) -> tuple[LearnedState, Decision[Costs]]:  # noqa: ARG002
        base, figures = self.calibrated, self._factors(state)
        exchange, job, threads, answers = (figures.get(kind, 1.0) for kind in ("exchange", "job", "threads", "answers"))
        costs = replace(
            base,
            exchange=base.exchange * exchange,
            exchange_per_row=base.exchange_per_row * min(1.0, exchange),
            job=base.job * job,
            threads=base.threads * threads,
            shard_threads=base.shard_threads * threads,
            shard_per_row=base.shard_per_row * min(1.0, job),
            window=base.window * answers,
            window_per_row=base.window_per_row * answers,
            compared_per_row=base.compared_per_row * answers,
            front_per_row=base.front_per_row * answers,
            front_per_pair=base.front_per_pair * answers,
            group_per_row=base.group_per_row * answers,
        )
        return state, Decision("costs", costs, _in_words(costs, figures), figures)

    def _after_lift(self, state: LearnedState, measured: BatchMeasurements) -> LearnedState:
        rows, busy = sum(task.rows for task in measured.tasks), [task.busy for task in measured.tasks]
        if not rows or not measured.lift_seconds or measured.lifted == "driver":
            return state
        if not measured.exchanged:
            stage = StageOverhead(rows, measured.lift_seconds - max(busy))
            return replace(state, stages=(*state.stages, stage)[-RECENT:], exchanged=0)
        before = [stage.seconds for stage in state.stages if 1 / COMPARABLE <= rows / stage.rows <= COMPARABLE]
        state = replace(state, exchanged=state.exchanged + 1)
        if not before or state.exchanged == 1:  # Spark compiles the plan of the first one
            return state
        cost = measured.lift_seconds - max(busy) - median_low(before)
        base = self.calibrated
        return state.sampled("exchange", _factor(cost, base.exchange, base.exchange_per_row * rows))

    def _after_answers(self, state: LearnedState, measured: BatchMeasurements) -> LearnedState:
        due, base = measured.due, self.calibrated
        expected = 0.0 if due is None else seconds_alone(due, base)
        if due is None or expected <= (FRONT_SECONDS if isinstance(due, DueRows) else 0.0):
            return state
        busy, state = [run.busy for run in measured.runs], state.aged()
        if measured.where == "driver":
            return state.sampled(
                "answers", (measured.merge_seconds if isinstance(due, DueRows) else sum(busy)) / expected
            )
        if not busy:
            return state
        worked = sum(run.worked for run in measured.runs)
        state = state.sampled("workers", worked / seconds_of_tasks(due, base))
        if measured.where == "threads" and isinstance(due, DueWindows):
            # By the measured work, as windows that cost more than expected do not make threads dearer.
            serial = min(worked, due.windows * self.decide(state)[1].value.window)
            work = serial + (worked - serial) / len(busy)
            return state.sampled("threads", _factor(measured.merge_seconds - work, base.threads, 0.0))
        if measured.where == "threads":
            work = seconds_in_threads(due, self.decide(state)[1].value, len(busy))
            return state.sampled("threads", _factor(measured.merge_seconds - work, base.shard_threads, 0.0))
        sent = (due.coming + due.stored) * base.shard_per_row if isinstance(due, DueRows) else 0.0
        return state.sampled("job", _factor(measured.merge_seconds - max(busy), base.job, sent))

    def _factors(self, state: LearnedState) -> dict[str, float]:
        """Return the factors of the costs that batches have shown."""
        found = {kind: state.factor(kind) for kind in ("exchange", "job", "threads", "answers")}
        limits = {"job": None, "answers": state.factor("workers")}
        if len(state.stages) >= ENOUGH and self.calibrated.job:
            longest = median_low(stage.seconds for stage in state.stages) / self.calibrated.job
            limits["job"] = max(longest, LEAST)
        for kind, limit in limits.items():
            if limit is not None and limit < (found[kind] or 1.0):
                found[kind] = limit
        return {kind: factor for kind, factor in found.items() if factor is not None}


def _factor(measured: float, fixed: float, by_rows: float) -> float | None:
    """Return the factor of an operation's costs; None if its fixed part is set to 0, and stays so.

    If the operation is cheaper than calibrated, all its costs are; if it is dearer, its fixed part is, as on a cluster.
    """
    if not fixed:
        return None
    expected = fixed + by_rows
    return measured / expected if measured < expected else (measured - by_rows) / fixed


def _in_words(costs: Costs, figures: Mapping[str, float]) -> str:
    words = {
        "exchange": f"an exchange costs {seconds(costs.exchange)}",
        "job": f"a job costs {seconds(costs.job)}",
        "threads": f"threads cost {seconds(costs.threads)}, and {seconds(costs.shard_threads)} for a front",
        "answers": f"a window costs {seconds(costs.window)}",
    }
    learned = [f"{words[kind]}, {factor:.2g} x as calibrated" for kind, factor in figures.items()]
    return "; ".join(learned) or f"as calibrated ({costs.measured}): batches have not shown others yet"
