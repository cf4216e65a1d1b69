from __future__ import annotations

from datetime import timedelta
from math import gcd

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import windows

from skypane.types import ConfigError
from skypane.windows import Windows

TIMES = st.integers(-300, 300)
NEAR = range(-80, 81)


def holding(w: Windows, time: int) -> list[int]:
    """Windows that hold `time`, by the definition."""
    last = (abs(time) + abs(w.offset) + w.length) // w.slide + 1
    spans = ((k, w.offset + k * w.slide) for k in range(-last, last + 1))
    return [k for k, start in spans if start <= time < start + w.length]


@given(windows(), TIMES)
def test_a_time_lies_in_its_pane(w: Windows, time: int):
    pane = w.pane_at(time)
    assert w.pane_start(pane) <= time < w.pane_end(pane)
    assert w.pane_end(pane) == w.pane_start(pane + 1)


@given(windows(), st.integers(-80, 80))
def test_panes_are_cut_where_a_window_begins_or_ends_and_nowhere_else(w: Windows, pane: int):
    near = range((w.pane_start(pane) - w.offset - w.length) // w.slide, (w.pane_end(pane) - w.offset) // w.slide + 1)
    edges = {edge for window in near for edge in w.bounds(window)}
    assert {w.pane_start(pane), w.pane_end(pane)} <= edges
    assert not edges & set(range(w.pane_start(pane) + 1, w.pane_end(pane)))
    assert w.pane_end(pane) - w.pane_start(pane) <= w.longest_pane


@given(windows())
def test_there_are_never_more_panes_than_the_papers_greatest_common_divisor_cuts(w: Windows):
    divisor = gcd(w.length, w.slide)
    assert w.panes_per_slide <= min(2, w.slide // divisor)
    assert w.panes_per_window <= w.length // divisor


def test_a_slide_that_does_not_divide_the_window_is_cut_in_two():
    w = Windows(1_000, 333)
    assert [(w.pane_start(pane), w.pane_end(pane)) for pane in w.panes_of(1)] == [
        (333, 334), (334, 666), (666, 667), (667, 999), (999, 1_000), (1_000, 1_332), (1_332, 1_333),
    ]  # fmt: skip


@given(windows(), TIMES)
def test_windows_of_a_pane_are_the_windows_of_its_times(w: Windows, time: int):
    assert list(w.windows_of(w.pane_at(time))) == holding(w, time)


@given(windows(), st.integers(-50, 50))
def test_panes_of_a_window_tile_it(w: Windows, k: int):
    start, end = w.bounds(k)
    panes = w.panes_of(k)
    assert (w.pane_start(panes[0]), w.pane_end(panes[-1])) == (start, end)
    assert len(panes) == w.panes_per_window
    assert (start, end - start) == (w.offset + k * w.slide, w.length)


@given(windows(), st.integers(-50, 50))
def test_windows_of_and_panes_of_are_one_relation(w: Windows, k: int):
    assert all(k in w.windows_of(pane) for pane in w.panes_of(k))
    assert [pane for pane in NEAR if k in w.windows_of(pane)] == [pane for pane in NEAR if pane in w.panes_of(k)]


@given(windows(), st.integers(-80, 80))
def test_every_pane_is_in_some_window(w: Windows, pane: int):
    assert len(w.windows_of(pane)) in {w.length // w.slide, -(-w.length // w.slide)}


@given(windows(), TIMES)
def test_first_open_is_the_first_pane_that_ends_after_the_punctuation(w: Windows, punctuation: int):
    first = w.first_open(punctuation)
    assert w.pane_end(first - 1) <= punctuation < w.pane_end(first)


@given(windows(), st.lists(TIMES, max_size=20))
def test_panes_at_takes_many_times(w: Windows, times: list[int]):
    panes = w.panes_at(np.array(times, np.int64))
    assert panes.tolist() == [w.pane_at(time) for time in times]
    assert w.pane_start(panes).tolist() == [w.pane_start(pane) for pane in panes.tolist()]
    assert w.pane_end(panes).tolist() == [w.pane_end(pane) for pane in panes.tolist()]


def test_panes_at_leaves_its_input_alone():
    times = np.array([1, 2, 3])
    times.flags.writeable = False
    assert Windows(2, 1).panes_at(times).tolist() == [1, 2, 3]


@pytest.mark.parametrize(("length", "slide"), [(0, 0), (10, 0), (10, -1), (5, 10), (-5, -5)])
def test_invalid_windows_are_refused_with_their_values(length: int, slide: int):
    with pytest.raises(ConfigError, match=f"^need 0 < slide <= length, got slide={slide}, length={length} "):
        Windows(length, slide)


def test_the_method_of_accepts_what_a_user_writes():
    assert Windows.of("1 hour", timedelta(minutes=10), "-5 minutes") == Windows(
        3_600_000_000, 600_000_000, -300_000_000
    )
    assert Windows.of("1 minute") == Windows(60_000_000, 60_000_000), "no slide: tumbling"


@pytest.mark.parametrize(("name", "window", "slide", "offset"), [
    ("window", "1 moon", None, "0 s"), ("slide", "1 hour", "1 moon", "0 s"), ("offset", "1 hour", None, "1 moon"),
])  # fmt: skip
def test_the_method_of_names_the_argument_that_it_cannot_read(name: str, window: str, slide: str | None, offset: str):
    with pytest.raises(ConfigError, match=f"^{name}: unknown unit 'moon'"):
        Windows.of(window, slide, offset)
