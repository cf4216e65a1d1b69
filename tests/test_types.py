from __future__ import annotations

import ast
import json
from datetime import timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.types import BadInputError, CheckpointError, ConfigError, Length, SkypaneError, micros

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 hour", HOUR),
        ("1 hour 30 minutes", 90 * MINUTE),
        ("1 hour, 30 minutes", 90 * MINUTE),
        ("1h30m", 90 * MINUTE),
        ("  2   days ", 48 * HOUR),
        ("interval 10 minutes", 10 * MINUTE),
        ("INTERVAL 10 MINUTES", 10 * MINUTE),
        ("1.5 s", 1_500_000),
        ("0.1 seconds", 100_000),
        ("250 ms", 250_000),
        ("7 us", 7),
        ("1.6 us", 2),
        ("2 weeks", 14 * 24 * HOUR),
        ("-5 minutes", -5 * MINUTE),
        ("1 hour -5 minutes", 55 * MINUTE),
        ("3 mins 2 secs", 182 * SECOND),
    ],
)
def test_a_text_is_read(text: str, expected: int):
    assert micros(text) == expected


@pytest.mark.parametrize(
    "text", ["", "   ", "hour", "1", "1 hour 30", "1 hour x", "ten minutes", ".5 s", "1 hour; 2 minutes"]
)
def test_a_text_that_is_not_a_duration_is_refused_with_it(text: str):
    with pytest.raises(ConfigError, match=r"^slide: cannot read") as refused:
        micros(text, "slide")
    assert repr(text) in str(refused.value)


@pytest.mark.parametrize("unit", ["month", "months", "year", "fortnight", "ss", "mss", "hs"])
def test_an_unknown_unit_is_named(unit: str):
    with pytest.raises(ConfigError, match=f"^window: unknown unit '{unit}' in '2 {unit}'; use one of microsecond"):
        micros(f"2 {unit}", "window")


@pytest.mark.parametrize("value", [None, True, [1], b"1 hour"])
def test_another_type_is_refused(value: Any):
    with pytest.raises(ConfigError, match=r"^offset must be a text"):
        micros(value, "offset")


@pytest.mark.parametrize("value", [3600, 0, -1, 1.5, np.int64(5)])
def test_a_bare_number_has_no_unit_and_what_may_be_meant_is_reported(value: Any):
    with pytest.raises(
        ConfigError, match=rf"^window must be a text .*, got .*{value}.* '{value} seconds' or timedelta"
    ):
        micros(value, "window")


@given(st.integers())
def test_what_was_read_can_be_read_again_and_shows_itself_as_a_text_that_means_the_same(n: int):
    length = Length(n)
    assert micros(length) is length
    assert micros(ast.literal_eval(repr(length))) == n
    assert f"{length}" == json.dumps(length) == str(n)


@given(st.timedeltas())
def test_a_timedelta_is_exact(length: timedelta):
    assert timedelta(microseconds=micros(length)) == length


@given(st.integers(-(10**18), 10**18), st.integers(0, 999_999))
def test_a_text_is_exact_however_long_it_is(seconds: int, fraction: int):
    assert micros(f"{seconds}.{fraction:06d} s") == Fraction(f"{seconds}.{fraction:06d}") * SECOND


@pytest.mark.parametrize("error", [ConfigError, BadInputError, CheckpointError])
def test_every_error_is_a_skypane_error(error: type[Exception]):
    assert issubclass(error, SkypaneError)
