from __future__ import annotations

import json
from typing import Any

import pytest

from skypane.control.costs import Costs
from skypane.types import ConfigError


def test_costs_go_through_json():
    costs = Costs(exchange=0.1, measured="here")
    assert Costs.from_json(json.loads(json.dumps(costs.to_json()))) == costs
    assert Costs.from_json({"job": 0.2}) == Costs(job=0.2)


def test_an_exchange_costs_once_and_by_the_row():
    assert Costs(exchange=0.1, exchange_per_row=1e-6).exchanging(500_000) == pytest.approx(0.6)


@pytest.mark.parametrize(("field", "value", "needed"), [
    *(("job", value, "seconds >= 0") for value in (-0.1, float("nan"), float("inf"), "1", True)),
    *(("many_keys", value, "a number of rows >= 1") for value in (0, -1, 2.5, True, "many")),
])  # fmt: skip
def test_invalid_costs_are_refused(field: str, value: Any, needed: str):
    with pytest.raises(ConfigError, match=f"costs: {field} must be {needed}"):
        Costs(**{field: value})


def test_an_unknown_cost_is_named():
    with pytest.raises(ConfigError, match="costs: unknown jobs; known are"):
        Costs.from_json({"jobs": 1})
