"""What holds for every control law."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError

import pytest

from skypane.control.law import Decision
from skypane.control.splitting import POLICIES, Panes, Routing, Share
from skypane.types import CheckpointError

LAWS = list(POLICIES.values())
every_law = pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)


@every_law
def test_deciding_twice_from_one_state_is_deciding_alike(law):
    state = law.init()
    known = Panes({1: 10, 2: 20}, 3)
    assert law.decide(state, known) == law.decide(state, known)


@every_law
def test_states_go_through_json(law):
    state, _ = law.decide(law.init(), Panes({1: 10, 2: 20}, 3))
    assert law.restore(json.loads(json.dumps(law.snapshot(state)))) == state


@every_law
def test_what_is_no_snapshot_is_refused(law):
    with pytest.raises(CheckpointError, match="in the checkpoint"):
        law.restore({"no": "state"})
    with pytest.raises(CheckpointError, match="in the checkpoint"):
        law.restore(None)


@every_law
def test_laws_are_frozen(law):
    with pytest.raises(FrozenInstanceError):
        law.anything = 1


def test_a_decision_is_told_as_json():
    decision = Decision("splitting", Routing(2, {3: (Share(1, 5),)}), "why", {"sigma": 1.0})
    assert json.loads(json.dumps(decision.to_json())) == {
        "what": "splitting",
        "value": {"workers": 2, "shares": {"3": [[1, 5]]}, "everywhere": False, "turn": 0},
        "because": "why",
        "figures": {"sigma": 1.0},
    }
