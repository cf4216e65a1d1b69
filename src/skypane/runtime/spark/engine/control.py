"""Where the laws of control meet the engine: they decide before a batch, observe after it, and are saved with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

from skypane.control.costs import DEFAULT_COSTS, Costs
from skypane.control.elasticity.elastic import Elastic, ElasticState
from skypane.control.exchange import DEFAULT_GROWTH, Exchange, ExchangeState, SourceSpread
from skypane.control.law import Decision
from skypane.control.measured import Measured
from skypane.control.snapshots import from_json, to_json
from skypane.control.splitting import Panes, Routing, Sample, Splitting
from skypane.control.splitting.expected import ExpectedPanes
from skypane.control.workers import Workers
from skypane.operators.query import GrowingQuery
from skypane.runtime.spark.engine.setting import Setting
from skypane.runtime.spark.engine.utilised import panes_of, period_of, stages_of
from skypane.types import CheckpointError, ConfigError


@dataclass(frozen=True, slots=True)
class ControlState:
    """The laws' states, and the workers.

    asked      the numbers that the job asks for
    workers    those in force: the job's, or what scale() or the elastic law has made of them since
    splitting  the splitting law's own state
    expected   the panes of the next batch
    elastic    the elastic law's own state, if there is one
    sized      whether the source has said that it sets the readers of each batch; not saved: it says so again
    """

    asked: Workers
    workers: Workers
    exchange: ExchangeState
    splitting: Any
    expected: ExpectedPanes = field(default_factory=ExpectedPanes)
    elastic: ElasticState | None = None
    sized: bool = False


@dataclass(frozen=True, slots=True)
class Steering:
    """What is decided for one batch; no routing: its rows stay where they are read.

    splitting the law of splitting, by its name, and why panes have the owners that they have
    tasks     where they stay, no more tasks than these read them; None: one for each of the source's partitions
    elastic   the elastic law's decision, where a control interval has ended
    """

    workers: Workers
    exchange: Decision[bool]
    routing: Routing | None
    splitting: Decision[str]
    tasks: int | None = None
    elastic: Decision[Workers] | None = None


@dataclass(frozen=True, slots=True)
class Control:
    """The laws of one query, and the workers that its job asks for.

    limits   whether the job itself says how many tasks lift, so that there are no more of them
    growth   of the query's partials with their rows
    """

    splitting: Splitting
    asked: Workers
    costs: Costs = DEFAULT_COSTS
    elastic: Elastic | None = None
    limits: bool = False
    growth: float = DEFAULT_GROWTH

    @classmethod
    def of(cls, setting: Setting, workers: Workers) -> Self:
        """Return the laws of a job that asks for these workers."""
        query = setting.plan.query
        growth = query.growth if isinstance(query, GrowingQuery) else DEFAULT_GROWTH
        return cls(setting.splitting, workers, setting.costs, setting.elastic, setting.limits, growth)

    @property
    def exchange(self) -> Exchange:
        return Exchange(self.costs, self.growth)

    def init(self) -> ControlState:
        elastic = None if self.elastic is None else self.elastic.init()
        return ControlState(self.asked, self.asked, self.exchange.init(), self.splitting.init(), elastic=elastic)

    def snapshot(self, state: ControlState) -> dict[str, Any]:
        """Return the state as a JSON value."""
        return {
            "asked": asdict(state.asked),
            "workers": asdict(state.workers),
            "exchange": self.exchange.snapshot(state.exchange),
            "splitting": {"law": self.splitting.name, "state": self.splitting.snapshot(state.splitting)},
            "expected": to_json(state.expected),
            "elastic": self._elastic_snapshot(state),
        }

    def _elastic_snapshot(self, state: ControlState) -> dict[str, Any] | None:
        if self.elastic is None or state.elastic is None:
            return None
        return {"law": self.elastic.policy.name, "state": self.elastic.snapshot(state.elastic)}

    def restore(self, snapshot: Mapping[str, Any]) -> ControlState:
        """Return the state whose snapshot this is.

        A job that asks for the numbers that it asked for before goes on with those that scale() or the elastic law has
        set; a job that asks for other ones gets them, and so does one that has given up its elastic law. Another law
        than before begins anew, an elastic one with the workers there are.
        """
        try:
            asked, workers = Workers(**snapshot["asked"]), Workers(**snapshot["workers"])
            exchange = self.exchange.restore(snapshot["exchange"])
            law, splitting = snapshot["splitting"]["law"], snapshot["splitting"]["state"]
            known = snapshot.get("elastic") or {"law": None, "state": None}
            elastic, elastic_state = known["law"], known["state"]
        except (KeyError, TypeError, ConfigError) as error:
            raise CheckpointError(f"the state of control in the checkpoint cannot be read: {error!r}") from error
        given_up = elastic is not None and self.elastic is None
        state = ControlState(
            self.asked,
            workers if asked == self.asked and not given_up else self.asked,
            exchange,
            self.splitting.restore(splitting) if law == self.splitting.name else self.splitting.init(),
            from_json(ExpectedPanes, snapshot.get("expected")),
        )
        if self.elastic is None:
            return state
        same = elastic == self.elastic.policy.name
        begun = self.elastic.restore(elastic_state) if same else self.elastic.init()
        bounded = self.elastic.bounded(state.workers, self.elastic.most)  # by bounds that may be others than before
        if bounded != begun.workers:
            begun = self.elastic.moved(begun, bounded)
        return replace(state, workers=bounded, elastic=begun)

    def scaled(self, state: ControlState, request: Workers) -> ControlState:
        """Return the state with other workers; ConfigError if the elastic law's bounds forbid them.

        The law goes on from them: it decides again at the end of a new control interval.
        """
        if self.elastic is None or state.elastic is None:
            return replace(state, workers=request)
        return replace(state, workers=request, elastic=self.elastic.moved(state.elastic, request))

    def decide(self, state: ControlState) -> tuple[ControlState, Steering]:
        """Return what holds for the next batch, by the panes that it is expected to have, and the state after that."""
        state, elastic = self._elastically(state)
        moved, exchange = self.exchange.decide(state.exchange)
        state = replace(state, exchange=moved)
        if not exchange.value:
            law = Decision("splitting", self.splitting.name, "rows stay where they are read")
            tasks = state.workers.plq if self._limited(state) else None
            return state, Steering(state.workers, exchange, None, law, tasks, elastic)
        expected = state.expected.next()
        # A task's partitions end with its batch: no pane of the batch before is being filled any more.
        panes = Panes(expected, state.workers.plq, open_from=max(expected, default=0) + 1)
        splitting, routing = self.splitting.decide(state.splitting, panes)
        law = Decision(routing.what, self.splitting.name, routing.because, routing.figures)
        return replace(state, splitting=splitting), Steering(
            state.workers, exchange, routing.value, law, elastic=elastic
        )

    def _limited(self, state: ControlState) -> bool:
        """Return whether no more tasks than there are workers may read a batch whose rows stay where they are read.

        Tasks that a default would give are no wish of anybody's: the source's partitions are left as they are. So are those
        of a source that sets its readers by what waits now: the elastic law knows what waited a batch ago.
        """
        if self.limits or self.elastic is None:
            return self.limits or state.workers.plq != self.asked.plq
        return not state.sized

    def _elastically(self, state: ControlState) -> tuple[ControlState, Decision[Workers] | None]:
        """Return the state with the workers that the elastic law decides on, and its decision if it made one."""
        if self.elastic is None or state.elastic is None or not self.elastic.due(state.elastic):
            return state, None
        after, decision = self.elastic.decide(state.elastic)
        return replace(state, workers=decision.value, elastic=after), decision

    def explained(self, state: ControlState) -> str:
        """Return why there are as many workers as there are, in one line."""
        now = f"PLQ {state.workers.plq}, WLQ {state.workers.wlq}"
        if self.elastic is None or state.elastic is None:
            return f"{now}: as asked for, nothing changes them by itself (elastic=None)"
        if not state.elastic.because:
            return f"{now}: {self.elastic.so_far(state.elastic, 'batches')} measured, nothing decided yet"
        return state.elastic.because

    def observe(self, state: ControlState, measured: Measured) -> ControlState:
        """Return the state after a batch."""
        partitions = panes_of(measured)
        row_counts: Counter[int] = Counter()
        for work in partitions:
            row_counts[work.pane] += work.rows
        spread = None if measured.exchanged else _spread(measured, len(row_counts), len(partitions), state.workers.plq)
        # Where rows stayed where they were read, the source cut the panes, not the law: it learns how large they are.
        sizes = (work.rows for work in partitions) if measured.exchanged else row_counts.values()
        sample = Sample(period_of(measured) if measured.exchanged else None, tuple(sizes))
        return replace(
            state,
            exchange=self.exchange.observe(state.exchange, spread),
            splitting=self.splitting.observe(state.splitting, sample),
            expected=state.expected.observe(row_counts),
            elastic=self._elastic_after(state.elastic, measured),
            sized=state.sized or measured.sized,
        )

    def _elastic_after(self, elastic: ElasticState | None, measured: Measured) -> ElasticState | None:
        if self.elastic is None or elastic is None:
            return elastic
        return self.elastic.observe(elastic, stages_of(measured))


def _spread(measured: Measured, panes: int, partials: int, workers: int) -> SourceSpread:
    return SourceSpread(
        row_count=sum(task.rows for task in measured.tasks),
        busy=tuple(task.busy for task in measured.tasks),
        panes=panes,
        partials=partials,
        merge_seconds=measured.merge_seconds,
        workers=workers,
    )
