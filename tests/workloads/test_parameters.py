from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pytest

from skypane.types import ConfigError, Duration
from skypane.workloads.parameters import accepted, build


@dataclass(frozen=True)
class Config:
    count: int
    share: float = 0.5
    shape: Literal["step", "trend"] = "step"
    every: Duration | None = None
    rows: int | None = None
    rates: tuple[float, ...] = ()


def test_texts_become_what_the_fields_are():
    made = build(Config, {"count": "9007199254740993", "share": "1e-3", "rows": "1e3", "rates": "1, 2.5"}, "x")
    assert made == Config(9007199254740993, 0.001, rows=1_000, rates=(1.0, 2.5))
    assert isinstance(made.count, int)
    assert isinstance(made.rows, int)


def test_values_that_fit_stay():
    given = {"count": 3, "share": 1, "shape": "trend", "every": "1 hour", "rows": None, "rates": [1]}
    assert build(Config, given, "x") == Config(3, 1.0, "trend", "1 hour", None, (1.0,))


def test_needed_parameters_come_first():
    assert accepted(Config) == ("count", "share", "shape", "every", "rows", "rates")


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({}, "x needs count; it takes count, share"),
        ({"count": 1, "size": 2}, "x has no parameter 'size'; it takes count, share"),
        ({"count": "1.5"}, "x: count must be a whole number, got '1.5'"),
        ({"count": "inf"}, "x: count must be a whole number, got 'inf'"),
        ({"count": [1]}, r"x: count must be a whole number, got \[1\]"),
        ({"count": 1, "share": "much"}, "x: share must be a number, got 'much'"),
        ({"count": 1, "shape": "wave"}, "x: shape must be one of step, trend, got 'wave'"),
        ({"count": 1, "rates": "1,b"}, "x: rates must be a number, got 'b'"),
        ({"count": 1, "rates": 7}, "x: rates must be a list"),
    ],
)
def test_errors_name_parameter_and_value(given: dict[str, object], complaint: str):
    with pytest.raises(ConfigError, match=complaint):
        build(Config, given, "x")
