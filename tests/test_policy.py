"""What holds for every policy; the kit that says so is found to see what is wrong."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import pytest
from tests.subclasses import concrete

import skypane
import skypane.control
from skypane.control.admission import Admission, MetaData, PeriodObservation
from skypane.control.admission.readers import Backlog, ReaderBatch, Readers
from skypane.control.cost_learning import CostLearning
from skypane.control.costs import DEFAULT_COSTS
from skypane.control.elasticity.elastic import Elastic
from skypane.control.elasticity.interval import StageSamples
from skypane.control.elasticity.options import Elasticity, Fuzzy, Model, Threshold
from skypane.control.elasticity.situation import ScalingPolicy, Situation
from skypane.control.elasticity.threshold import ThresholdPolicy
from skypane.control.exchange import Exchange
from skypane.control.executor_count import ExecutorCount, ExecutorNeed
from skypane.control.latency_promise import AnsweredBatch, LatencyPromise
from skypane.control.lift_placement import LiftPlacement, UpcomingRows
from skypane.control.measurements import BatchMeasurements, PieceWork, RunWork, TaskWork
from skypane.control.monitoring import SamplingPeriod
from skypane.control.pace import BatchEnd, Pace, PacedBatch
from skypane.control.parallelism import Workers
from skypane.control.placement import DueRows, DueWindows, Place, PlacementChoice
from skypane.control.predictions import ExpectedBatch, SourceSpread, SplittingOption
from skypane.control.splitting import (
    POLICIES,
    AdaptiveSplitting,
    PaneRoundRobin,
    PidSplitting,
    Routing,
    Share,
    SplittingSample,
    TupleRoundRobin,
    UpcomingBatch,
)
from skypane.control.window_division import WindowDivision, WindowsToDivide
from skypane.control.window_work import DueRuns, WindowSize
from skypane.policy import Decision, Policy
from skypane.progress import AqKSlack, KSlack, PaneArrivals, Readiness, Watermark
from skypane.snapshots import JsonState
from skypane.testing.elasticity_kit import check_elasticity
from skypane.testing.policy_kit import AnyPolicy, check_policy
from skypane.windows import Windows

CALM, OVERLOADED = (
    SamplingPeriod(1.0, (busy, busy / 2), (100, 90), (scheduled, 90), 4, 6)
    for busy, scheduled in ((0.2, 100), (1.5, 400))
)
SPLITTING: tuple[Sequence[Any], Sequence[Any]] = (
    [
        SplittingSample(None),
        SplittingSample(CALM, (100, 120, 0)),
        SplittingSample(OVERLOADED, (1_000, 30, 20)),
        SplittingSample(OVERLOADED, ()),
    ],
    [
        UpcomingBatch({}, 3),
        UpcomingBatch({1: 10, 2: 20}, 3, open_from=1),
        UpcomingBatch({2: 400, 3: 4_000}, 3, (10, 0, 5), 2),
        UpcomingBatch({9: 5}, 1, open_from=5),
    ],
)
META = MetaData(min=1, max=8, transition="jump", low_period="30 s", high_period="30 s")
LIFTED = TaskWork(1_000, 0.5, ()), TaskWork(1_000, 0.4, ())
BATCHES = [
    BatchMeasurements((), 0.0, None, exchanged=False),
    *(
        BatchMeasurements(
            tasks, 0.6, 1.0, exchanged, (RunWork(4, 0.2),), 0.9, due=DueWindows(4, 1_000, 2, 3), where=where
        )
        for tasks in ((), LIFTED)
        for exchanged in (False, True)
        for where in get_args(Place)
    ),
    BatchMeasurements(LIFTED, 3.0, 1.0, exchanged=True, lift_seconds=9.0, due=DueRows(10**5, 10**6, 4)),
]

SIZES = tuple(WindowSize(rows, rows // 2) for rows in (90_000, 10, 10, 400, 5_000))
RUNS = [
    BatchMeasurements((), 0.6, 1.0, exchanged=False, pieces=tuple(
        PieceWork(begin, end, part, DueRuns(SIZES).work(begin, end, parts), busy) for part in range(parts)
    ))
    for begin, end, parts, busy in ((0, 1, 1, 0.9), (1, 5, 1, 0.1), (0, 2, 3, 0.4), (0, 5, 1, 0.0))
]  # fmt: skip
TO_DIVIDE = [
    WindowsToDivide(
        SIZES[:count],
        DueWindows(count, 1_000, 2, 3, keys),
        PlacementChoice("spark", min(3, count), parts),
        DEFAULT_COSTS,
    )
    for count in (1, 2, 5)
    for keys, parts in ((0, 1), (400, 2))
]

SPREADS = [
    SourceSpread(2 * rows, (0.1, busy), (rows, rows), 3, 0.3, 2) for rows in (1_000, 10**7) for busy in (0.1, 9.0)
]
OPTIONS = SplittingOption("PB_RR", 10**7, (1,)), SplittingOption("TB_RR", 5 * 10**6, (2,))

ARRIVALS = [
    PaneArrivals.none(),
    *(PaneArrivals.at_once(times, Windows(10, 10)) for times in ([1, 12, 25], [30, 4], [55, 5_000], [60, 2], [10**9])),
]

#: each policy: it, what intervals may show of its work, and what it may know before it decides
CASES: dict[type[AnyPolicy], tuple[AnyPolicy, Sequence[Any], Sequence[Any]]] = {
    Watermark: (Watermark("20 us", max_ahead="1000 us", patience=9), [None], ARRIVALS),
    KSlack: (KSlack(max_slack="50 us", support=3), [None], ARRIVALS),
    AqKSlack: (AqKSlack(0.3, reserve=1, max_ahead="1000 us"), [None], ARRIVALS),
    Readiness: (Readiness("100 us", sources=("east",)), [None], ARRIVALS),
    PaneRoundRobin: (PaneRoundRobin(), *SPLITTING),
    TupleRoundRobin: (TupleRoundRobin(), *SPLITTING),
    AdaptiveSplitting: (AdaptiveSplitting(recent=7), *SPLITTING),
    PidSplitting: (PidSplitting(recent=7), *SPLITTING),
    Exchange: (
        Exchange(),
        [None, SourceSpread(7, (0.1,), (), 0, 0.0, 2), *SPREADS],
        [ExpectedBatch({}, 2), ExpectedBatch({1: 1_000}, 2), ExpectedBatch({1: 10**7}, 2, OPTIONS)],
    ),
    CostLearning: (CostLearning(), BATCHES, [None]),
    LiftPlacement: (
        LiftPlacement(),
        [*BATCHES, *(replace(one, lifted="driver", lift_seconds=0.1) for one in BATCHES)],
        [UpcomingRows(None), UpcomingRows(0.5), UpcomingRows(1e6), UpcomingRows(0.5, tied=True)],
    ),
    WindowDivision: (WindowDivision(), [*BATCHES, *RUNS], TO_DIVIDE),
    Elastic: (
        Elastic(ThresholdPolicy(), 8, Workers(2, 2), every=2, cooldown=1, idle_timeout=2, catch_up="1 second"),
        [StageSamples(None, None), StageSamples(CALM, None, 100), StageSamples(OVERLOADED, CALM, 400, 5_000, 3, 2, 1)],
        [None],
    ),
    Admission: (
        Admission(max_readers=3, strategy="DRF-M"),
        [
            PeriodObservation({}),
            PeriodObservation({"a": 10.0, "b": 3.0}),
            PeriodObservation({"b": 900.0, "c": 1.0}, {1: 50.0}),
        ],
        [{}, {"a": MetaData(), "b": META}, {"b": MetaData(average=7), "c": META}],
    ),
    Readers: (
        Readers(max_readers=5, idle_timeout=2, history=8),
        [ReaderBatch(0, 0.1, 1), ReaderBatch(1_000, 0.2, 5), ReaderBatch(90_000, 4.0, 2)],
        [Backlog(0.0, 0.0), Backlog(1_700.0, 8_500.0), Backlog(1e6, 1e7)],
    ),
    Pace: (
        Pace(longest=1.0),
        [
            PacedBatch(1.0, 5, None, None),
            PacedBatch(1.0, 0, 900_000, None),
            *(PacedBatch(at / 2, 100, at * 500_000, at * 500_000 + 800_000) for at in range(2, 8)),
        ],
        [BatchEnd(4.0), BatchEnd(2.5), BatchEnd(4.0, rows_wait=True)],
    ),
    LatencyPromise: (
        LatencyPromise(),
        [AnsweredBatch(0.0, 0, 9.0), AnsweredBatch(1.5, 3, 0.2), AnsweredBatch(2.0, 40, 7.5)],
        [0.1, 5.0],
    ),
    ExecutorCount: (
        ExecutorCount(),
        [None],
        [ExecutorNeed(*need) for need in ((1, 1, 4, 1.0), (9, 2, 1, 5.0), (4, 1, 4, 30.0), (2, 1, 0, 7.0))],
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("kind", CASES, ids=lambda kind: kind.__name__)
def test_every_policy_keeps_the_laws(kind: type[AnyPolicy]):
    policy, measured, known = CASES[kind]
    check_policy(policy, measured=measured, known=known)


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["PAR", "ARI", "ARD", "DRF"])
def test_admission_keeps_them_with_every_strategy(strategy: str):
    policy, measured, known = CASES[Admission]
    check_policy(replace(policy, strategy=strategy), measured=measured, known=known)  # type: ignore[type-var]


@pytest.mark.long
@pytest.mark.parametrize(
    "option", [Fuzzy(max_workers=6, every=1), Model(every=2), Threshold(every="2 seconds")], ids=str
)
def test_what_counts_workers_keeps_them(option: Elasticity):
    check_elasticity(option)


def test_no_policy_is_left_out():
    assert concrete(Policy, skypane) == set(CASES)  # type: ignore[type-abstract]
    assert {type(policy) for policy in POLICIES.values()} <= set(CASES)
    assert concrete(Elasticity, skypane.control) == {Fuzzy, Model, Threshold}


@dataclass(frozen=True)
class Count(JsonState):
    """How many intervals there were."""

    seen: int = 0


@dataclass(frozen=True)
class Counting(Policy[Count, int, None, int]):
    """A sound policy; its faults are made of it below."""

    State = Count

    def init(self) -> Count:
        return Count()

    def observe(self, state: Count, measured: int) -> Count:
        return replace(state, seen=state.seen + measured)

    def decide(self, state: Count, known: None) -> tuple[Count, Decision[int]]:
        del known
        return state, Decision("count", state.seen, f"{state.seen} seen", {"seen": float(state.seen)})


class Remembers(Counting):
    """Keeps what it has seen beside the state."""

    def decide(self, state: Count, known: None) -> tuple[Count, Decision[int]]:
        del known
        turn = getattr(self, "_turn", 0)
        object.__setattr__(self, "_turn", turn + 1)
        return state, Decision("count", turn, "as it comes")


class Forgets(Counting):
    """Decides by what no snapshot has."""

    def snapshot(self, state: Count) -> Any:
        del state
        return {"seen": 0}


class Changes(Counting):
    """Changes the state that it is given."""

    def decide(self, state: Count, known: None) -> tuple[Count, Decision[int]]:
        object.__setattr__(state, "seen", 7)
        return super().decide(Count(state.seen), known)


class GivesNoReason(Counting):
    def decide(self, state: Count, known: None) -> tuple[Count, Decision[int]]:
        del known
        return state, Decision("count", 1, "")


class HasNoFigure(Counting):
    def decide(self, state: Count, known: None) -> tuple[Count, Decision[int]]:
        del known
        return state, Decision("count", 1, "so it is", {"rho": math.nan})


class TakesAnything(Counting):
    def restore(self, snapshot: Any) -> Count:
        return Count(snapshot["seen"] if isinstance(snapshot, dict) and "seen" in snapshot else 0)


@dataclass(frozen=True)
class All(JsonState):
    seen: tuple[int, ...] = ()


@dataclass(frozen=True)
class Hoards(Policy[All, int, None, int]):
    """Keeps all that it has seen."""

    State = All

    def init(self) -> All:
        return All()

    def observe(self, state: All, measured: int) -> All:
        return All((*state.seen, measured))

    def decide(self, state: All, known: None) -> tuple[All, Decision[int]]:
        del known
        return state, Decision("count", len(state.seen), "as many as there were")


@pytest.mark.parametrize(
    ("policy", "broken"),
    [
        (Remembers(), "equal states and inputs give equal decisions"),
        (Changes(), "change no state|equal states and inputs"),
        (Forgets(), "restored from JSON"),
        (TakesAnything(), "raises CheckpointError for anything"),
        (GivesNoReason(), "has its subject, and its reason"),
        (HasNoFigure(), "figures are finite"),
        (Hoards(), "does not grow"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_kit_names_the_law_that_is_broken(policy: AnyPolicy, broken: str):
    check_policy(Counting(), measured=[1, 2], known=[None])
    with pytest.raises(AssertionError, match=broken):
        check_policy(policy, measured=[1, 2], known=[None])


@dataclass(frozen=True)
class TooMany(ScalingPolicy):
    """Proposes more than there may be."""

    name = "too many"

    def propose(self, situation: Situation, most: int) -> Decision[Workers]:
        return Decision("workers", Workers(most, most), f"{situation.rho_plq:.2f}")


@dataclass(frozen=True, kw_only=True)
class Greedy(Threshold):
    @property
    def policy(self) -> ScalingPolicy:
        return TooMany()


def test_a_proposal_of_more_workers_than_there_may_be_is_found():
    with pytest.raises(AssertionError, match="at most the allowed number of workers"):
        check_elasticity(Greedy())


def test_a_run_without_anything_to_observe_is_none():
    with pytest.raises(AssertionError, match="must not be empty"):
        check_policy(Exchange(), measured=[], known=[None])


def test_a_decision_is_reported_as_json():
    decision = Decision("splitting", Routing(2, {3: (Share(1, 5),)}), "why", {"sigma": 1.0})
    assert json.loads(json.dumps(decision.to_json())) == {
        "what": "splitting",
        "value": {"workers": 2, "shares": {"3": [[1, 5]]}, "everywhere": False, "turn": 0},
        "because": "why",
        "figures": {"sigma": 1.0},
    }
