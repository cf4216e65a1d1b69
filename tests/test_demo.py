"""The demo end to end on real Spark: a few days of flights, against the definition, interrupted and resumed."""

import io
import os
import re
import signal
from collections import defaultdict
from contextlib import chdir, redirect_stdout

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from rich.console import Console

from skypane import demo
from skypane.cli.main import main
from skypane.demo import Demo
from skypane.reporting.live import PlainDisplay
from skypane.reporting.query_view import QueryView
from skypane.reporting.report import render
from skypane.reporting.snapshot import answers
from skypane.types import ConfigError

HOUR = 3_600_000_000
DAY = 24 * HOUR


class Watcher(PlainDisplay):
    """Counts batches, and presses Ctrl-C in the middle of one."""

    def __init__(self, interrupt_at=None):
        super().__init__(QueryView("x"), lambda _: None)
        self.interrupt_at = interrupt_at
        self.rows = []

    def batch(self, metrics, front=lambda: None):
        super().batch(metrics, front)
        self.rows.append(metrics.rows)
        if len(self.rows) == self.interrupt_at:
            os.kill(os.getpid(), signal.SIGINT)


def run(settings, spark, display):
    view = demo.prepare(settings)
    return view, demo.run(settings, spark, view, display)


def micros(table, column):
    return pc.cast(table[column], pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()


def best(rows):
    """The skyline by its definition, over (departure delay, arrival delay, distance, identity)."""

    def beats(a, b):
        at_least = a[0] <= b[0] and a[1] <= b[1] and a[2] >= b[2]
        return at_least and (a[0] < b[0] or a[1] < b[1] or a[2] > b[2])

    return [row for row in rows if not any(beats(other, row) for other in rows)]


def fronts(table, end=None):
    """Group rows to {(window end, airport): sorted flights}; rows of a recording count for each window they lie in."""
    columns = ("dep_delay", "arr_delay", "distance", "carrier", "flight", "origin")
    held = defaultdict(list)
    rows = zip(*(table[name].to_pylist() for name in columns), strict=True)
    times = micros(table, "scheduled")
    ends = micros(table, "window_end") if end is None else None
    for i, (*row, origin) in enumerate(rows):
        first = (times[i] // HOUR + 1) * HOUR
        for window in [ends[i]] if ends is not None else range(first, min(first + DAY, end + HOUR), HOUR):
            held[window, origin].append((*row, times[i]))
    return held


def expected(settings, late):
    """What the windows up to the last answered one hold, by the definition, over rows that were not quarantined."""
    taken = demo.flights(settings)
    aside = set(zip(late["flight"].to_pylist(), late["origin"].to_pylist(), micros(late, "scheduled"), strict=True))
    keys = zip(taken["flight"].to_pylist(), taken["origin"].to_pylist(), micros(taken, "scheduled"), strict=True)
    usable = taken.filter(pa.array([key not in aside for key in keys]))
    end = max(micros(written(settings.windows), "window_end"))
    return {key: sorted(best(rows)) for key, rows in fronts(usable, end).items()}


def written(folder):
    table = answers(folder)
    assert table is not None
    return table


def same_as_the_definition(settings):
    late = written(settings.late)
    found = {key: sorted(rows) for key, rows in fronts(written(settings.windows)).items()}
    assert found == expected(settings, late)
    assert set(late["reason"].to_pylist()) <= {"late", "null arr_delay", "null dep_delay"}


@pytest.fixture(scope="module")
def finished(spark, tmp_path_factory):  # noqa: ARG001 - the session that it runs in
    """Return the settings of a demo that a user has typed, and what it printed."""
    here = tmp_path_factory.mktemp("demo")
    with chdir(here), redirect_stdout(io.StringIO()) as output:
        assert main(["demo", "--rows", "1500", "--speedup", "525600"]) == 0
    return Demo(here / "skypane-demo", speedup=525_600.0, rows=1500), output.getvalue()


@pytest.mark.pages
def test_it_reads_all_rows_and_leaves_everything_in_one_folder(finished):
    settings, output = finished
    assert sum(metrics.rows for metrics in settings.log.batches()) == 1500
    assert "1,500 flights, 525,600 times faster" in output
    assert f"{settings.report}" in output
    assert "rows quarantined: null" in output
    assert settings.report.read_text().startswith("<!doctype html>")
    assert list(settings.windows.glob("*.parquet"))


def test_its_windows_are_the_definition(finished):
    settings, _ = finished
    same_as_the_definition(settings)


def test_rows_that_cannot_be_ranked_are_reported_and_kept(finished):
    settings, _ = finished
    nulls = demo.flights(settings)["arr_delay"].null_count
    counted = sum(sum(metrics.quarantined.values()) for metrics in settings.log.batches())
    assert counted == nulls > 0
    kept = written(settings.late)
    assert pc.sum(pc.starts_with(kept["reason"], "null")).as_py() == nulls


def test_it_leaves_a_report(finished):
    settings, _ = finished
    page = render(demo.snapshot(settings))
    assert "Best departures from New York" in page
    assert "all rows of the window" in page


def test_the_demo_reports_where_its_files_are(finished):
    settings, _ = finished
    console = Console(record=True, file=io.StringIO(), width=200)
    demo.print_locations(settings, console.print)
    text = console.export_text()
    assert all(str(path) in text for path in (settings.windows, settings.late, settings.report))


def test_a_finished_run_ends_at_once_when_started_again(finished, spark):
    settings, _ = finished
    before = written(settings.windows)
    watcher = Watcher()
    view, ended = run(settings, spark, watcher)
    assert (ended, view.resumed, view.share) == (True, True, 1.0)
    assert watcher.rows == []
    assert written(settings.windows).equals(before)


@pytest.mark.pages
def test_an_interrupted_run_continues_where_it_was(spark, tmp_path):
    settings = Demo(tmp_path, speedup=100_000.0, rows=2000)
    first = Watcher(interrupt_at=2)
    _, ended = run(settings, spark, first)
    assert not ended
    assert len(first.rows) >= 2
    assert sum(first.rows) < 2000

    second = Watcher()
    view, ended = run(settings, spark, second)
    assert (ended, view.resumed, view.read_before) == (True, True, sum(first.rows))
    assert sum(first.rows) + sum(second.rows) == 2000
    same_as_the_definition(settings)


def test_a_machine_that_falls_behind_gets_an_estimate_in_hours_not_days(tmp_path):
    usual = Demo(tmp_path / "usual")
    demo.prepare(usual)
    most = demo.rows_per_batch(usual)
    departed = micros(demo.flights(usual), "departed")
    spans = [last - first for first, last in zip(departed, departed[most:], strict=False)]
    assert sorted(spans)[len(spans) // 2] < DAY / 2
    assert len(departed) / most > 50

    short = Demo(tmp_path / "short", speedup=525_600.0, rows=10)
    demo.prepare(short)
    assert demo.rows_per_batch(short) == 10


def test_other_settings_do_not_resume(finished, capsys):
    settings, _ = finished
    assert main(["demo", "--rows", "10", "--out", str(settings.out), "--speedup", "525600"]) == 1
    assert re.search("contains a run with rows=1500, but this run has rows=10; .* --fresh", capsys.readouterr().err)


def test_fresh_clears_its_own_files_only(tmp_path):
    settings = Demo(tmp_path / "out", speedup=525_600.0, rows=10)
    demo.prepare(settings)
    (settings.out / "mine.txt").write_text("keep")
    settings.clear()
    assert [path.name for path in settings.out.iterdir()] == ["mine.txt"]


def test_days_count_from_the_first_departure(tmp_path):
    two = demo.flights(Demo(tmp_path, days=2))
    departed = micros(two, "departed")
    assert departed == sorted(departed)
    assert DAY < departed[-1] - departed[0] < 2 * DAY


def test_the_year_is_complete(tmp_path):
    assert demo.flights(Demo(tmp_path, days=None)).num_rows == 336_776


@pytest.mark.parametrize("setting", [{"speedup": 0.0}, {"rows": -1}, {"days": 0}])
def test_settings_must_be_above_zero(tmp_path, setting):
    (name,) = setting
    with pytest.raises(ConfigError, match=f"{name} must be above zero, got {setting[name]}"):
        Demo(tmp_path, **setting)
