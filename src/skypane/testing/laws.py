"""The laws of the laws of control, tried on what you say a run may show them; and of what counts workers.

def test_my_law_keeps_the_laws():
    check_law(MyLaw(), measured=[Spread(0.2), Spread(0.9), None], known=[None])
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import FrozenInstanceError, dataclass
from typing import Any, Final

import numpy as np

from skypane.control.elasticity.interval import Stages
from skypane.control.elasticity.options import Elasticity
from skypane.control.elasticity.situation import Situation
from skypane.control.law import ControlLaw, Decision
from skypane.control.monitoring import Period
from skypane.control.workers import Workers
from skypane.types import CheckpointError

_STEPS: Final = 30
"""Intervals of a run."""
_LONG: Final = 400
"""Intervals of the run by which a state is held to be bounded."""

Interval = tuple[Any, Any]


@dataclass(frozen=True)
class Run:
    """What a law is shown and knows, interval by interval."""

    intervals: tuple[Interval, ...]

    def decisions(self, law: ControlLaw[Any, Any, Any, Any]) -> Iterator[tuple[Any, Any, Decision[Any], Any]]:
        """Yield the state after what was measured, what is known, the decision on it, and the state after that."""
        state = law.init()
        for measured, known in self.intervals:
            shown = law.observe(state, measured)
            state, decision = law.decide(shown, known)
            yield shown, known, decision, state


Check = Callable[[ControlLaw[Any, Any, Any, Any], Run], bool]


def check_law(
    law: ControlLaw[Any, Any, Any, Any],
    *,
    measured: Sequence[Any],
    known: Sequence[Any],
    tries: int = 10,
    seed: int = 0,
) -> None:
    """Raise AssertionError, naming the law that is broken, if `law` breaks one in `tries` runs drawn at random.

    measured   what intervals may show, as observe() takes it: calm ones, overloaded ones, ones of which nothing is known
    known      what may be known before a decision, as decide() takes it
    """
    if not measured or not known:
        raise AssertionError("give check_law something to observe and something to know; [None] where there is nothing")
    rng = np.random.default_rng(seed)
    for _ in range(max(tries, 1)):
        chosen = zip(
            rng.integers(0, len(measured), _STEPS).tolist(), rng.integers(0, len(known), _STEPS).tolist(), strict=True
        )
        run = Run(tuple((measured[shown], known[told]) for shown, told in chosen))
        for name, keeps in LAWS.items():
            if not keeps(law, run):
                raise AssertionError(f"{law!r} breaks a law: {name}; seen with {run.intervals!r}")
    if not _bounded(law, run):
        raise AssertionError(f"{law!r} breaks a law: a state does not grow with the run; seen with {run.intervals!r}")


def check_elasticity(option: Elasticity, *, parallelism: int = 4, tries: int = 5, seed: int = 0) -> None:
    """Raise AssertionError, naming the law that is broken, if what counts workers breaks one: of control, or of proposals.

    Runs show both stages idle and overloaded, panes whole and split, intervals that could not be measured, and a backlog.
    """
    rng = np.random.default_rng(seed)
    law = option.law(Workers(2, 2), parallelism)
    if not getattr(law.policy, "name", None):
        raise AssertionError(f"{option} breaks a law: a policy has a name, by which a ledger tells it from others")
    for _ in range(_LONG):
        most = int(rng.integers(2, 20))
        situation = _situation(rng, most)
        proposal = option.policy.propose(situation, most)
        if deepcopy(option.policy).propose(situation, most) != proposal:
            raise AssertionError(f"{option} breaks a law: equal situations give equal proposals; seen with {situation}")
        if proposal.workers.total > most:
            raise AssertionError(
                f"{option} breaks a law: a proposal is of at most so many workers together as there may be, {most}; seen "
                f"with {situation}: {proposal}"
            )
    shown = [_stages(rng) for _ in range(40)]
    check_law(law, measured=shown, known=[None], tries=tries, seed=seed)


def _situation(rng: np.random.Generator, most: int) -> Situation:
    """A situation as a control interval may end with: what could not be measured is NaN, or None."""
    plq = int(rng.integers(1, most))
    rho = [math.nan if rng.random() < 0.15 else float(rng.gamma(2, 0.5)) for _ in range(2)]
    rate, cost_plq, cost_wlq = (
        None if rng.random() < 0.2 else float(10 ** rng.uniform(low, low + 5)) for low in (0, -7, -7)
    )
    sigma = math.nan if rng.random() < 0.15 else float(1 + rng.gamma(1, 1))
    backlog = int(rng.integers(0, 10**6)) if rng.random() < 0.3 else 0
    workers = Workers(plq, int(rng.integers(1, most - plq + 1)))
    return Situation(workers, rho[0], rho[1], sigma, rate, backlog, cost_plq, cost_wlq)


def _stages(rng: np.random.Generator) -> Stages:
    plq, wlq = (None if rng.random() < 0.15 else _period(rng) for _ in range(2))
    arrived = 0 if plq is None else sum(plq.scheduled)
    backlog = int(rng.integers(0, 50_000)) if rng.random() < 0.3 else 0
    tasks = int(rng.integers(1, 9)) if rng.random() < 0.3 else None
    used = [None if stage is None or rng.random() < 0.3 else stage.needed() for stage in (plq, wlq)]
    return Stages(plq, wlq, arrived, backlog, tasks, *used)


def _period(rng: np.random.Generator) -> Period:
    """One to six workers, from nearly idle to three times overloaded."""
    seconds, workers = float(rng.uniform(0.1, 5)), int(rng.integers(1, 7))
    busy = tuple((rng.uniform(0, 1.2, workers) * seconds).tolist())
    processed = tuple(rng.integers(0, 5_000, workers).tolist())
    scheduled = tuple(round(rows * rng.uniform(0.2, 3)) for rows in processed)
    panes = int(rng.integers(0, 20))
    return Period(seconds, busy, processed, scheduled, panes, panes + int(rng.integers(0, 20)) if panes else 0)


def _repeatable(law: ControlLaw[Any, Any, Any, Any], run: Run) -> bool:
    """By itself and by a copy, at once and from the beginning: nothing is kept but in the state."""
    copy = deepcopy(law)
    first, again, other = (list(run.decisions(one)) for one in (law, law, copy))
    at_once = all(law.decide(shown, known) == (after, decision) for shown, known, decision, after in first)
    return at_once and first == again == other


def _states_kept(law: ControlLaw[Any, Any, Any, Any], run: Run) -> bool:
    state = law.init()
    for measured, known in run.intervals:
        before = json.dumps(law.snapshot(state))
        shown = law.observe(state, measured)
        between = json.dumps(law.snapshot(shown))
        after, _ = law.decide(shown, known)
        if json.dumps(law.snapshot(state)) != before or json.dumps(law.snapshot(shown)) != between:
            return False
        state = after
    return True


def _restored(law: ControlLaw[Any, Any, Any, Any], run: Run) -> bool:
    """Restored after each decision, by a copy of the law, as after a restart."""
    again = deepcopy(law)
    state = law.init()
    for (measured, known), (_, _, decision, after) in zip(run.intervals, run.decisions(law), strict=True):
        restored = again.restore(json.loads(json.dumps(law.snapshot(state))))
        state, other = again.decide(again.observe(restored, measured), known)
        if (state, other) != (after, decision):
            return False
    return True


def _refuses(law: ControlLaw[Any, Any, Any, Any], run: Run) -> bool:
    del run
    for snapshot in (None, {"no": "state"}, [1], "text"):
        try:
            law.restore(snapshot)
        except CheckpointError:
            continue
        return False
    return True


def _reasons(law: ControlLaw[Any, Any, Any, Any], run: Run) -> bool:
    decisions = [decision for _, _, decision, _ in run.decisions(law)]
    return all(bool(one.what.strip() and one.because.strip()) and "\n" not in one.because for one in decisions)


def _figures(law: ControlLaw[Any, Any, Any, Any], run: Run) -> bool:
    values = [value for _, _, decision, _ in run.decisions(law) for value in decision.figures.values()]
    return all(map(math.isfinite, values))


def _told(law: ControlLaw[Any, Any, Any, Any], run: Run) -> bool:
    told = [decision.to_json() for _, _, decision, _ in run.decisions(law)]
    return bool(json.loads(json.dumps(told, allow_nan=False)) == told)


def _frozen(law: ControlLaw[Any, Any, Any, Any], run: Run) -> bool:
    states = [law.init(), *(after for _, _, _, after in run.decisions(law))]
    values: tuple[Any, ...] = (law, states[-1])
    for value in values:
        try:
            value.anything = 1
        except (FrozenInstanceError, TypeError, AttributeError):  # of a slotted one Python says one of the others
            continue
        return False
    return True


def _bounded(law: ControlLaw[Any, Any, Any, Any], run: Run) -> bool:
    state, sizes = law.init(), []
    for number in range(_LONG):
        measured, known = run.intervals[number % len(run.intervals)]
        state, _ = law.decide(law.observe(state, measured), known)
        if number + 1 in {_LONG // 4, _LONG}:
            sizes.append(len(json.dumps(law.snapshot(state))))
    return sizes[1] <= 1.5 * sizes[0] + 256


LAWS: Final[dict[str, Check]] = {
    "equal states and inputs give equal decisions, of a copy too": _repeatable,
    "observe() and decide() change no state": _states_kept,
    "a state that went through JSON goes on as if it had not": _restored,
    "restore() refuses what is no snapshot with a CheckpointError": _refuses,
    "a decision says what it is on, and why, in one line": _reasons,
    "figures are finite numbers": _figures,
    "a decision is told as JSON": _told,
    "a law and its states are frozen": _frozen,
}
"""What holds for every law of control."""
