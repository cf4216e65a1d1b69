from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from measure.elastic import executors as elastic_executors
from measure.elastic import hog as elastic_hog
from measure.elastic import steps as elastic_steps
from measure.elastic.executor_times import executor_seconds
from measure.elastic.runs import Profile
from tests.reporting.made import batch

PROFILE = Profile(rate=10.0, factors=(1, 4), step=10.0, begin=1_000.0)


def test_rows_come_at_the_rate_times_the_factor():
    assert PROFILE.rows(np.array([990.0, 1_000.0, 1_010.0, 1_015.0, 1_020.0])).tolist() == [0, 0, 100, 300, 500]


def test_a_phase_in_which_no_batch_ended_is_reported():
    """A batch of the phase before may have lasted through all of it."""
    first, last = (
        batch(started_at=at, rows=100, busy=(0.5, 0.5), rho=0.5, workers={"plq": 2, "wlq": 1}) for at in (20.0, 215.0)
    )
    lines = elastic_hog.table([batch(started_at=0.0), first, last], seconds=60.0)
    assert lines[0] == ["alone", "10.0", "0.50", "2.00", "2", "100"]
    assert lines[1] == ["with hogs", "no batch ended", "-", "-", "-", "-"]
    assert [line[1] for line in lines[2:]] == ["no batch ended", "10.0"]


def test_a_run_that_is_kept_is_the_run(tmp_path: Path):
    """Two batches of six seconds: the rows up to the newest that was lifted are done, the others wait."""
    seen = [
        batch(
            started_at=1_000.0 + at, seconds={"total": 4.0}, newest=round((1_000 + at) * 1e6), windows=1,
            workers={"plq": workers, "wlq": 1}, latest_window={"start": 0, "end": round((1_000 + at) * 1e6), "rows": 1},
        )
        for at, workers in ((2.0, 1), (11.0, 3))
    ]  # fmt: skip
    run = elastic_steps.shown(seen, PROFILE)
    assert run.backlog.tolist() == [40.0, 160.0, 360.0]
    assert run.worker_seconds == 9.0 * 1 + 9.0 * 3
    assert run.latencies.tolist() == pytest.approx([4.0, 4.0])
    run.keep(tmp_path / "run.npz")
    kept = elastic_steps.Shown.kept(tmp_path / "run.npz")
    assert elastic_steps.table({"most": kept}) == elastic_steps.table({"most": run})
    assert elastic_steps.table({"elastic": kept})[0][2] == f"36 ({math.nan:.0%})"


def test_executors_are_counted_while_they_are_there():
    times = [(-5.0, 4.0), (2.0, math.inf), (9.0, 12.0), (20.0, 30.0)]
    assert executor_seconds(times, 0.0, 10.0) == 4.0 + 8.0 + 1.0
    assert executor_seconds(times, 10.0, 20.0) == 10.0 + 2.0
    assert executor_seconds([], 0.0, 10.0) == 0.0


def test_executors_held_in_each_step_are_shown(tmp_path: Path):
    """One all the time, and another in the second and third of five steps of ten seconds."""
    batches = elastic_steps.Shown(*map(np.array, ([4.0, 50.0], [8.0, 2.0], [1.0], [50.0], [4.0], [3.0])))
    way = elastic_executors.Way(batches, np.array([-9.0, 10.0]), np.array([math.inf, 30.0]), step=10.0)
    cells = ["1.40", "1.0, 2.0, 2.0, 1.0, 1.0", "70", "1", "8", "2", "3.0", "3.0"]
    assert way.cells() == cells
    way.keep(tmp_path / "way")
    assert elastic_executors.Way.kept(tmp_path / "way").cells() == cells
