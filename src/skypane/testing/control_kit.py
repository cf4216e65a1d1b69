"""Check the laws of control policies and elasticity policies on random runs of given measurements.

def test_my_policy_keeps_the_laws():
    check_law(MyPolicy(), measured=[Spread(0.2), Spread(0.9), None], known=[None])
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import FrozenInstanceError, dataclass
from typing import Any, Final

import numpy as np

from skypane.control.control_policy import ControlPolicy, Decision
from skypane.control.elasticity.interval import StageSamples
from skypane.control.elasticity.options import Elasticity
from skypane.control.elasticity.situation import Situation
from skypane.control.monitoring import SamplingPeriod
from skypane.control.parallelism import Workers
from skypane.types import CheckpointError

_STEPS: Final = 30
"""Control intervals of a run."""
_LONG: Final = 400
"""Control intervals of the run on which the size of a state is checked."""

Interval = tuple[Any, Any]


@dataclass(frozen=True)
class ControlRun:
    """The inputs of a policy for each control interval: what was measured, and what is known."""

    intervals: tuple[Interval, ...]

    def decisions(self, policy: ControlPolicy[Any, Any, Any, Any]) -> Iterator[tuple[Any, Any, Decision[Any], Any]]:
        """Yield, per interval, the state after observe(), what is known, the decision, and the state after decide()."""
        state = policy.init()
        for measured, known in self.intervals:
            shown = policy.observe(state, measured)
            state, decision = policy.decide(shown, known)
            yield shown, known, decision, state


Check = Callable[[ControlPolicy[Any, Any, Any, Any], ControlRun], bool]


def check_law(
    policy: ControlPolicy[Any, Any, Any, Any],
    *,
    measured: Sequence[Any],
    known: Sequence[Any],
    tries: int = 10,
    seed: int = 0,
) -> None:
    """Raise AssertionError, which names the law, if `policy` breaks one in `tries` random runs.

    measured   possible arguments of observe(): of idle intervals, overloaded ones, and ones without measurements
    known      possible arguments of decide()
    """
    if not measured or not known:
        raise AssertionError("measured and known must not be empty; pass [None] where there is nothing")
    rng = np.random.default_rng(seed)
    for _ in range(max(tries, 1)):
        chosen = zip(
            rng.integers(0, len(measured), _STEPS).tolist(), rng.integers(0, len(known), _STEPS).tolist(), strict=True
        )
        run = ControlRun(tuple((measured[one], known[other]) for one, other in chosen))
        for name, keeps in LAWS.items():
            if not keeps(policy, run):
                raise AssertionError(f"{policy!r} breaks a law: {name}; with the intervals {run.intervals!r}")
    if not _bounded(policy, run):
        raise AssertionError(
            f"{policy!r} breaks a law: a state does not grow with the run; with the intervals {run.intervals!r}"
        )


def check_elasticity(option: Elasticity, *, parallelism: int = 4, tries: int = 5, seed: int = 0) -> None:
    """Raise AssertionError, which names the law, if an elasticity policy or one of its proposals breaks one.

    The random runs have idle and overloaded stages, whole and split panes, gaps in the measurements, and a backlog.
    """
    rng = np.random.default_rng(seed)
    controller = option.scaling(Workers(2, 2), parallelism)
    if not getattr(controller.policy, "name", None):
        raise AssertionError(f"{option} breaks a law: a policy has a name, by which the ledger identifies it")
    for _ in range(_LONG):
        most = int(rng.integers(2, 20))
        situation = _situation(rng, most)
        proposal = option.policy.propose(situation, most)
        if deepcopy(option.policy).propose(situation, most) != proposal:
            raise AssertionError(f"{option} breaks a law: equal situations give equal proposals; with {situation}")
        if proposal.workers.total > most:
            raise AssertionError(
                f"{option} breaks a law: a proposal has at most the allowed number of workers in all, {most}; with "
                f"{situation}: {proposal}"
            )
    shown = [_stages(rng) for _ in range(40)]
    check_law(controller, measured=shown, known=[None], tries=tries, seed=seed)


def _situation(rng: np.random.Generator, most: int) -> Situation:
    """Return a random situation at the end of a control interval; values that could not be measured are NaN or None."""
    plq = int(rng.integers(1, most))
    rho = [math.nan if rng.random() < 0.15 else float(rng.gamma(2, 0.5)) for _ in range(2)]
    rate, cost_plq, cost_wlq = (
        None if rng.random() < 0.2 else float(10 ** rng.uniform(low, low + 5)) for low in (0, -7, -7)
    )
    sigma = math.nan if rng.random() < 0.15 else float(1 + rng.gamma(1, 1))
    backlog = int(rng.integers(0, 10**6)) if rng.random() < 0.3 else 0
    workers = Workers(plq, int(rng.integers(1, most - plq + 1)))
    return Situation(workers, rho[0], rho[1], sigma, rate, backlog, cost_plq, cost_wlq)


def _stages(rng: np.random.Generator) -> StageSamples:
    plq, wlq = (None if rng.random() < 0.15 else _period(rng) for _ in range(2))
    arrived = 0 if plq is None else sum(plq.scheduled)
    backlog = int(rng.integers(0, 50_000)) if rng.random() < 0.3 else 0
    tasks = int(rng.integers(1, 9)) if rng.random() < 0.3 else None
    used = [None if stage is None or rng.random() < 0.3 else stage.needed() for stage in (plq, wlq)]
    return StageSamples(plq, wlq, arrived, backlog, tasks, *used)


def _period(rng: np.random.Generator) -> SamplingPeriod:
    """Return a random period of one to six workers, from nearly idle to three times overloaded."""
    seconds, workers = float(rng.uniform(0.1, 5)), int(rng.integers(1, 7))
    busy = tuple((rng.uniform(0, 1.2, workers) * seconds).tolist())
    processed = tuple(rng.integers(0, 5_000, workers).tolist())
    scheduled = tuple(round(rows * rng.uniform(0.2, 3)) for rows in processed)
    panes = int(rng.integers(0, 20))
    return SamplingPeriod(seconds, busy, processed, scheduled, panes, panes + int(rng.integers(0, 20)) if panes else 0)


def _repeatable(policy: ControlPolicy[Any, Any, Any, Any], run: ControlRun) -> bool:
    """Repeat the run with the policy and with a copy: nothing is kept outside the state."""
    copy = deepcopy(policy)
    first, again, other = (list(run.decisions(one)) for one in (policy, policy, copy))
    at_once = all(policy.decide(shown, known) == (after, decision) for shown, known, decision, after in first)
    return at_once and first == again == other


def _states_kept(policy: ControlPolicy[Any, Any, Any, Any], run: ControlRun) -> bool:
    state = policy.init()
    for measured, known in run.intervals:
        before = json.dumps(policy.snapshot(state))
        shown = policy.observe(state, measured)
        between = json.dumps(policy.snapshot(shown))
        after, _ = policy.decide(shown, known)
        if json.dumps(policy.snapshot(state)) != before or json.dumps(policy.snapshot(shown)) != between:
            return False
        state = after
    return True


def _restored(policy: ControlPolicy[Any, Any, Any, Any], run: ControlRun) -> bool:
    """Restore the state after each decision with a copy of the policy, as after a restart."""
    again = deepcopy(policy)
    state = policy.init()
    for (measured, known), (_, _, decision, after) in zip(run.intervals, run.decisions(policy), strict=True):
        restored = again.restore(json.loads(json.dumps(policy.snapshot(state))))
        state, other = again.decide(again.observe(restored, measured), known)
        if (state, other) != (after, decision):
            return False
    return True


def _refuses(policy: ControlPolicy[Any, Any, Any, Any], run: ControlRun) -> bool:
    del run
    for snapshot in (None, {"no": "state"}, [1], "text"):
        try:
            policy.restore(snapshot)
        except CheckpointError:
            continue
        return False
    return True


def _reasons(policy: ControlPolicy[Any, Any, Any, Any], run: ControlRun) -> bool:
    decisions = [decision for _, _, decision, _ in run.decisions(policy)]
    return all(bool(one.what.strip() and one.because.strip()) and "\n" not in one.because for one in decisions)


def _figures(policy: ControlPolicy[Any, Any, Any, Any], run: ControlRun) -> bool:
    values = [value for _, _, decision, _ in run.decisions(policy) for value in decision.figures.values()]
    return all(map(math.isfinite, values))


def _serialisable(policy: ControlPolicy[Any, Any, Any, Any], run: ControlRun) -> bool:
    documents = [decision.to_json() for _, _, decision, _ in run.decisions(policy)]
    return bool(json.loads(json.dumps(documents, allow_nan=False)) == documents)


def _frozen(policy: ControlPolicy[Any, Any, Any, Any], run: ControlRun) -> bool:
    states = [policy.init(), *(after for _, _, _, after in run.decisions(policy))]
    values: tuple[Any, ...] = (policy, states[-1])
    for value in values:
        try:
            value.anything = 1
        except (FrozenInstanceError, TypeError, AttributeError):  # slotted classes raise one of the others
            continue
        return False
    return True


def _bounded(policy: ControlPolicy[Any, Any, Any, Any], run: ControlRun) -> bool:
    state, sizes = policy.init(), []
    for number in range(_LONG):
        measured, known = run.intervals[number % len(run.intervals)]
        state, _ = policy.decide(policy.observe(state, measured), known)
        if number + 1 in {_LONG // 4, _LONG}:
            sizes.append(len(json.dumps(policy.snapshot(state))))
    return sizes[1] <= 1.5 * sizes[0] + 256


LAWS: Final[dict[str, Check]] = {
    "equal states and inputs give equal decisions, also of a copy": _repeatable,
    "observe() and decide() change no state": _states_kept,
    "a state restored from JSON behaves like the original": _restored,
    "restore() raises CheckpointError for anything but a snapshot": _refuses,
    "a decision has its subject, and its reason in one line": _reasons,
    "figures are finite numbers": _figures,
    "to_json() of a decision is a JSON value": _serialisable,
    "a policy and its states are frozen": _frozen,
}
"""Laws of every control policy."""
