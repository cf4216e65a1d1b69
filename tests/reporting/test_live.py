"""What the two displays show of the same batches."""

import io
from functools import reduce

import pyarrow as pa
import pytest
from numba.core import event
from rich.console import Console
from tests.reporting.made import batch, hourly, totals

from skypane.kernels.merging import advance
from skypane.metrics import InputMetrics
from skypane.reporting.live import LINE_EVERY, PlainDisplay, TerminalDisplay, display, panel, starting
from skypane.reporting.query_view import QueryView

FRONT = pa.table(
    {
        "window_start": pa.array([0, 0], pa.timestamp("us", tz="UTC")),
        "window_end": pa.array([3_600_000_000] * 2, pa.timestamp("us", tz="UTC")),
        "carrier": ["AA", "UA"],
        "dep_delay": [-3.0, 12.5],
    }
)


def shown(view, width=100, *, styles=False):
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=styles)
    console.print(panel(view, 65.0))
    return console.export_text(styles=styles)


def view_of(batches, **known):
    return reduce(QueryView.after, batches, QueryView("Best departures", **known))


def test_the_view_adds_up():
    view = view_of(hourly(4), total_rows=1000, read_before=100)
    assert (view.rows, view.read, view.windows, view.share) == (400, 500, 4, 0.5)
    assert view.rate == 400 / 3.5  # first start to last end
    assert view.eta() == 500 / view.rate


def test_a_stream_without_end_has_neither_share_nor_eta():
    view = view_of(hourly(2))
    assert (view.share, view.eta()) == (None, None)


def test_the_panel_shows_all_figures():
    view = view_of(hourly(20), total_rows=4000).after(
        batch(batch_id=20, totals=totals(answered=900, quarantined=7, open=93)), FRONT
    )
    text = shown(view, width=140)
    account = "1,000 read: 900 answered, 0 late, 7 quarantined, 0 held, 93 open"
    for words in ("Best departures", "25 %", "1:05 elapsed", account, "latest front, window to 1970-01-01 01:00"):
        assert words in text
    assert "UA" in text
    assert "12.5" in text


def test_many_inputs_are_one_line_that_names_the_one_furthest_behind():
    inputs = (InputMetrics("a", 0, 5.0, 5.0, 0, 10, "read"), InputMetrics("b", 1, 5.0, 5.0, 40, 10, "behind"),
              InputMetrics("c", 1, None, None, 1_300, 10, "behind"), InputMetrics("d", None, None, None, 0, 7, "gone"))  # fmt: skip
    text = shown(view_of([batch(inputs=inputs)]), width=140)
    assert "4, 1 read to their end; 2 behind by 1,340 rows, most of them c (1,300); 1 gone" in text
    assert "inputs" not in shown(view_of([batch()]))


def test_the_panel_fits_a_narrow_terminal():
    assert max(map(len, shown(view_of(hourly(3)), width=50).splitlines())) <= 50


def test_a_log_gets_a_line_every_few_seconds_and_the_last_one():
    lines: list[str] = []
    now = [0.0]
    with PlainDisplay(QueryView("Best departures"), lines.append, now=lambda: now[0]) as plain:
        for metrics in hourly(10):
            plain.batch(metrics)
            now[0] += LINE_EVERY / 4
    assert lines[0] == "Best departures"
    assert [line.split("]")[0] for line in lines[1:]] == ["[0:00", "[0:05", "[0:10", "[0:12"]
    assert "late rows 0.9 % of 1 % allowed (9 dropped)" in lines[-1]


def test_terminals_are_redrawn_and_pipes_are_not():
    assert isinstance(display(QueryView("x"), Console(file=io.StringIO())), PlainDisplay)
    screen = io.StringIO()
    terminal = Console(file=screen, force_terminal=True, width=80)
    shown = display(QueryView("x"), terminal)
    assert isinstance(shown, TerminalDisplay)
    calls = []

    def front():
        calls.append(1)
        return FRONT

    with shown:
        for metrics in hourly(3):
            shown.batch(metrics, front)
    assert calls == [1]  # fronts are read at most once a second
    assert "latest front" in screen.getvalue()


@pytest.mark.parametrize("batches", [0, 1])
def test_a_first_start_shows_the_kernels_that_it_compiles_until_its_first_batch(batches: int):
    screen = io.StringIO()
    with TerminalDisplay(QueryView("x"), Console(file=screen, force_terminal=True, width=100)) as terminal:
        for _ in range(3):  # what Numba does when it compiles
            event.start_event("numba:compile", data={"dispatcher": advance})
        for metrics in hourly(batches):
            terminal.batch(metrics)
    last = screen.getvalue().rpartition("state" if batches == 0 else "rate")[2]  # as it is when it ends
    assert ("3 compiled, once per installation" in last) is (batches == 0)


def test_the_steps_of_a_start_are_shown_on_a_terminal_only():
    for terminal in (True, False):
        screen = io.StringIO()
        with starting(Console(file=screen, force_terminal=terminal, width=60)) as step:
            step("starting Spark")
            step("checking the job")
        assert ("checking the job" in screen.getvalue()) is terminal


def test_over_budget_is_red():
    over = batch(seen_rows=100, dropped_rows=2, drop_budget=0.01)
    assert "\x1b[1;31m2 % of 1 % allowed" in shown(QueryView("x").after(over), styles=True)
