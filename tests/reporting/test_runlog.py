"""The log of a run: resumed by the same description only, one entry per batch, whatever a crash left."""

from pathlib import Path

import pytest
from tests.reporting.made import batch, hourly

from skypane.metrics import InputMetrics
from skypane.reporting.runlog import RunLog
from skypane.types import CheckpointError, ConfigError


def test_batches_come_back_equal_and_in_order(tmp_path):
    log = RunLog(tmp_path / "run")
    assert log.begin({"speedup": 2.0}) is False
    for metrics in hourly(3):
        log.append(metrics)
    assert log.batches() == hourly(3)
    assert log.begin({"speedup": 2.0}) is True


def test_hundreds_of_inputs_are_not_written_with_each_batch(tmp_path):
    log = RunLog(tmp_path / "run")
    log.begin({})
    log.append(batch(inputs=(InputMetrics("a", 0, 5.0, 5.0, 0, 10, "read"),)))
    assert log.batches() == (batch(),)


def test_a_replayed_batch_counts_once_and_the_later_line_wins(tmp_path):
    log = RunLog(tmp_path)
    log.begin({})
    for rows in (1, 2):
        log.append(batch(batch_id=7, rows=rows))
    assert [metrics.rows for metrics in log.batches()] == [2]


@pytest.mark.parametrize(
    "damage", ['{"batch_id": 1, "ro', "\0\0\0\0", "[1]", "7", "{}", '{"batch_id": 1}', "\udcff\udcfe", "nonsense\n"]
)
@pytest.mark.parametrize("begun_again", [True, False])
def test_a_damaged_line_costs_that_line_and_is_reported(tmp_path, damage, begun_again):
    remarks: list[str] = []
    log = RunLog(tmp_path, remarks.append)
    log.begin({})
    log.append(batch(batch_id=0))
    with log.files[1].open("ab") as file:
        file.write(damage.encode("utf-8", "surrogateescape"))
    if begun_again:
        assert log.begin({}) is True
    log.append(batch(batch_id=2))
    assert [metrics.batch_id for metrics in log.batches()] == [0, 2]
    assert remarks == [f"1 damaged line of {tmp_path / 'metrics.jsonl'} skipped"]


@pytest.mark.parametrize("damage", [b"", b'{"days": 3', b"[]", b"\xff\xfe"])
def test_a_damaged_description_is_written_again_and_reported(tmp_path, damage):
    remarks: list[str] = []
    log = RunLog(tmp_path, remarks.append)
    log.begin({"days": 3})
    log.append(batch(batch_id=0))
    log.files[0].write_bytes(damage)
    assert log.begin({"days": 3}) is True
    assert remarks == [
        f"{tmp_path / 'run.json'} is damaged and was replaced; the settings were not compared with those of the first start"
    ]
    with pytest.raises(CheckpointError, match="days=3, but this run has days=4"):
        log.begin({"days": 4})


def test_a_full_disk_costs_lines_and_not_the_run():
    remarks: list[str] = []
    RunLog(Path("/dev/full/no-folder"), remarks.append).append(batch(batch_id=5))
    assert len(remarks) == 1
    assert remarks[0].startswith("batch 5 was not written to ")


def test_a_line_that_a_full_disk_cuts_short_is_reported(tmp_path):
    remarks: list[str] = []
    log = RunLog(tmp_path, remarks.append)
    log.files[1].symlink_to("/dev/full")
    log.append(batch(batch_id=5))
    assert remarks == [f"batch 5 was not written to {tmp_path / 'metrics.jsonl'}: No space left on device"]


@pytest.mark.parametrize("folder", ["a" * 5_000, "file/run"])
def test_an_invalid_folder_is_named(tmp_path, folder):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"cannot write to .*; choose another folder"):
        RunLog(tmp_path / folder).begin({})


def test_another_description_is_refused_naming_the_difference(tmp_path):
    RunLog(tmp_path).begin({"days": 3, "rows": None})
    with pytest.raises(CheckpointError, match=r"contains a run with days=3, but this run has days=4"):
        RunLog(tmp_path).begin({"days": 4, "rows": None})


def test_an_empty_folder_has_no_batches(tmp_path):
    assert RunLog(tmp_path).batches() == ()
