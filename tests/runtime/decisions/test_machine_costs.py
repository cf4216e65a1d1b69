"""Costs of a machine, measured and kept: whatever becomes of the file, a job starts."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.runtime.streams import late_rows, skylines_of

import skypane as sp
from skypane.control.costs import DEFAULT_COSTS, Costs
from skypane.runtime.machine_costs import Machine, read, write
from skypane.runtime.spark.calibration import calibrate, costs_of, machine_of, machine_of_master
from skypane.types import ConfigError

HERE = Machine.this("4.3.0", "local[2]")
MEASURED = Costs(exchange=0.01, job=0.02, measured="here")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SKYPANE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_machine_that_was_not_measured_has_the_defaults(caplog: pytest.LogCaptureFixture):
    assert read(HERE) == DEFAULT_COSTS
    assert not caplog.records


def test_what_is_written_is_read_on_the_same_machine_only(cache: Path):
    path = write(HERE, MEASURED)
    assert path.is_relative_to(cache)
    assert read(HERE) == MEASURED
    for other in (replace(HERE, master="local[4]"), replace(HERE, processor="another"), replace(HERE, spark="5.0.0")):
        assert read(other) == DEFAULT_COSTS


@pytest.mark.parametrize("damage", [
    b"", b"{", b"[]", b"\xff", b"null", b'{"machine": {}, "costs": {}}', b'{"costs": {"job": 0.1}}',
    {"costs": {"job": -1}}, {"costs": {"job": "soon"}}, {"costs": {"walk": 1.0}}, {"costs": {"job": float("nan")}}, {"costs": []},
])  # fmt: skip
def test_a_damaged_file_is_reported_and_the_defaults_hold(
    damage: bytes | dict[str, object], caplog: pytest.LogCaptureFixture
):
    """Bytes take the place of the file; a dict takes the place of its parts alone."""
    path = write(HERE, MEASURED)
    written = json.loads(path.read_bytes())
    path.write_bytes(damage if isinstance(damage, bytes) else json.dumps(written | damage).encode())
    with caplog.at_level(logging.WARNING):
        assert read(HERE) == DEFAULT_COSTS
    (record,) = caplog.records
    assert str(path) in record.getMessage()
    assert "skypane calibrate" in record.getMessage()


def test_a_place_that_cannot_be_written_is_named(cache: Path):
    cache.write_text("a file where the folder should be")
    with pytest.raises(ConfigError, match=r"cannot write .*SKYPANE_CACHE"):
        write(HERE, MEASURED)


def test_a_local_master_counts_by_its_threads():
    assert machine_of_master("local[3]") == replace(machine_of_master("local"), master="local[3]")
    assert machine_of_master("spark://host:7077").master == "spark://host:7077"


def test_a_stream_decides_by_what_was_measured_here(spark: SparkSession, tmp_path: Path):
    """Small moves, measured once: the costs are of this machine, and the next job has them."""
    costs = calibrate(spark, rounds=1, exchanged=(1_000, 200_000), merged=(20, 400))
    assert costs != DEFAULT_COSTS
    assert 0 < costs.job < 60
    assert costs.window_per_row > 0 or costs.window > 0
    write(machine_of(spark), costs)
    assert costs_of(spark) == costs
    _, job = skylines_of(spark, tmp_path, late_rows(1, batches=1), sp.Memory())
    assert job.settings.costs == costs
