from __future__ import annotations

import json

import pytest

from skypane.control.costs import Costs
from skypane.types import ConfigError


def test_costs_go_through_json():
    costs = Costs(exchange=0.1, measured="here")
    assert Costs.from_json(json.loads(json.dumps(costs.to_json()))) == costs
    assert Costs.from_json({"job": 0.2}) == Costs(job=0.2)


def test_an_exchange_costs_once_and_by_the_row():
    assert Costs(exchange=0.1, exchange_per_row=1e-6).exchanging(500_000) == pytest.approx(0.6)


@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf"), "1", True])
def test_invalid_costs_are_refused(value):
    with pytest.raises(ConfigError, match="costs: job must be seconds >= 0"):
        Costs(job=value)


@pytest.mark.parametrize("value", [0, -1, 2.5, True, "many"])
def test_a_number_of_keys_is_a_whole_one(value):
    with pytest.raises(ConfigError, match="costs: many_keys must be a number of rows >= 1"):
        Costs(many_keys=value)


def test_an_unknown_cost_is_named():
    with pytest.raises(ConfigError, match="costs: unknown jobs; known are"):
        Costs.from_json({"jobs": 1})
