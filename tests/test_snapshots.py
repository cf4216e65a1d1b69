from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

from skypane.control.splitting.pid import Gains
from skypane.snapshots import JsonState, from_json, renamed, to_json
from skypane.types import CheckpointError


@dataclass(frozen=True, slots=True)
class Whole(JsonState):
    count: int = 1
    share: float | None = None
    name: str = "a"
    closed: bool = False
    sizes: tuple[int, ...] = ()
    by_pane: dict[int, Gains] = field(default_factory=dict)


@dataclass(frozen=True)
class Counted(JsonState):
    rows: int = field(default=0, metadata=renamed("tuples"))


def test_a_field_is_read_under_its_earlier_name():
    assert from_json(Counted, {"tuples": 7}) == from_json(Counted, {"rows": 7}) == Counted(7)
    for wrong, complaint in (
        ({"tuples": "7"}, "rows: need a whole number"),
        ({"rows": 7, "tuples": 7}, "tuples: is not"),
    ):
        with pytest.raises(CheckpointError, match=f"Counted in the checkpoint: {complaint}"):
            from_json(Counted, wrong)


FULL = Whole(3, 0.5, "b", closed=True, sizes=(1, 2), by_pane={-4: Gains(1, 2.5, 0)})


@pytest.mark.parametrize("state", [Whole(), FULL])
def test_a_state_comes_back_from_json(state: Whole):
    assert from_json(Whole, json.loads(json.dumps(to_json(state), allow_nan=False))) == state


@pytest.mark.parametrize(("change", "complaint"), [
    ({"count": 1.0}, "count: need a whole number, got 1.0"),
    ({"count": True}, "count: need a whole number, got True"),
    ({"count": None}, "count: need a whole number, got None"),
    ({"share": "x"}, "share: need a finite number, got 'x'"),
    ({"share": float("nan")}, "share: need a finite number, got nan"),
    ({"name": 3}, "name: need a text, got 3"),
    ({"closed": 1}, "closed: need true or false, got 1"),
    ({"sizes": 3}, "sizes: need a list, got 3"),
    ({"sizes": [1, "2"]}, "sizes.1: need a whole number, got '2'"),
    ({"by_pane": []}, r"by_pane: need an object, got \[\]"),
    ({"by_pane": {"x": {}}}, "by_pane: need whole numbers as keys, got 'x'"),
    ({"by_pane": {"1": {"kp": 1, "ki": 1}}}, "by_pane.1.kd: is missing"),
    ({"by_pane": {"1": {"kp": -1, "ki": 1, "kd": 1}}}, "gains must be finite and not negative, got kp=-1"),
    ({"more": 1}, "more: is not one of its fields"),
])  # fmt: skip
def test_what_does_not_fit_is_named(change, complaint):
    with pytest.raises(CheckpointError, match=f"^Whole in the checkpoint: {complaint}$"):
        from_json(Whole, {**to_json(FULL), **change})


def test_a_state_must_be_an_object():
    with pytest.raises(CheckpointError, match="Whole in the checkpoint: need an object, got 3"):
        from_json(Whole, 3)
