from __future__ import annotations

from collections.abc import Iterable
from itertools import count, takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import windows

from skypane.operators.open_panes import MANY_PARTIALS, OpenPanes, WindowTask
from skypane.windows import Windows

PANES = st.integers(-60, 90)


@st.composite
def scripts(draw: st.DrawFn) -> list[tuple[list[int], int | None]]:
    """Batches of (panes that rows came for, punctuation after the batch); the punctuation never goes back."""
    batches = draw(st.lists(st.tuples(st.lists(PANES, max_size=6), st.integers(0, 40)), max_size=8))
    first = draw(st.integers(0, len(batches)))
    tick = draw(st.integers(-90, 60))
    script: list[tuple[list[int], int | None]] = []
    for at, (panes, step) in enumerate(batches):
        tick += step
        script.append((panes, None if at < first else tick))
    return script


class Definition:
    """Every pane ever admitted is remembered, every window is looked at after each batch."""

    def __init__(self, w: Windows) -> None:
        self.w = w
        self.partials: dict[int, list[str]] = {}
        self.answered: set[int] = set()

    def windows(self) -> list[int]:
        return sorted({k for pane in self.partials for k in self.w.windows_of(pane)})

    def task(self, window: int) -> WindowTask[str]:
        held = [(pane, tuple(self.partials[pane])) for pane in self.w.panes_of(window) if pane in self.partials]
        return WindowTask(window, tuple(held))

    def closed_by(self, punctuation: int | None) -> list[WindowTask[str]]:
        due = [
            k
            for k in self.windows()
            if punctuation is not None and self.w.bounds(k)[1] <= punctuation and k not in self.answered
        ]
        self.answered.update(due)
        return [self.task(k) for k in due]

    def empty(self, punctuation: int | None) -> int:
        """How many windows without a row are closed, from the first that was answered on."""
        if punctuation is None or not self.answered:
            return 0
        ends = (self.w.bounds(k)[1] for k in count(min(self.answered)))
        return sum(1 for _ in takewhile(lambda end: end <= punctuation, ends)) - len(self.answered)

    def needed(self, punctuation: int | None) -> dict[int, tuple[str, ...]]:
        """The panes that some window that is not closed yet holds."""
        return {
            pane: tuple(partials)
            for pane, partials in self.partials.items()
            if punctuation is None or any(self.w.bounds(k)[1] > punctuation for k in self.w.windows_of(pane))
        }


def admitted(w: Windows, panes: Iterable[int], punctuation: int | None) -> list[int]:
    """Gate lets no row into a closed pane."""
    return [pane for pane in panes if punctuation is None or pane >= w.first_open(punctuation)]


@given(windows(st.integers(1, 24)), scripts())
def test_a_script_of_batches_is_the_definition(w: Windows, script: list[tuple[list[int], int | None]]):
    held = OpenPanes[str].empty(w)
    definition, names, before = Definition(w), count(), None
    empty = 0
    for panes, punctuation in script:
        news = [(pane, f"p{next(names)}") for pane in admitted(w, panes, before)]
        for pane, partial in news:
            definition.partials.setdefault(pane, []).append(partial)
        held = held.add(news)
        due = held.closed_by(punctuation)
        assert due == definition.closed_by(punctuation)
        empty += held.empty_by(punctuation, due)
        assert empty == definition.empty(punctuation)
        held = held.retire(punctuation)
        assert held.panes == definition.needed(punctuation)
        before = punctuation


@given(windows(st.integers(1, 24)), st.lists(PANES, max_size=8))
def test_all_windows_are_those_that_hold_a_row(w: Windows, panes: list[int]):
    held = OpenPanes[str].empty(w).add((pane, f"p{i}") for i, pane in enumerate(panes))
    definition = Definition(w)
    for i, pane in enumerate(panes):
        definition.partials.setdefault(pane, []).append(f"p{i}")
    assert held.all_windows() == [definition.task(k) for k in definition.windows()]


def test_a_gap_of_a_century_costs_no_empty_windows():
    w = Windows(2, 1)
    held = OpenPanes[str].empty(w).add([(0, "old"), (10**15, "new")])
    assert [task.window for task in held.closed_by(10**15 + 2)] == [-1, 0, 10**15 - 1, 10**15]


def test_long_windows_cost_as_much_as_they_have_panes_not_its_square():
    held = OpenPanes[int].empty(Windows(200_000, 1)).add((pane, pane) for pane in range(200_000))
    held = held.retire(199_999)
    assert [task.window for task in held.closed_by(200_000)] == [0]


YEARS = 250_000 * 365 * 86_400 * 1_000_000


@pytest.mark.parametrize("length", [86_400 * 1_000_000, YEARS], ids=["a day", "250,000 years"])
def test_a_window_costs_as_much_as_it_has_panes_with_rows(length: int):
    """For a window of 250,000 years by the second nobody could look at every pane."""
    w = Windows(length, 1_000_000)
    held = OpenPanes[str].empty(w).add([(5, "a"), (3, "b"), (w.panes_per_window, "c")]).retire(length)
    assert held.next_window == 1
    assert held.closed_by(length + 2_000_000) == [
        WindowTask(1, ((3, ("b",)), (5, ("a",)), (w.panes_per_window, ("c",)))),
        WindowTask(2, ((3, ("b",)), (5, ("a",)), (w.panes_per_window, ("c",)))),
    ]


def test_a_punctuation_at_the_end_completes_all():
    held = OpenPanes[str].empty(Windows(20, 10)).add([(7, "late"), (0, "early"), (3, "between")])
    assert held.end == 90
    assert [task.window for task in held.closed_by(held.end)] == [task.window for task in held.all_windows()]
    assert OpenPanes[str].empty(Windows(20, 10)).end is None


def test_nothing_is_closed_before_the_first_punctuation():
    held = OpenPanes[str].empty(Windows(2, 1)).add([(0, "a")])
    assert held.closed_by(None) == []
    assert held.retire(None) == held


def test_steps_return_new_values():
    held = OpenPanes[str].empty(Windows(2, 1)).add([(0, "a")])
    held.add([(0, "b"), (1, "c")])
    held.replace([(0, "z")])
    held.retire(100)
    assert held == OpenPanes(Windows(2, 1), {0: ("a",)})


@pytest.mark.parametrize(("punctuation", "scattered"), [(None, [3]), (10, [3]), (20, [1, 3]), (30, [1, 2, 3])])
def test_closed_panes_and_those_in_very_many_partials_are_scattered(punctuation: int | None, scattered: list[int]):
    w = Windows(100, 10)
    many = [(3, f"d{i}") for i in range(MANY_PARTIALS)]
    held = OpenPanes[str].empty(w).add([(0, "a"), (1, "b"), (1, "b2"), (2, "c"), (2, "c2"), *many])
    assert held.scattered(punctuation) == scattered


def test_merged_partials_take_the_place_of_all():
    held = OpenPanes[str].empty(Windows(2, 1)).add([(0, "a"), (0, "b"), (1, "c")])
    merged = held.replace([(0, "ab")])
    assert merged.panes == {0: ("ab",), 1: ("c",)}
    assert merged.scattered(1) == []
    assert merged.closed_by(2)[-1] == WindowTask(0, ((0, ("ab",)), (1, ("c",))))
