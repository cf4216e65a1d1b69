"""The control policies of a query: they decide before a batch, observe after it, and are saved with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

from skypane.control.cost_learning import CostLearning, LearnedState
from skypane.control.costs import DEFAULT_COSTS, Costs
from skypane.control.elasticity.elastic import Elastic, ElasticState
from skypane.control.exchange import DEFAULT_GROWTH, Exchange, ExchangeState, SourceSpread
from skypane.control.measurements import BatchMeasurements
from skypane.control.parallelism import Workers
from skypane.control.splitting import Routing, Splitting, SplittingSample, UpcomingBatch
from skypane.control.splitting.expected import ExpectedPanes
from skypane.operators.query import GrowingQuery
from skypane.policy import Decision
from skypane.runtime.spark.engine.job_settings import JobSettings
from skypane.runtime.spark.engine.utilization import panes_of, period_of, stages_of
from skypane.snapshots import from_json, to_json
from skypane.types import CheckpointError, ConfigError


@dataclass(frozen=True, slots=True)
class ControlState:
    """The states of the policies, and the workers.

    requested  the numbers that the job requests
    workers    the numbers in force: the job's, or those set since by scale() or the elastic policy
    splitting  state of the splitting policy
    expected   the panes expected in the next batch
    elastic    state of the elastic policy, if there is one
    sized      whether the source has reported that it sets the readers of each batch; not saved, as it reports it again
    costs      what the batches have shown of the costs
    """

    requested: Workers
    workers: Workers
    exchange: ExchangeState
    costs: LearnedState
    splitting: Any
    expected: ExpectedPanes = field(default_factory=ExpectedPanes)
    elastic: ElasticState | None = None
    sized: bool = False


@dataclass(frozen=True, slots=True)
class BatchDecisions:
    """The decisions for one batch.

    routing    the worker of each pane; None: rows stay where they are read
    splitting  name of the splitting policy, with the reason for the panes' owners
    tasks      maximum number of tasks that read rows without a routing; None: one per partition of the source
    elastic    decision of the elastic policy, if a control interval has ended
    """

    workers: Workers
    costs: Decision[Costs]
    exchange: Decision[bool]
    routing: Routing | None
    splitting: Decision[str]
    tasks: int | None = None
    elastic: Decision[Workers] | None = None


@dataclass(frozen=True, slots=True)
class ControlLoop:
    """The policies of one query, and the workers that its job requests.

    costs    calibrated costs, which those that the batches show replace
    limits   whether the job sets the number of tasks that lift, which is then their maximum
    growth   exponent with which the query's partials grow with their rows
    """

    splitting: Splitting
    requested: Workers
    costs: Costs = DEFAULT_COSTS
    elastic: Elastic | None = None
    limits: bool = False
    growth: float = DEFAULT_GROWTH

    @classmethod
    def of(cls, settings: JobSettings, workers: Workers) -> Self:
        """Return the policies of a job that requests these workers."""
        query = settings.plan.query
        growth = query.growth if isinstance(query, GrowingQuery) else DEFAULT_GROWTH
        return cls(settings.splitting, workers, settings.costs, settings.elastic, settings.limits, growth)

    @property
    def exchange(self) -> Exchange:
        return Exchange(self.costs, self.growth)

    @property
    def learning(self) -> CostLearning:
        return CostLearning(self.costs)

    def init(self) -> ControlState:
        elastic = None if self.elastic is None else self.elastic.init()
        exchange, costs, splitting = self.exchange.init(), self.learning.init(), self.splitting.init()
        return ControlState(self.requested, self.requested, exchange, costs, splitting, elastic=elastic)

    def snapshot(self, state: ControlState) -> dict[str, Any]:
        """Return the state as a JSON value."""
        return {
            "requested": asdict(state.requested),
            "workers": asdict(state.workers),
            "exchange": self.exchange.snapshot(state.exchange),
            "costs": self.learning.snapshot(state.costs),
            "splitting": {"policy": self.splitting.name, "state": self.splitting.snapshot(state.splitting)},
            "expected": to_json(state.expected),
            "elastic": self._elastic_snapshot(state),
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
            splitting_name, splitting = _named(snapshot["splitting"])
            elastic_name, elastic = _named(snapshot.get("elastic") or {"policy": None, "state": None})
        except (KeyError, TypeError, ConfigError) as error:
            raise CheckpointError(f"the control state in the checkpoint cannot be read: {error!r}") from error
        dropped = elastic_name is not None and self.elastic is None
        state = ControlState(
            self.requested,
            workers if requested == self.requested and not dropped else self.requested,
            exchange,
            costs,
            self.splitting.restore(splitting) if splitting_name == self.splitting.name else self.splitting.init(),
            from_json(ExpectedPanes, snapshot.get("expected")),
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

    def decide(self, state: ControlState) -> tuple[ControlState, BatchDecisions]:
        """Return the state after the decisions for the next batch, and the decisions, based on the expected panes."""
        state, elastic = self._elastic_decision(state)
        learned, costs = self.learning.decide(state.costs)
        exchange_state, exchange = replace(self.exchange, costs=costs.value).decide(state.exchange)
        state = replace(state, exchange=exchange_state, costs=learned)
        if not exchange.value:
            split = Decision("splitting", self.splitting.name, "rows stay where they are read")
            tasks = state.workers.plq if self._limited(state) else None
            return state, BatchDecisions(state.workers, costs, exchange, None, split, tasks, elastic)
        expected = state.expected.next()
        # The partitions of a task end with its batch, so no pane of an earlier batch is still being filled.
        panes = UpcomingBatch(expected, state.workers.plq, open_from=max(expected, default=0) + 1)
        splitting, routing = self.splitting.decide(state.splitting, panes)
        split = Decision(routing.what, self.splitting.name, routing.because, routing.figures)
        return replace(state, splitting=splitting), BatchDecisions(
            state.workers, costs, exchange, routing.value, split, elastic=elastic
        )

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
        spread = None if measured.exchanged else _spread(measured, len(row_counts), len(partitions), state.workers.plq)
        # Without an exchange the source has split the panes, so the splitting policy learns the sizes of whole panes.
        sizes = (work.rows for work in partitions) if measured.exchanged else row_counts.values()
        sample = SplittingSample(period_of(measured) if measured.exchanged else None, tuple(sizes))
        costs, decided = self.learning.decide(self.learning.observe(state.costs, measured))
        return replace(
            state,
            exchange=replace(self.exchange, costs=decided.value).observe(state.exchange, spread),
            costs=costs,
            splitting=self.splitting.observe(state.splitting, sample),
            expected=state.expected.observe(row_counts),
            elastic=self._elastic_after(state.elastic, measured),
            sized=state.sized or measured.sized,
        )

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


def _spread(measured: BatchMeasurements, panes: int, partials: int, workers: int) -> SourceSpread:
    return SourceSpread(
        row_count=sum(task.rows for task in measured.tasks),
        busy=tuple(task.busy for task in measured.tasks),
        panes=panes,
        partials=partials,
        merge_seconds=measured.merge_seconds,
        workers=workers,
    )
