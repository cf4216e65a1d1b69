"""The log of a run: resumed by the same description only, one entry per batch, whatever a crash left."""

import pytest
from tests.reporting.made import batch, hourly

from skypane.reporting.runlog import RunLog
from skypane.types import CheckpointError


def test_batches_come_back_equal_and_in_order(tmp_path):
    log = RunLog(tmp_path / "run")
    assert log.begin({"speedup": 2.0}) is False
    for metrics in hourly(3):
        log.append(metrics)
    assert log.batches() == hourly(3)
    assert log.begin({"speedup": 2.0}) is True


def test_a_replayed_batch_counts_once_and_the_later_line_wins(tmp_path):
    log = RunLog(tmp_path)
    log.begin({})
    for rows in (1, 2):
        log.append(batch(batch_id=7, rows=rows))
    assert [metrics.rows for metrics in log.batches()] == [2]


def test_a_torn_line_is_dropped_when_the_run_goes_on(tmp_path):
    log = RunLog(tmp_path)
    log.begin({})
    log.append(batch(batch_id=0))
    with log.files[1].open("a") as file:
        file.write('{"batch_id": 1, "ro')
    log.begin({})
    log.append(batch(batch_id=2))
    assert [metrics.batch_id for metrics in log.batches()] == [0, 2]


def test_another_description_is_refused_naming_the_difference(tmp_path):
    RunLog(tmp_path).begin({"days": 3, "rows": None})
    with pytest.raises(CheckpointError, match=r"holds a run with days=3, this one has days=4"):
        RunLog(tmp_path).begin({"days": 4, "rows": None})


def test_an_empty_folder_has_no_batches(tmp_path):
    assert RunLog(tmp_path).batches() == ()
