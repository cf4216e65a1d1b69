"""Check the laws of every policy on random runs of what it may observe and know.

def test_my_policy_keeps_the_laws():
    check_policy(MyPolicy(), measured=[Spread(0.2), Spread(0.9), None], known=[None])
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import FrozenInstanceError, dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from skypane.policy import Decision, Policy
from skypane.types import CheckpointError

AnyPolicy: TypeAlias = Policy[Any, Any, Any, Any]

_STEPS: Final = 30
"""Intervals of a run."""
_LONG: Final = 400
"""Intervals of the run on which the size of a state is checked."""

Interval = tuple[Any, Any]


@dataclass(frozen=True)
class PolicyTrial:
    """The inputs of a policy for each interval: what was measured, and what is known."""

    intervals: tuple[Interval, ...]

    def decisions(self, policy: AnyPolicy) -> Iterator[tuple[Any, Any, Decision[Any], Any]]:
        """Yield, per interval, the state after observe(), what is known, the decision, and the state after decide()."""
        state = policy.init()
        for measured, known in self.intervals:
            shown = policy.observe(state, measured)
            state, decision = policy.decide(shown, known)
            yield shown, known, decision, state


Check = Callable[[AnyPolicy, PolicyTrial], bool]


def check_policy(
    policy: AnyPolicy,
    *,
    measured: Sequence[Any],
    known: Sequence[Any],
    tries: int = 10,
    seed: int = 0,
) -> None:
    """Raise AssertionError, which names the law, if `policy` breaks one in `tries` random runs.

    measured   possible arguments of observe(): of idle intervals, overloaded ones, and ones without measurements; [None]
               for a policy that observes nothing
    known      possible arguments of decide(); [None] for a policy that knows nothing in advance
    """
    if not measured or not known:
        raise AssertionError("measured and known must not be empty; pass [None] where there is nothing")
    rng = np.random.default_rng(seed)
    for _ in range(max(tries, 1)):
        chosen = zip(
            rng.integers(0, len(measured), _STEPS).tolist(), rng.integers(0, len(known), _STEPS).tolist(), strict=True
        )
        run = PolicyTrial(tuple((measured[one], known[other]) for one, other in chosen))
        for name, keeps in LAWS.items():
            if not keeps(policy, run):
                raise AssertionError(f"{policy!r} breaks a law: {name}; with the intervals {run.intervals!r}")
    if not _bounded(policy, run):
        raise AssertionError(
            f"{policy!r} breaks a law: a state does not grow with the run; with the intervals {run.intervals!r}"
        )


def _repeatable(policy: AnyPolicy, run: PolicyTrial) -> bool:
    """Repeat the run with the policy and with a copy: nothing is kept outside the state."""
    copy = deepcopy(policy)
    first, again, other = (list(run.decisions(one)) for one in (policy, policy, copy))
    at_once = all(policy.decide(shown, known) == (after, decision) for shown, known, decision, after in first)
    return at_once and first == again == other


def _states_kept(policy: AnyPolicy, run: PolicyTrial) -> bool:
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


def _restored(policy: AnyPolicy, run: PolicyTrial) -> bool:
    """Restore the state after each decision with a copy of the policy, as after a restart."""
    again = deepcopy(policy)
    state = policy.init()
    for (measured, known), (_, _, decision, after) in zip(run.intervals, run.decisions(policy), strict=True):
        restored = again.restore(json.loads(json.dumps(policy.snapshot(state))))
        state, other = again.decide(again.observe(restored, measured), known)
        if (state, other) != (after, decision):
            return False
    return True


def _refuses(policy: AnyPolicy, run: PolicyTrial) -> bool:
    *_, (_, _, _, last) = run.decisions(policy)
    whole = policy.snapshot(last)
    unknown = {**whole, "no such field": 1} if isinstance(whole, dict) else {}
    for snapshot in (None, {"no": "state"}, [1], "text", unknown):
        try:
            policy.restore(snapshot)
        except CheckpointError:
            continue
        return False
    return True


def _reasons(policy: AnyPolicy, run: PolicyTrial) -> bool:
    decisions = [decision for _, _, decision, _ in run.decisions(policy)]
    return all(bool(one.what.strip() and one.because.strip()) and "\n" not in one.because for one in decisions)


def _figures(policy: AnyPolicy, run: PolicyTrial) -> bool:
    values = [value for _, _, decision, _ in run.decisions(policy) for value in decision.figures.values()]
    return all(map(math.isfinite, values))


def _serialisable(policy: AnyPolicy, run: PolicyTrial) -> bool:
    documents = [decision.to_json() for _, _, decision, _ in run.decisions(policy)]
    return bool(json.loads(json.dumps(documents, allow_nan=False)) == documents)


def _frozen(policy: AnyPolicy, run: PolicyTrial) -> bool:
    states = [policy.init(), *(after for _, _, _, after in run.decisions(policy))]
    values: tuple[Any, ...] = (policy, states[-1])
    for value in values:
        try:
            value.anything = 1
        except (FrozenInstanceError, TypeError, AttributeError):  # slotted classes raise one of the others
            continue
        return False
    return True


def _bounded(policy: AnyPolicy, run: PolicyTrial) -> bool:
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
"""Laws of every policy."""
