"""What holds for every control law."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError

import pytest

from skypane.control.exchange import Exchange
from skypane.control.law import Decision
from skypane.control.placement import DueWindows, Placement
from skypane.control.splitting import POLICIES, Panes, Routing, Share
from skypane.types import CheckpointError

#: each law, and something that it may know before it decides
LAWS = [
    *((law, Panes({1: 10, 2: 20}, 3)) for law in POLICIES.values()),
    (Exchange(), None),
    (Placement(), DueWindows(4, 1_000, 2, 3)),
]
every_law = pytest.mark.parametrize(
    ("law", "known"), LAWS, ids=[getattr(law, "name", type(law).__name__) for law, _ in LAWS]
)


@every_law
def test_deciding_twice_from_one_state_is_deciding_alike(law, known):
    state = law.init()
    assert law.decide(state, known) == law.decide(state, known)


@every_law
def test_states_go_through_json(law, known):
    state, _ = law.decide(law.init(), known)
    assert law.restore(json.loads(json.dumps(law.snapshot(state)))) == state


@every_law
def test_what_is_no_snapshot_is_refused(law, known):
    del known
    with pytest.raises(CheckpointError, match="in the checkpoint"):
        law.restore({"no": "state"})
    with pytest.raises(CheckpointError, match="in the checkpoint"):
        law.restore(None)


@every_law
def test_laws_are_frozen(law, known):
    del known
    with pytest.raises((FrozenInstanceError, TypeError)):  # of a slotted one, Python says TypeError
        law.anything = 1


def test_a_decision_is_told_as_json():
    decision = Decision("splitting", Routing(2, {3: (Share(1, 5),)}), "why", {"sigma": 1.0})
    assert json.loads(json.dumps(decision.to_json())) == {
        "what": "splitting",
        "value": {"workers": 2, "shares": {"3": [[1, 5]]}, "everywhere": False, "turn": 0},
        "because": "why",
        "figures": {"sigma": 1.0},
    }
