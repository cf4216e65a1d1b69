"""The control policies of a query: they decide before a batch, observe after it, and are saved with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

from skypane.control.cost_learning import CostLearning, LearnedState
from skypane.control.costs import DEFAULT_COSTS, Costs
from skypane.control.elasticity.elastic import Elastic, ElasticState
from skypane.control.exchange import AS_READ, DEFAULT_GROWTH, Exchange, ExchangeState
from skypane.control.lift_placement import BY_WORKERS, LiftPlacement, LiftState, UpcomingRows
from skypane.control.measurements import BatchMeasurements, LiftPlace
from skypane.control.parallelism import Workers
from skypane.control.predictions import ExpectedBatch, SourceSpread, SplittingOption
from skypane.control.splitting import CHOICE, STATIC, Routing, Splitting, SplittingSample, UpcomingBatch
from skypane.control.splitting.expected import ExpectedPanes
from skypane.control.window_costs import LearnedWindows
from skypane.control.window_division import WindowDivision
from skypane.operators.query import GrowingQuery
from skypane.policy import Decision
from skypane.runtime.spark.engine.job_settings import JobSettings
from skypane.runtime.spark.engine.utilization import panes_of, period_of, stages_of
from skypane.snapshots import from_json, to_json
from skypane.types import CheckpointError, ConfigError

_MOST_OWNERS = 1 << 14
"""Panes times workers up to which AS and AS_PID are among the policies of the choice. With so many panes, panes in turn are
balanced, or rows in turn are as good; and the driver would take longer to divide each pane than that saves."""


@dataclass(frozen=True, slots=True)
class ControlState:
    """The states of the policies, and the workers.

    requested  the numbers that the job requests
    workers    the numbers in force: the job's, or those set since by scale() or the elastic policy
    splitting  states of the splitting policies, by name
    expected   the panes expected in the next batch
    elastic    state of the elastic policy, if there is one
    sized      whether the source has reported that it sets the readers of each batch; not saved, as it reports it again
    costs      what the batches have shown of the costs
    windows    what the batches have shown of what windows cost
    lift       what the batches have shown of lifting few rows
    routed_by  name of the policy that routes the current batch; not saved, as it is decided before each batch
    """

    requested: Workers
    workers: Workers
    exchange: ExchangeState
    costs: LearnedState
    splitting: Mapping[str, Any]
    expected: ExpectedPanes = field(default_factory=ExpectedPanes)
    elastic: ElasticState | None = None
    sized: bool = False
    windows: LearnedWindows = field(default_factory=LearnedWindows)
    lift: LiftState = field(default_factory=LiftState)
    routed_by: str | None = None


@dataclass(frozen=True, slots=True)
class BatchDecisions:
    """The decisions for one batch.

    routing    the worker of each pane; None: rows stay where they are read
    splitting  name of the splitting policy, with the reason for the panes' owners; "as read" if the stream chooses it,
               and rows stay where they are read
    tasks      maximum number of tasks that read rows without a routing; None: one per partition of the source
    elastic    decision of the elastic policy, if a control interval has ended
    windows    what is known of the costs of windows; how they are divided follows from it when they are known
    lift       where the rows are lifted
    """

    workers: Workers
    costs: Decision[Costs]
    exchange: Decision[bool]
    routing: Routing | None
    splitting: Decision[str]
    tasks: int | None = None
    elastic: Decision[Workers] | None = None
    windows: LearnedWindows = field(default_factory=LearnedWindows)
    lift: Decision[LiftPlace] = BY_WORKERS

    @property
    def in_driver(self) -> bool:
        """Whether the driver lifts the rows."""
        return self.lift.value == "driver"


@dataclass(frozen=True, slots=True)
class ControlLoop:
    """The policies of one query, and the workers that its job requests.

    splitting  the policy that routes rows if they are exchanged; None: the fastest one of CHOICE, for each batch
    costs    calibrated costs, which those that the batches show replace
    limits   whether the job sets the number of tasks that lift, which is then their maximum
    growth   exponent with which the query's partials grow with their rows
    lift     decides where rows are lifted
    """

    splitting: Splitting | None
    requested: Workers
    costs: Costs = DEFAULT_COSTS
    elastic: Elastic | None = None
    limits: bool = False
    growth: float = DEFAULT_GROWTH
    lift: LiftPlacement = field(default_factory=LiftPlacement)

    @classmethod
    def of(cls, settings: JobSettings, workers: Workers) -> Self:
        """Return the policies of a job that requests these workers."""
        growth = max(
            query.growth if isinstance(query, GrowingQuery) else DEFAULT_GROWTH for query in settings.plan.queries
        )
        return cls(
            settings.splitting, workers, settings.costs, settings.elastic, settings.limits, growth, settings.lift
        )

    @property
    def policies(self) -> Mapping[str, Splitting]:
        """The splitting policies that may route a batch, by name."""
        return {policy.name: policy for policy in (CHOICE if self.splitting is None else (self.splitting,))}

    @property
    def exchange(self) -> Exchange:
        return Exchange(self.costs, self.growth)

    @property
    def learning(self) -> CostLearning:
        return CostLearning(self.costs)

    @property
    def division(self) -> WindowDivision:
        return WindowDivision()

    def init(self) -> ControlState:
        elastic = None if self.elastic is None else self.elastic.init()
        exchange, costs = self.exchange.init(), self.learning.init()
        splitting = {name: policy.init() for name, policy in self.policies.items()}
        return ControlState(self.requested, self.requested, exchange, costs, splitting, elastic=elastic)

    def snapshot(self, state: ControlState) -> dict[str, Any]:
        """Return the state as a JSON value."""
        return {
            "requested": asdict(state.requested),
            "workers": asdict(state.workers),
            "exchange": self.exchange.snapshot(state.exchange),
            "costs": self.learning.snapshot(state.costs),
            "splitting": {name: policy.snapshot(state.splitting[name]) for name, policy in self.policies.items()},
            "expected": to_json(state.expected),
            "elastic": self._elastic_snapshot(state),
            "windows": self.division.snapshot(state.windows),
            "lift": self.lift.snapshot(state.lift),
        }

    def _elastic_snapshot(self, state: ControlState) -> dict[str, Any] | None:
        if self.elastic is None or state.elastic is None:
            return None
        return {"policy": self.elastic.policy.name, "state": self.elastic.snapshot(state.elastic)}

    def restore(self, snapshot: Mapping[str, Any]) -> ControlState:
        """Return the state from its snapshot; raise CheckpointError if it cannot be read.

        A job that requests the same numbers as before keeps those set by scale() or the elastic policy. A job that
        requests other numbers gets them, as does a job that has dropped its elastic policy. A policy of another
        kind than before starts from its initial state; an elastic one starts with the current workers.
        """
        try:
            requested, workers = (
                Workers(**saved) for saved in (_either(snapshot, "requested", "asked"), snapshot["workers"])
            )
            exchange = self.exchange.restore(snapshot["exchange"])
            costs = self.learning.restore(snapshot["costs"]) if "costs" in snapshot else self.learning.init()
            saved = _by_name(snapshot["splitting"])
            splitting = {
                name: policy.restore(saved[name]) if name in saved else policy.init()
                for name, policy in self.policies.items()
            }
            windows = self.division.restore(snapshot["windows"]) if "windows" in snapshot else self.division.init()
            lift = self.lift.restore(snapshot["lift"]) if "lift" in snapshot else self.lift.init()
            elastic_name, elastic = _named(snapshot.get("elastic") or {"policy": None, "state": None})
        except (KeyError, TypeError, ConfigError) as error:
            raise CheckpointError(f"the control state in the checkpoint cannot be read: {error!r}") from error
        dropped = elastic_name is not None and self.elastic is None
        state = ControlState(
            self.requested,
            workers if requested == self.requested and not dropped else self.requested,
            exchange,
            costs,
            splitting,
            from_json(ExpectedPanes, snapshot.get("expected")),
            windows=windows,
            lift=lift,
        )
        if self.elastic is None:
            return state
        same = elastic_name == self.elastic.policy.name
        elastic_state = self.elastic.restore(elastic) if same else self.elastic.init()
        bounded = self.elastic.bounded(state.workers, self.elastic.max_workers)  # the bounds may have changed
        if bounded != elastic_state.workers:
            elastic_state = self.elastic.moved(elastic_state, bounded)
        return replace(state, workers=bounded, elastic=elastic_state)

    def scaled(self, state: ControlState, request: Workers) -> ControlState:
        """Return the state with other workers; raise ConfigError if they are out of the elastic policy's bounds.

        The policy continues from them: it decides again at the end of a new control interval.
        """
        if self.elastic is None or state.elastic is None:
            return replace(state, workers=request)
        return replace(state, workers=request, elastic=self.elastic.moved(state.elastic, request))

    def decide(self, state: ControlState, since: float | None = None) -> tuple[ControlState, BatchDecisions]:
        """Return the state after the decisions for the next batch, and the decisions, based on the expected panes.

        since   seconds since the start of the batch before; None: there was none
        """
        state, decisions = self._routed(state)
        tied = decisions.routing is not None or self.elastic is not None
        lift, place = self.lift.decide(state.lift, UpcomingRows(since, tied))
        return replace(state, lift=lift), replace(decisions, lift=place)

    def _routed(self, state: ControlState) -> tuple[ControlState, BatchDecisions]:
        """Return the decisions without the place where rows are lifted."""
        state, elastic = self._elastic_decision(state)
        learned, costs = self.learning.decide(state.costs)
        batch, policy = (
            ExpectedBatch(state.expected.next(), state.workers.plq),
            replace(self.exchange, costs=costs.value),
        )
        routings = self._routings(state, batch) if policy.worth_routing(state.exchange, batch) else {}
        options = (SplittingOption.of(name, routing.value, batch.rows) for name, (_, routing) in routings.items())
        exchange_state, chosen = policy.decide(state.exchange, replace(batch, options=tuple(options)))
        state = replace(state, exchange=exchange_state, costs=learned, routed_by=chosen.value)
        exchange = Decision(chosen.what, chosen.value is not None, chosen.because, chosen.figures)
        if chosen.value is None:
            name = AS_READ if self.splitting is None else self.splitting.name
            split = Decision("splitting", name, "rows stay where they are read")
            tasks = state.workers.plq if self._limited(state) else None
            return state, BatchDecisions(state.workers, costs, exchange, None, split, tasks, elastic, state.windows)
        after, routing = routings[chosen.value]
        split = Decision(routing.what, chosen.value, routing.because, routing.figures)
        return replace(state, splitting={**state.splitting, chosen.value: after}), BatchDecisions(
            state.workers, costs, exchange, routing.value, split, elastic=elastic, windows=state.windows
        )

    def _routings(self, state: ControlState, batch: ExpectedBatch) -> dict[str, tuple[Any, Decision[Routing]]]:
        """Return how each policy would route a batch, with its state after that."""
        # The partitions of a task end with its batch, so no pane of an earlier batch is still being filled.
        panes = UpcomingBatch(batch.rows, batch.workers, open_from=max(batch.rows, default=0) + 1)
        few = self.splitting is not None or len(batch.rows) * batch.workers <= _MOST_OWNERS
        return {
            name: policy.decide(state.splitting[name], panes)
            for name, policy in self.policies.items()
            if few or policy in STATIC
        }

    def _limited(self, state: ControlState) -> bool:
        """Return whether the number of workers limits the tasks that read a batch without an exchange.

        A default number does not limit them: the source's partitions stay as they are. They also stay if the source
        sets its readers by the current backlog, because the elastic policy only knows the backlog of the batch before.
        """
        if self.limits or self.elastic is None:
            return self.limits or state.workers.plq != self.requested.plq
        return not state.sized

    def _elastic_decision(self, state: ControlState) -> tuple[ControlState, Decision[Workers] | None]:
        """Return the state with the workers that the elastic policy sets, and its decision if it made one."""
        if self.elastic is None or state.elastic is None or not self.elastic.due(state.elastic):
            return state, None
        after, decision = self.elastic.decide(state.elastic)
        return replace(state, workers=decision.value, elastic=after), decision

    def explained(self, state: ControlState) -> str:
        """Return the reason for the current numbers of workers, in one line."""
        now = f"PLQ {state.workers.plq}, WLQ {state.workers.wlq}"
        if self.elastic is None or state.elastic is None:
            return f"{now}: as requested; no policy changes them (elastic=None)"
        if not state.elastic.because:
            return f"{now}: {self.elastic.so_far(state.elastic, 'batches')} measured, no decision yet"
        return state.elastic.because

    def observe(self, state: ControlState, measured: BatchMeasurements) -> ControlState:
        """Return the state after a batch."""
        partitions = panes_of(measured)
        row_counts: Counter[int] = Counter()
        for work in partitions:
            row_counts[work.pane] += work.rows
        shown = (
            not measured.exchanged and measured.lifted == "spark"
        )  # the driver does not show the source's partitions
        spread = None if not shown else _spread(measured, tuple(row_counts.values()), state.workers.plq)
        costs, decided = self.learning.decide(self.learning.observe(state.costs, measured))
        return replace(
            state,
            exchange=replace(self.exchange, costs=decided.value).observe(state.exchange, spread),
            costs=costs,
            splitting=self._split(state, measured, row_counts),
            expected=state.expected.observe(row_counts),
            elastic=self._elastic_after(state.elastic, measured),
            sized=state.sized or measured.sized,
            windows=self.division.observe(state.windows, measured),
            lift=self.lift.observe(state.lift, measured),
            routed_by=None,
        )

    def _split(self, state: ControlState, measured: BatchMeasurements, panes: Mapping[int, int]) -> dict[str, Any]:
        """Return the states of the splitting policies after a batch.

        A policy learns the sizes of its own partitions, or those of whole panes if the source or another policy has
        split them. The workers' utilisation says the same to all: whether panes must be split more.
        """
        period = period_of(measured) if measured.exchanged else None
        whole = SplittingSample(period, tuple(panes.values()))
        own = SplittingSample(period, tuple(work.rows for work in panes_of(measured))) if measured.exchanged else whole
        return {
            name: policy.observe(state.splitting[name], own if state.routed_by in {None, name} else whole)
            for name, policy in self.policies.items()
        }

    def _elastic_after(self, elastic: ElasticState | None, measured: BatchMeasurements) -> ElasticState | None:
        if self.elastic is None or elastic is None:
            return elastic
        return self.elastic.observe(elastic, stages_of(measured))


def _named(saved: Mapping[str, Any]) -> tuple[str | None, Any]:
    """Return a policy's name and the snapshot of its state."""
    return _either(saved, "policy", "law"), saved["state"]


def _either(saved: Mapping[str, Any], key: str, before: str) -> Any:
    """Return the value of a key, which version 0.2 wrote under the name `before`."""
    return saved[key] if key in saved else saved[before]


def _by_name(saved: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the snapshots of splitting policies by name; version 0.2 wrote that of one policy."""
    if "state" not in saved:
        return saved
    name, state = _named(saved)
    return {str(name): state}


def _spread(measured: BatchMeasurements, pane_rows: tuple[int, ...], workers: int) -> SourceSpread:
    return SourceSpread(
        row_count=sum(task.rows for task in measured.tasks),
        busy=tuple(task.busy for task in measured.tasks),
        pane_rows=pane_rows,
        partials=len(panes_of(measured)),
        merge_seconds=measured.merge_seconds,
        workers=workers,
    )
